// Which libnccl a program of this machine would load.
#pragma once

#include <string>
#include <string_view>

namespace distdoctor::collect {

// "2.28.9" of "/usr/lib/libnccl.so.2.28.9"; "" without three numbers.
std::string version_of_file_name(std::string_view path);
// Of the text "NCCL version 2.28.9+cuda13.0" that each build holds in its first megabytes.
std::string version_of_bytes(std::string_view bytes);

}  // namespace distdoctor::collect
