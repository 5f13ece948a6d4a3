#include "probe/master_port.h"

#include <distdoctor/views.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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

// --- what a process says of its port ---

std::string with_underscores(std::string_view word) {
  std::string name(word);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string upper_case(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

// The value of "--master-port 29500" or "--master_port=29500", else of torchrun's PET_ variable.
std::optional<std::string> flag(const TrainingProcess& process, std::string_view name) {
  const auto& argv = process.argv;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const std::string_view word = argv[i];
    const auto end = std::min(word.find('='), word.size());
    if (!word.starts_with("--") || with_underscores(word.substr(2, end - 2)) != name) continue;
    if (end < word.size()) return std::string(word.substr(end + 1));
    return i + 1 < argv.size() ? argv[i + 1] : "";
  }
  return variable(process, "PET_" + upper_case(name));
}

bool has_a_port(std::string_view endpoint) {
  const auto colon = endpoint.rfind(':');
  const auto end = colon == std::string_view::npos ? endpoint : endpoint.substr(colon + 1);
  return colon != std::string_view::npos && !end.empty() && std::ranges::all_of(end, digit);
}

// srun and mpirun start anything; the others have ports of their own by default.
bool starts_anything(const TrainingProcess& process) {
  constexpr std::array<std::string_view, 6> kNames = {"srun",    "mpirun",  "mpiexec",
                                                      "orterun", "prterun", "mpiexec.hydra"};
  const std::string_view program = process.argv.empty() ? std::string_view() : process.argv[0];
  return process.role == ProcessRole::launcher &&
         std::ranges::find(kNames, program.substr(program.rfind('/') + 1)) != kNames.end();
}

// That it does not name ours is known already. Before its workers start a torchrun with its default
// port says nothing of it anywhere.
bool says_another_port(const TrainingProcess& process, std::string_view port) {
  if (const auto endpoint = flag(process, "rdzv_endpoint")) {
    if (has_a_port(*endpoint)) return true;
  } else if (flag(process, "master_port") || flag(process, "main_process_port")) {
    return true;
  }
  const bool ranked = process.role == ProcessRole::worker || starts_anything(process);
  if (ranked) return variable(process, "MASTER_PORT").has_value();
  return port != "29500" && port != "29400";  // torch run.py, c10d_rendezvous_backend.py
}

// Its ranks meet on its own node, and that is not the master.
bool meets_at_home(const TrainingProcess& process) {
  if (process.role == ProcessRole::worker) {
    const auto host = variable(process, "MASTER_ADDR");
    return host && (*host == "127.0.0.1" || *host == "::1" || *host == "localhost");
  }
  if (process.role != ProcessRole::agent) return false;
  const bool alone = flag(process, "nnodes").value_or("1") == "1";
  return std::ranges::find(process.argv, "--standalone") != process.argv.end() ||
         (alone && !flag(process, "rdzv_endpoint") && !flag(process, "master_addr"));
}

// The srun that carries our own agents.
bool carries_us(const TrainingProcess& process) {
  return std::ranges::any_of(process.argv, [](std::string_view word) {
    return word.substr(word.rfind('/') + 1) == "distdoctor";
  });
}

// What the process has against it, or "". Which address it means is not compared: names have many
// spellings, and a mistake would harm.
std::string against(const TrainingProcess& process, const std::string& port) {
  const bool said =
      std::ranges::any_of(process.argv, [&](const std::string& word) { return names(word, port); });
  if (said) return " has the port in its arguments";
  for (const char* name : {"MASTER_PORT", "PET_MASTER_PORT", "PET_RDZV_ENDPOINT"}) {
    const auto value = variable(process, name);
    if (value && names(*value, port)) return " has the port in its environment";
  }
  return says_another_port(process, port) ? "" : " may be about to use it";
}

std::string process_objects(const NodeFacts& node, bool is_master, const std::string& port) {
  for (const TrainingProcess& process : *node.processes) {
    if (!process.our_network || process.state == "Z" || carries_us(process)) continue;
    if (!process.env.known()) return "the environment of " + name_of(node, process) + " is unseen";
    if (!is_master && meets_at_home(process)) continue;
    const std::string objection = against(process, port);
    if (!objection.empty()) return name_of(node, process) + objection;
  }
  return {};
}

std::string socket_objects(const NodeFacts& node, bool is_master, std::uint16_t port) {
  const SocketFacts& sockets = *node.sockets;
  if (sockets.truncated) return "not all sockets of " + node.host + " were seen";
  const bool listens =
      std::ranges::find(sockets.listeners, port, &Listener::port) != sockets.listeners.end();
  if (listens && is_master) return "something listens on it already";
  for (const Connection& row : sockets.connections) {
    if (row.state == TcpState::syn_sent && row.remote_port == port) {
      return "somebody on " + node.host + " is connecting to it";
    }
    // Half open without a listener: left over from somebody who listened a moment ago.
    if (is_master && row.local_port == port && row.state != TcpState::syn_recv) {
      return "a connection uses it already";
    }
  }
  return {};
}

std::string node_objects(const NodeFacts& node, bool is_master, std::uint16_t port) {
  if (!node.reached) return node.host + " was not reached";
  if (!node.processes.known()) return "the processes of " + node.host + " are unseen";
  if (!node.sockets.known()) return "the sockets of " + node.host + " are unseen";
  const std::string objection = process_objects(node, is_master, std::to_string(port));
  return objection.empty() ? socket_objects(node, is_master, port) : objection;
}

}  // namespace

std::string why_not_bind(const ClusterFacts& cluster, const Master& master) {
  if (!master.port) return "no port is known";
  if (master.node.empty()) return "no peer has the address";
  for (const NodeFacts& node : cluster.nodes) {
    const bool is_master = node.host == master.node;
    if (auto objection = node_objects(node, is_master, *master.port); !objection.empty()) {
      return objection;
    }
  }
  return {};
}

}  // namespace distdoctor::probe
