// Asks the real libnccl what it makes of a file that a variable names, without a GPU:
// `nccl_files_oracle topo|graph FILE` prints its result code, `plugin NAME` what it opened.
#include "real_nccl.h"

using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

using AllocXml = int (*)(void**, int);
using ReadTopology = int (*)(const char*, void*, int);
using ReadGraph = int (*)(const char*, void*);
using OpenPlugin = void* (*)(const char*);

constexpr int kNodes = 512;

void* fresh_xml(const Library& library) {
  const auto allocate = library.internal<AllocXml>("_ZL8xmlAllocPP7ncclXmli");
  void* xml = nullptr;
  if (allocate == nullptr || allocate(&xml, kNodes) != 0) skip("no xmlAlloc");
  return xml;
}

int ask(const Library& library, std::string_view what, const char* path) {
  void* xml = fresh_xml(library);
  if (what == "graph") {
    const auto read = library.internal<ReadGraph>("_Z27ncclTopoGetXmlGraphFromFilePKcP7ncclXml");
    if (read == nullptr) skip("no ncclTopoGetXmlGraphFromFile");
    return read(path, xml);
  }
  const auto read = library.internal<ReadTopology>("_Z22ncclTopoGetXmlFromFilePKcP7ncclXmli");
  if (read == nullptr) skip("no ncclTopoGetXmlFromFile");
  return read(path, xml, 1);
}

// The file that the handle stands for.
std::string opened(const Library& library, const char* name) {
  const auto open = library.internal<OpenPlugin>("_Z20ncclOpenNetPluginLibPKc");
  if (open == nullptr) skip("no ncclOpenNetPluginLib");
  void* handle = open(name);
  if (handle == nullptr) return "";
  std::array<char, 4096> path{};
  if (dlinfo(handle, RTLD_DI_ORIGIN, path.data()) != 0) return "?";
  return path.data();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view what = argv[1];
  const Library library = load();
  if (what == "plugin") {
    std::cout << opened(library, argv[2]) << '\n';
    return 0;
  }
  std::cout << ask(library, what, argv[2]) << '\n';
  return 0;
}
