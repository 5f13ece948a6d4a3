// Libraries, plugins and packages beside NCCL; what their files say, nothing is run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

// How NCCL (plugin_open.cc) makes file names of what NCCL_NET_PLUGIN says: the word itself, then
// "libnccl-net-WORD.so", but for paths and whole names of libraries. `kind`: "net", "tuner", ...
std::vector<std::string> plugin_file_names(std::string_view word, std::string_view kind);

// "aws-ofi-nccl 1.9.1-aws", as that plugin says it among its constants; "" of any other text.
std::string parse_plugin_version(std::string_view constants);

// "MLNX_OFED_LINUX-23.10-1.1.9.0" of the script /usr/bin/ofed_info.
std::string parse_ofed_info(std::string_view script);
std::string parse_efa_installer(std::string_view text);  // of efa_installed_packages: "1.30.0"
std::string parse_cuda_toolkit(std::string_view json);   // of version.json: "12.4.1"

// What may be told of how a file begins: 80 bytes of XML, the four of a library, else the first one
// that is no blank.
std::string beginning(std::string_view head);

}  // namespace distdoctor::collect
