#include "probe/master_port.h"

#include <algorithm>
#include <string_view>

namespace distdoctor::probe {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

// The number as a word of its own: "29500" in "--rdzv-endpoint=node0:29500", not in "129500".
bool names(std::string_view text, std::string_view number) {
  for (auto at = text.find(number); at != std::string_view::npos; at = text.find(number, at + 1)) {
    const auto end = at + number.size();
    if ((at == 0 || !digit(text[at - 1])) && (end == text.size() || !digit(text[end]))) return true;
  }
  return false;
}

std::string name_of(const NodeFacts& node, const TrainingProcess& process) {
  return "process " + std::to_string(process.pid) + " on " + node.host;
}

// Which address it means is not compared: names have many spellings, and a mistake would harm.
std::string process_objects(const NodeFacts& node, const std::string& port) {
  for (const TrainingProcess& process : *node.processes) {
    if (!process.our_network) continue;
    const bool said = std::ranges::any_of(
        process.argv, [&](const std::string& word) { return names(word, port); });
    if (said) return name_of(node, process) + " has the port in its arguments";
    if (!process.env.known()) return "the environment of " + name_of(node, process) + " is unseen";
    const auto setting = process.env->find("MASTER_PORT");
    if (setting != process.env->end() && setting->second == port) {
      return name_of(node, process) + " has the port in its environment";
    }
  }
  return {};
}

std::string socket_objects(const NodeFacts& node, const Master& master) {
  const SocketFacts& sockets = *node.sockets;
  if (sockets.truncated) return "not all sockets of " + node.host + " were seen";
  const bool listens = std::ranges::find(sockets.listeners, *master.port, &Listener::port) !=
                       sockets.listeners.end();
  if (listens && node.host == master.node) return "something listens on it already";
  for (const Connection& row : sockets.connections) {
    if (row.state == TcpState::syn_sent && row.remote_port == *master.port) {
      return "somebody on " + node.host + " is connecting to it";
    }
    if (node.host == master.node && row.local_port == *master.port) {
      return "a connection uses it already";
    }
  }
  return {};
}

std::string node_objects(const NodeFacts& node, const Master& master) {
  if (!node.reached) return node.host + " was not reached";
  if (!node.processes.known()) return "the processes of " + node.host + " are unseen";
  if (!node.sockets.known()) return "the sockets of " + node.host + " are unseen";
  const std::string objection = process_objects(node, std::to_string(*master.port));
  return objection.empty() ? socket_objects(node, master) : objection;
}

}  // namespace

std::string why_not_bind(const ClusterFacts& cluster, const Master& master) {
  if (!master.port) return "no port is known";
  if (master.node.empty()) return "no peer has the address";
  for (const NodeFacts& node : cluster.nodes) {
    if (auto objection = node_objects(node, master); !objection.empty()) return objection;
  }
  return {};
}

}  // namespace distdoctor::probe
