#include "support/planted_names.h"

#include <map>
#include <optional>
#include <type_traits>
#include <utility>

namespace distdoctor::testing {
namespace {

std::string planted(std::string text) {
  for (const std::string_view name : {"eth0", "eth1", "docker0", "wg0", "tun0"}) {
    const auto at = text.find(name);
    if (at != std::string::npos) text.insert(at + name.size(), kPlanted);
  }
  return text.starts_with("pid ") ? text + std::string(kPlanted) : text;
}

// Walks the members of facts as the codec does.
class Planter {
 public:
  template <class Name, class T>
  void operator()(const Name& /*name*/, T& value) {
    plant(value);
  }

  void plant(std::string& text) { text = planted(std::move(text)); }
  void plant(Address& address) { plant(address.zone); }
  template <class T>
  void plant(std::optional<T>& value) {
    if (value) plant(*value);
  }
  template <class T>
  void plant(std::vector<T>& items) {
    for (T& item : items) plant(item);
  }
  template <class T>
  void plant(std::map<std::string, T>& items) {
    std::map<std::string, T> renamed;
    for (auto& [key, value] : items) {
      plant(value);
      renamed.emplace(planted(key), std::move(value));
    }
    items = std::move(renamed);
  }
  template <class T>
  void plant(Observed<T>& fact) {
    if (!fact.known()) return;
    T value = *fact;
    plant(value);
    fact = std::move(value);
  }
  void plant(Choice& choice) {
    plant(choice.interface);
    plant(choice.address);
  }
  void plant(NcclChoice& nccl) {
    plant(nccl.bootstrap);
    plant(nccl.net_socket);
  }
  void plant(GlooChoice& gloo) { plant(gloo.devices); }
  template <class T>
  void plant(T& value) {
    if constexpr (requires { fields(*this, value); }) fields(*this, value);
  }
};

}  // namespace

void plant_names(ClusterFacts& cluster) {
  Planter planter;
  planter.plant(cluster);
  for (Prediction& node : cluster.predicted.nodes) {
    planter.plant(node.settings);
    planter.plant(node.nccl);
    planter.plant(node.nccl_others);
    planter.plant(node.gloo);
  }
}

std::string unquoted(std::string_view command) {
  std::string rest;
  bool quoted = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == '\'') {
      quoted = !quoted;
    } else if (!quoted && command[i] == '\\') {
      ++i;
    } else if (!quoted) {
      rest += command[i];
    }
  }
  return rest;
}

std::vector<std::string> unsafe_commands(const Finding& finding) {
  std::vector<std::string> commands;
  for (const Evidence& row : finding.evidence) commands.push_back(row.command);
  for (const Fix& fix : finding.fix) {
    commands.push_back(fix.command);
    std::size_t from = 0;
    while ((from = fix.text.find('`', from)) != std::string::npos) {
      const auto end = fix.text.find('`', from + 1);
      if (end == std::string::npos) break;
      commands.push_back(fix.text.substr(from + 1, end - from - 1));
      from = end + 1;
    }
  }
  std::erase_if(commands, [](const std::string& command) {
    return unquoted(command).find(kPlanted) == std::string::npos;
  });
  return commands;
}

}  // namespace distdoctor::testing
