// Which libnccl a program of this machine would load.
#pragma once

#include <string>
#include <string_view>

namespace distdoctor::collect {

// "2.28.9" of "/usr/lib/libnccl.so.2.28.9"; "" without three numbers.
std::string version_of_file_name(std::string_view path);
// Of the text "NCCL version 2.28.9+cuda13.0" that each build holds in its first megabytes.
std::string version_of_bytes(std::string_view bytes);
// Path of a library in /etc/ld.so.cache (glibc-ld.so.cache1.1, elf/dl-cache.c), or "".
std::string find_in_ld_cache(std::string_view cache, std::string_view name);

}  // namespace distdoctor::collect
