// Any text is a list of interface names, an NCCL_COMM_ID, an endpoint or an address, or none; what
// is accepted can be written and read again.
#include <distdoctor/address.h>

#include "rules/nccl/comm_id.h"
#include "rules/nccl/name_list.h"
#include "rules/torch/endpoint.h"
#include "target.h"

#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void list_of_names(std::string_view text) {
  const auto list = distdoctor::rules::parse_name_list(text);
  if (list.elements.size() > distdoctor::rules::kMostInterfaceNames) std::abort();
  for (const auto& element : list.elements) {
    if (element.name.empty() || element.name.size() > 63) std::abort();
    if (list.takes(element.name) == list.exclude) std::abort();
  }
}

void address(std::string_view text) {
  const auto parsed = distdoctor::Address::parse(text);
  if (parsed && distdoctor::Address::parse(parsed->text()) != parsed) std::abort();
}

void endpoint(std::string_view text) {
  const auto parsed = distdoctor::rules::parse_endpoint(text, 29400);
  if (parsed && parsed->host.find_first_of(" $'\"\n") != std::string::npos) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  list_of_names(text);
  address(text);
  endpoint(text);
  const auto id = distdoctor::rules::read_comm_id(text, {});
  if (!id.known() && distdoctor::rules::comm_id_host(text).empty()) std::abort();
  return 0;
}
