// Texts of packages: versions of torch, OFED, EFA and CUDA, and how files begin.
#include "collect/software.h"

#include "collect/loader.h"
#include "collect/torch.h"
#include "target.h"

#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto torch = parse_torch_version(text);
  if (torch.version.size() > size) std::abort();
  if (parse_ofed_info(text).size() > size || parse_efa_installer(text).size() > size) std::abort();
  if (parse_cuda_toolkit(text).size() > size || parse_plugin_version(text).size() > size) {
    std::abort();
  }
  if (beginning(text).size() > 4 * std::size_t{80} * 4) std::abort();
  for (const auto& entry : preload_entries(text)) {
    if (entry.empty()) std::abort();
  }
  if (plugin_file_names(text, "net").empty()) std::abort();
  return 0;
}
