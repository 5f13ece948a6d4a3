// Libraries and plugins that a job on this node would meet, as files tell without running them.
#pragma once

#include <distdoctor/enum_names.h>
#include <distdoctor/facts/host.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

struct NcclPlugin {
  std::string path = {};
  std::string kind = {};  // "net", "tuner", "profiler"
  // The interface versions that it exports, newest first: "ncclNetPlugin_v8".
  std::vector<std::string> exports = {};
  std::string origin = {};   // as NcclLibrary: "LD_LIBRARY_PATH", "NCCL_NET_PLUGIN", ...
  std::string version = {};  // where it says one: "aws-ofi-nccl 1.9.1"
  bool operator==(const NcclPlugin&) const = default;
};

// A file that a variable in force names.
struct NamedFile {
  std::string variable = {};  // "NCCL_TOPO_FILE"
  std::string path = {};
  int error = 0;  // errno of opening it; 0: it can be read
  std::int64_t bytes = 0;
  std::string begins = {};  // its first 80 bytes, for what kind of file it is
  bool operator==(const NamedFile&) const = default;
};

struct Software {
  std::vector<NcclLibrary> nccl = {};  // every copy, in the order in which the loader would take it
  std::vector<NcclPlugin> plugins = {};
  std::vector<NamedFile> named_files = {};
  std::string torch = {};       // "2.8.0+cu128"
  std::string torch_path = {};  // its folder
  std::string torch_cuda = {};  // that it was built for: "12.8"; empty: none or not known
  std::string torch_hip = {};
  std::string ofed = {};       // "MLNX_OFED_LINUX-23.10-1.1.9.0"; empty: not installed
  std::string libfabric = {};  // its path
  std::string efa = {};        // of the EFA installer; empty: not installed
  std::string cuda = {};       // of the toolkit's version.json
  bool operator==(const Software&) const = default;
};

template <class V, Is<NcclPlugin> T>
void fields(V& v, T& x) {
  v("path", x.path);
  v("kind", x.kind);
  v("exports", x.exports);
  v("origin", x.origin);
  v("version", x.version);
}
template <class V, Is<NamedFile> T>
void fields(V& v, T& x) {
  v("variable", x.variable);
  v("path", x.path);
  v("error", x.error);
  v("bytes", x.bytes);
  v("begins", x.begins);
}
template <class V, Is<Software> T>
void fields(V& v, T& x) {
  v("nccl", x.nccl);
  v("plugins", x.plugins);
  v("named_files", x.named_files);
  v("torch", x.torch);
  v("torch_path", x.torch_path);
  v("torch_cuda", x.torch_cuda);
  v("torch_hip", x.torch_hip);
  v("ofed", x.ofed);
  v("libfabric", x.libfabric);
  v("efa", x.efa);
  v("cuda", x.cuda);
}

}  // namespace distdoctor
