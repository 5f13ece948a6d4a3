#include "rules/nccl/interfaces.h"

#include "base/text.h"
#include "rules/interface_addresses.h"
#include "rules/nccl/comm_id.h"
#include "rules/nccl/name_list.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::rules {

namespace {

constexpr std::size_t kMostDevices = 16;  // MAX_IFS of NET/Socket; the bootstrap takes one
constexpr std::string_view kInvalidCommId =
    "Invalid NCCL_COMM_ID, please use format: <ipv4>:<port> or [<ipv6>]:<port> or "
    "<hostname>:<port>";

// Steps of the automatic choice; the first that yields anything wins. "" is the subnet of
// NCCL_COMM_ID. virbr came with 2.28.3: before, libvirt's bridge is an interface like any other.
constexpr std::string_view kSteps[] = {"ib", "", "^docker,lo,virbr", "docker", "lo", "virbr"};
constexpr std::string_view kOldSteps[] = {"ib", "", "^docker,lo", "docker", "lo"};

// What the choice depends on, read once.
struct World {
  std::vector<InterfaceAddress> rows;
  std::optional<bool> v6_only;  // NCCL_SOCKET_FAMILY, which is exactly AF_INET or AF_INET6
  std::optional<std::string> names;
  std::optional<std::string> comm_id_text;
  CommId comm_id;
  NcclRules rules;
};

std::optional<std::string> value_of(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? std::nullopt : std::optional(found->second.value);
}

// A value of one character or none is as good as unset.
bool counts(const std::optional<std::string>& value) {
  return value && value->size() > 1;
}

bool eligible(const World& world, const InterfaceAddress& row) {
  if (world.rules == NcclRules::from_2_28_3 && !row.link->running) return false;
  if (world.v6_only && *world.v6_only != row.address.v6) return false;
  return !(row.address.v6 && row.address.loopback());  // ::1 is passed over, 127.0.0.1 is not
}

std::vector<Choice> find_by_names(const World& world, std::string_view list, std::size_t most) {
  const NameList wanted = parse_name_list(list);
  std::vector<Choice> found;
  for (const InterfaceAddress& row : world.rows) {
    if (found.size() == most) break;
    if (!eligible(world, row) || !wanted.takes(row.name)) continue;
    if (std::ranges::find(found, row.name, &Choice::interface) == found.end()) {
      found.push_back({.interface = row.name, .address = row.address});
    }
  }
  return found;
}

// The scope of the id must be that of the address: 0, or the link of a link-local one.
bool same_subnet(const InterfaceAddress& row, const Address& id) {
  return row.address.shares_prefix(id, row.prefix) && row.address.zone == id.zone;
}

// Neither the family nor the state of the link nor ::1 matters here.
std::vector<Choice> find_by_subnet(const World& world) {
  for (const InterfaceAddress& row : world.rows) {
    if (same_subnet(row, world.comm_id.address)) {
      return {{.interface = row.name, .address = row.address}};
    }
  }
  return {};
}

std::vector<Choice> find_automatically(const World& world, std::size_t most, std::string& error) {
  const auto steps = world.rules == NcclRules::from_2_28_3
                         ? std::span<const std::string_view>(kSteps)
                         : std::span<const std::string_view>(kOldSteps);
  for (const std::string_view step : steps) {
    const bool subnet = step.empty();
    if (subnet && !counts(world.comm_id_text)) continue;
    if (subnet && !world.comm_id.error.empty()) {
      error = world.comm_id.error;
      return {};
    }
    auto found = subnet ? find_by_subnet(world) : find_by_names(world, step, most);
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<Choice> find_interfaces(const World& world, std::size_t most, std::string& error) {
  if (counts(world.names)) return find_by_names(world, *world.names, most);
  return find_automatically(world, most, error);
}

// With NCCL_COMM_ID, even an empty one, no name counts.
void choose_bootstrap(const World& world, NcclChoice& choice) {
  std::vector<Choice> found;
  if (world.comm_id_text) {
    if (!world.comm_id.error.empty()) {
      choice.bootstrap_error = kInvalidCommId;
      return;
    }
    found = find_by_subnet(world);
    if (found.empty()) choice.bootstrap_error = "No usable listening interface found";
  } else {
    found = find_interfaces(world, 1, choice.bootstrap_error);
    if (found.empty()) choice.bootstrap_error = "no socket interface found";
  }
  if (!found.empty()) choice.bootstrap = found.front();
}

void choose_net_socket(const World& world, NcclChoice& choice) {
  choice.net_socket = find_interfaces(world, kMostDevices, choice.net_socket_error);
  if (choice.net_socket.empty() && choice.net_socket_error.empty()) {
    choice.net_socket_error = "no interface found";
  }
}

bool has_link(const std::vector<Link>& links, std::string_view name) {
  return std::ranges::find(links, name, &Link::name) != links.end();
}

std::optional<bool> forced_family(const Settings& settings) {
  const auto family = value_of(settings, "NCCL_SOCKET_FAMILY");
  if (family == "AF_INET6") return true;
  return family == "AF_INET" ? std::optional(false) : std::nullopt;
}

}  // namespace

NcclRules nccl_rules_of(std::string_view version) {
  const auto parts = split(version, '.', 3);
  const auto major = parse_int<int>(parts.front());
  const auto minor = parts.size() > 1 ? parse_int<int>(parts[1]) : std::nullopt;
  if (!major || !minor || *major > 2 || *minor >= 28) return NcclRules::from_2_28_3;
  return *major < 2 || *minor <= 22 ? NcclRules::to_2_22 : NcclRules::to_2_27;
}

Observed<NcclChoice> nccl_choice(const NodeFacts& node, const Settings& settings, NcclRules rules) {
  if (!node.links.known()) return node.links.why();
  World world{.rows = interface_addresses(*node.links),
              .v6_only = forced_family(settings),
              .names = value_of(settings, "NCCL_SOCKET_IFNAME"),
              .comm_id_text = value_of(settings, "NCCL_COMM_ID"),
              .comm_id = {},
              .rules = rules};
  if (world.comm_id_text) {
    const auto names = node.names.known() ? *node.names : std::vector<Resolution>{};
    const Observed<CommId> id = read_comm_id(*world.comm_id_text, names);
    if (!id.known()) return id.why();
    world.comm_id = *id;
    // if_nametoindex gives 0, no scope, for a name that is no link.
    if (!has_link(*node.links, world.comm_id.address.zone)) world.comm_id.address.zone.clear();
  }
  NcclChoice choice{.rules = rules};
  choose_bootstrap(world, choice);
  choose_net_socket(world, choice);
  return choice;
}

}  // namespace distdoctor::rules
