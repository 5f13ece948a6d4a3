// What a person changes to make MASTER_ADDR and MASTER_PORT right: values that the facts prove.
#pragma once

#include "ranks.h"

#include <cstdint>
#include <utility>

namespace distdoctor::checks {

// --- an address that leads to a node ---

inline bool in_the_subnet_of(const NodeFacts& node, const LinkAddress& row) {
  if (!node.links.known()) return false;
  return std::ranges::any_of(*node.links, [&](const Link& link) {
    return link.running && std::ranges::any_of(link.addresses, [&](const LinkAddress& own) {
             return own.address != row.address && own.prefix == row.prefix &&
                    row.address.shares_prefix(own.address, row.prefix);
           });
  });
}

// A node takes another's name for this address.
inline bool named_so(const NodeFacts& from, std::string_view name, const Address& address) {
  return from.names.known() && std::ranges::any_of(*from.names, [&](const Resolution& row) {
           return row.name == name && row.all.known() &&
                  std::ranges::find(*row.all, address) != row.all->end();
         });
}

// Who tried it reached it; who did not has a link in its subnet, or knows the node by it.
inline bool answers_all(const ClusterFacts& cluster,
                        const NodeFacts& target,
                        const LinkAddress& row) {
  return std::ranges::all_of(cluster.nodes, [&](const NodeFacts& from) {
    if (from.host == target.host) return true;
    const auto dials = dials_to(cluster, from.host, row.address);
    if (!dials.empty()) return std::ranges::any_of(dials, connects);
    return in_the_subnet_of(from, row) || named_so(from, target.host, row.address);
  });
}

inline bool known_by_it(const ClusterFacts& cluster,
                        const NodeFacts& target,
                        const Address& address) {
  return std::ranges::any_of(cluster.nodes, [&](const NodeFacts& from) {
    return from.host != target.host && named_so(from, target.host, address);
  });
}

inline std::vector<Address> addresses_that_all_reach(const ClusterFacts& cluster,
                                                     const NodeFacts& target) {
  std::vector<Address> all;
  if (!target.links.known()) return all;
  for (const Link& link : *target.links) {
    for (const LinkAddress& row : link.addresses) {
      const bool local = row.address.loopback() || row.address.link_local() || !link.running;
      if (!local && answers_all(cluster, target, row)) all.push_back(row.address);
    }
  }
  return all;
}

// The address under which the others know the node, before any other that all of them can reach.
inline std::optional<Address> address_for_peers(const ClusterFacts& cluster,
                                                const NodeFacts& target) {
  const auto all = addresses_that_all_reach(cluster, target);
  const auto known = std::ranges::find_if(
      all, [&](const Address& address) { return known_by_it(cluster, target, address); });
  if (known != all.end()) return *known;
  return all.empty() ? std::nullopt : std::optional(all.front());
}

// --- a port that is free on a node ---

inline bool occupied(const SocketFacts& sockets, int port) {
  return std::ranges::any_of(sockets.listeners,
                             [&](const Listener& row) { return row.port == port; }) ||
         std::ranges::any_of(sockets.connections,
                             [&](const Connection& row) { return row.local_port == port; });
}

// The next port that nobody holds and that no outgoing connection may take by chance.
inline std::optional<std::uint16_t> free_port(const NodeFacts& node, std::uint16_t from) {
  if (!node.sockets.known() || !node.kernel.known() || node.sockets->truncated) return std::nullopt;
  const auto outgoing = [&](int port) {
    return port >= node.kernel->port_low && port <= node.kernel->port_high;
  };
  for (int tried = 1; tried < 64512; ++tried) {
    const int port = 1024 + (from - 1024 + tried + 64512) % 64512;
    if (!outgoing(port) && !occupied(*node.sockets, port)) return static_cast<std::uint16_t>(port);
  }
  return std::nullopt;
}

// --- the change ---

// torchrun ignores MASTER_ADDR and MASTER_PORT of its environment: its flags decide.
inline std::string flag_of(const Case& c, std::string_view setting) {
  const bool addr = setting == "MASTER_ADDR";
  if (master_of(c) != nullptr && master_of(c)->endpoint) return "--rdzv_endpoint";
  const auto& launches = c.cluster.job.launches;
  const auto launch = std::ranges::find_if(launches, [](const Launch& row) {
    return !for_one_node(row) && (!row.master_addr.empty() || is_torchrun(row));
  });
  if (launch == launches.end()) return "";
  if (launch->kind == LauncherKind::accelerate) {
    return addr ? "--main_process_ip" : "--main_process_port";
  }
  return addr ? "--master_addr" : "--master_port";
}

// `node` "*" for the whole job. `value` is an address or a port.
inline Fix set_master(const Case& c,
                      const std::string& node,
                      const std::string& setting,
                      const std::string& value,
                      const std::string& text) {
  const std::string flag = flag_of(c, setting);
  if (flag.empty()) {
    return {.node = node, .kind = Fix::Kind::env, .env = {{setting, value}}, .text = text};
  }
  std::string written = value;
  if (flag == "--rdzv_endpoint") {
    const Master& master = *master_of(c);
    const std::string port = master.port ? fmt::to_string(*master.port) : "29400";
    const bool v6 = value.find(':') != std::string::npos;
    written = setting == "MASTER_PORT" ? master.host + ":" + value
                                       : (v6 ? "[" + value + "]" : value) + ":" + port;
  }
  return {.node = node,
          .kind = Fix::Kind::manual,
          .text = fmt::format("start the launcher with {} {} on {}: {}", flag, written,
                              node == "*" ? "every node" : node, text)};
}

// MASTER_ADDR to an address of `target`, or in words where no address is proved.
inline Fix point_at(const Case& c, const NodeFacts& target, const std::string& text) {
  if (looks_alone(c)) {
    return {.node = "*",
            .kind = Fix::Kind::manual,
            .text = fmt::format("set {} to an address of rank 0's node that {} reaches (there: "
                                "`ip -br addr`)",
                                master_name(*master_of(c)), target.host)};
  }
  const auto address = address_for_peers(c.cluster, target);
  if (address) return set_master(c, "*", "MASTER_ADDR", address->text(), text);
  return {.node = "*",
          .kind = Fix::Kind::manual,
          .text = fmt::format("set {} to an address of {} that every node reaches: {}",
                              master_name(*master_of(c)), target.host, text)};
}

// --- findings ---

inline Finding blocker(std::string code, std::string summary) {
  return {.code = std::move(code),
          .severity = Severity::blocker,
          .certainty = Certainty::proved,
          .symptom = Symptom::hang,
          .summary = std::move(summary)};
}

// --- the machine that is meant ---

struct Meant {
  const NodeFacts* node;
  Certainty certainty;
  std::string why;
};

// By rank 0's process, else by the peer of that name, else by where most nodes go, else by custom.
inline Meant meant_by(const Case& c, const std::vector<View>& views) {
  if (const auto zero = rank_zero(c)) {
    return {zero->node, Certainty::proved, "rank 0 is there: " + zero->how};
  }
  if (const NodeFacts* named = find_node(c.cluster, master_of(c)->host)) {
    return {named, Certainty::proved, "the peer of that name"};
  }
  std::vector<std::string> peers;
  for (const View& view : views) {
    for (const std::string& place : places(c.cluster, view)) {
      if (!all_loopback(view) && find_node(c.cluster, place) != nullptr) peers.push_back(place);
    }
  }
  const auto usual = usual_value(peers);
  if (usual && usual->clear) {
    return {find_node(c.cluster, usual->value), Certainty::likely, "most nodes go there"};
  }
  return {&c.cluster.nodes.front(), Certainty::possible,
          "provided that rank 0 runs there, on the first peer"};
}

}  // namespace distdoctor::checks
