// Any bytes are the value, or the name, of one of NCCL's variables; what is read of a value reads
// the same once more, and a name that was meant is one of NCCL's own.
#include "rules/nccl/variables.h"
#include "target.h"

#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace distdoctor;  // NOLINT(google-build-using-namespace)

// A number or a level that NCCL has read is no trap when it is written so.
void read_again(const VariableReading& reading) {
  const bool list = reading.name == "NCCL_DEBUG_SUBSYS" || reading.taken_as.empty();
  if (list || reading.trap == VariableTrap::misspelt) return;
  const auto again = rules::read_variables({{reading.name, {.value = reading.taken_as}}});
  if (again.size() != 1 || again.front().taken_as != reading.taken_as) std::abort();
  if (again.front().trap != VariableTrap::none) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"NCCL_IB_TC", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_DEBUG",
                           "NCCL_DEBUG_SUBSYS", "NCCL_SOCKET_FAMILY", "NCCL_ALGO", "NCCL_PROTO"}) {
    for (const auto& reading : rules::read_variables({{name, {.value = text}}})) {
      read_again(reading);
    }
  }
  const auto meant = rules::meant_variable("NCCL_" + text);
  if (meant && (rules::meant_variable(*meant) || !meant->starts_with("NCCL_"))) std::abort();
  return 0;
}
