#include "fleet/on_paper.h"

#include "capture/capture.h"
#include "collect/collect.h"

#include <exception>

namespace distdoctor::fleet {

Result<NodeFacts> read_on_paper(const std::string& path) {
  DD_TRY(const auto machine, capture::open(path));
  NodeFacts node{.host = machine->self().hostname,
                 .reached = true,
                 .channel = "captured",
                 .version = DISTDOCTOR_VERSION};
  if (node.host.empty()) return failure("read " + path, "it has no hostname");
  for (const collect::Collector& collector : collect::all_collectors()) {
    try {
      collector.run(*machine, {}, node);
    } catch (const std::exception& error) {
      collector.give_up(node, {Why::failed, error.what()});
    }
  }
  return node;
}

}  // namespace distdoctor::fleet
