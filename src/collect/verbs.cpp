#include "collect/verbs.h"

#include "collect/helper.h"
#include "collect/patience.h"

#include <chrono>

namespace distdoctor::collect {
namespace {

// Opening a device asks its firmware; a node may have sixteen.
constexpr std::chrono::milliseconds kPatience{8'000};

}  // namespace

void collect_verbs(machine::Machine& machine, const CollectRequest& request, NodeFacts& node) {
  if (machine.files().names("/sys/class/infiniband").empty()) {
    node.verbs = Unknown{Why::not_collected, "the kernel knows no RDMA device"};
    return;
  }
  node.verbs = ask_helper<Verbs>(machine, {"vendor", "verbs"}, end_of(request, kPatience));
}

}  // namespace distdoctor::collect
