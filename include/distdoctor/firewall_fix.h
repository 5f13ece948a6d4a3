// The commands that let the peers of a job through a node's own packet filter, for exactly these
// addresses and ports. Where the rules were read, one rule before the one that decides. Where they
// were not, the command asks on the node who owns the filter: firewalld, ufw, or whoever wrote
// iptables and nftables rules by hand. That is a script of short lines, since nobody can judge a
// long one.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/facts/firewall.h>
#include <distdoctor/filter_outlook.h>
#include <distdoctor/filters.h>
#include <distdoctor/finding.h>
#include <distdoctor/quote.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

namespace firewall_fix_detail {

// Addresses of one family.
using Peers = std::vector<Address>;

struct Ports {
  PortRange range;
  std::string_view protocol;  // as all the tools call it
  bool of_answers = false;    // packets from these ports, else to them
  bool loopback = false;      // all that the node sends to itself, else what the ports say
};
inline std::string_view port_word(Ports ports) {
  return ports.of_answers ? "sport " : "dport ";
}

inline std::string joined(const Peers& peers, const char* between) {
  std::string text;
  for (Address peer : peers) {
    peer.zone.clear();
    text += (text.empty() ? "" : between) + peer.text();
  }
  return text;
}

// For tools that take one address at a time: `body` has it as $p.
inline std::string for_each_peer(const Peers& peers, const std::string& body) {
  return "for p in " + joined(peers, " ") + "; do\n" + body + "done\n";
}

// firewalld filters what comes in; an interface that no zone names is in the default zone.
inline std::string through_firewalld(const Peers& peers, Ports ports, std::string_view interface) {
  std::string text;
  std::string zone;
  if (!interface.empty()) {
    zone = "--zone=\"$zone\" ";
    text = "zone=$(firewall-cmd --get-zone-of-interface=" + shell_quote(interface) +
           " 2>/dev/null || firewall-cmd --get-default-zone)\n";
  }
  return text +
         for_each_peer(peers, "  firewall-cmd " + zone + "--add-rich-rule=\"rule family=" +
                                  (peers.front().v6 ? "ipv6" : "ipv4") +
                                  " source address=$p port port=" + ports.range.text() +
                                  " protocol=" + std::string(ports.protocol) + " accept\"\n");
}

inline std::string through_ufw(Way way, const Peers& peers, Ports ports) {
  const std::string protocol = "proto " + std::string(ports.protocol);
  const std::string whom =
      way == Way::in ? protocol + " from $p to any" : "out " + protocol + " to $p";
  return for_each_peer(peers,
                       "  ufw prepend allow " + whom + " port " + ports.range.text(':') + "\n");
}

// What both iptables and nft take at once: all addresses.
inline std::string iptables_match(Way way, const Peers& peers, Ports ports) {
  if (ports.loopback) return way == Way::in ? " -i lo -j ACCEPT" : " -o lo -j ACCEPT";
  return (way == Way::in ? " -s " : " -d ") + joined(peers, ",") + " -p " +
         std::string(ports.protocol) + " --" + std::string(port_word(ports)) +
         ports.range.text(':') + " -j ACCEPT";
}
inline std::string nft_match(Way way, const Peers& peers, Ports ports) {
  if (ports.loopback) return way == Way::in ? " iifname lo accept" : " oifname lo accept";
  const std::string all = joined(peers, ", ");
  return (peers.front().v6 ? " ip6" : " ip") + std::string(way == Way::in ? " saddr " : " daddr ") +
         (peers.size() == 1 ? all : "{ " + all + " }") + " " + std::string(ports.protocol) + " " +
         std::string(port_word(ports)) + ports.range.text() + " accept";
}

// The chain that iptables made is left to iptables, be it the legacy one that nft does not see.
inline std::string through_iptables(Way way, const Peers& peers, Ports ports) {
  const std::string command = peers.front().v6 ? "ip6tables" : "iptables";
  const std::string chain = way == Way::in ? "INPUT" : "OUTPUT";
  const std::string match = iptables_match(way, peers, ports);
  const std::string before = way == Way::in ? "'raw PREROUTING' 'mangle PREROUTING' 'mangle INPUT'"
                                            : "'raw OUTPUT' 'mangle OUTPUT' 'mangle POSTROUTING'";
  return "if " + command + " -S " + chain + " 2>/dev/null | grep -qv -- '-P " + chain +
         " ACCEPT'; then\n  " + command + " -I " + chain + match +
         "\nfi\n"
         "for c in " +
         before + "; do\n  set -- $c\n  " + command +
         " -t $1 -S 2>/dev/null | grep -Eq -- '-j (DROP|NFQUEUE)' || continue\n  " + command +
         " -t $1 -I $2" + match + "\ndone\n";
}

// `accept` ends one base chain only, so that each of the hook that may end a packet gets the rule.
inline std::string through_nft(Way way, const Peers& peers, Ports ports) {
  const std::string family = peers.front().v6 ? "ip6" : "ip";
  const std::string hooks = way == Way::in ? "filter hook (prerouting|input)"
                                           : "(filter|route) hook (output|postrouting)";
  const std::string iptables = "^" + family + " (filter|mangle|raw) [A-Z]+$";
  return "nft list chains 2>/dev/null |\n"
         "  awk '/^table/ {t = $2 \" \" $3} /chain/ {c = t \" \" $2}\n"
         "    /type " +
         hooks + "/ && c ~ /^(inet|" + family + ") / &&\n    c !~ /" + iptables +
         "/ {print c}' |\n"
         "  while read -r f t c; do\n"
         "    nft list chain $f $t $c | grep -Eq 'drop|reject|jump|goto|map|queue' || continue\n"
         "    nft insert rule $f $t $c" +
         nft_match(way, peers, ports) +
         "\n"
         "  done\n";
}

inline std::string indented(const std::string& lines) {
  std::string text;
  bool begins = true;
  for (const char c : lines) {
    if (begins) text += "  ";
    text += c;
    begins = c == '\n';
  }
  return text;
}

// One step a line, so that whoever pastes it as root can read it first.
inline std::string command(Way way, const Peers& peers, Ports ports, std::string_view interface) {
  if (ports.loopback) {  // firewalld and ufw never stop it
    std::string lines = through_iptables(way, peers, ports) + through_nft(way, peers, ports);
    lines.pop_back();  // the last line's end
    return lines;
  }
  std::string text = "if ";
  if (way == Way::in) {
    text += "firewall-cmd -q --state 2>/dev/null; then\n" +
            indented(through_firewalld(peers, ports, interface)) + "elif ";
  }
  return text + "ufw status 2>/dev/null | grep -q '^Status: active'; then\n" +
         indented(through_ufw(way, peers, ports)) + "else\n" +
         indented(through_iptables(way, peers, ports)) + indented(through_nft(way, peers, ports)) +
         "fi";
}

}  // namespace firewall_fix_detail

struct Opening {
  std::string node;
  std::vector<Address> peers;  // who may come in, or where we may go
  PortRange ports;
  std::string interface = {};  // of the node that the packets pass; empty: not known
  Way way = Way::in;
  bool udp = false;  // else TCP
  // The node's own address: what it alone may not reach there is let through by the loopback link,
  // answers and all.
  std::optional<Address> own = {};
};

namespace firewall_fix_detail {
inline Ports ports_of(const Opening& opening, const Peers& peers) {
  return {.range = opening.ports,
          .protocol = opening.udp ? "udp" : "tcp",
          .loopback = opening.own && peers == Peers{*opening.own}};
}
}  // namespace firewall_fix_detail

// One fix for each address family that the peers have; none without peers. To be run by root's
// shell; running it again adds the same rules once more and harms nothing.
inline std::vector<Fix> open_port_fix(const Opening& opening) {
  std::vector<Fix> fixes;
  for (const bool v6 : {false, true}) {
    firewall_fix_detail::Peers peers;
    std::ranges::copy_if(opening.peers, std::back_inserter(peers),
                         [v6](const Address& peer) { return peer.v6 == v6; });
    if (peers.empty()) continue;
    fixes.push_back(
        {.node = opening.node,
         .kind = Fix::Kind::shell,
         .command = firewall_fix_detail::command(
             opening.way, peers, firewall_fix_detail::ports_of(opening, peers), opening.interface),
         .text = "as root; through firewalld or ufw where one is active, else one rule "
                 "at the top of each chain that may drop; make it permanent in the way "
                 "of that tool"});
  }
  return fixes;
}

// --- where the deciding rules are known ---

// What ends the packets of one peer.
struct Closed {
  Address peer;
  FilterStop stop;
};

namespace firewall_fix_detail {

enum class Owner : std::uint8_t { nft, iptables, ufw, firewalld };

// Its rules for ports come before those that end what nobody named, and after those that it sets
// up for all: a rule of the latter is not for `ufw` to pass by.
inline bool by_ufw(const FilterStop& stop) {
  const bool named = stop.chain.starts_with("ufw-user") || stop.chain.starts_with("ufw6-user") ||
                     stop.chain.starts_with("ufw-after") || stop.chain.starts_with("ufw6-after") ||
                     stop.chain.starts_with("ufw-reject") || stop.chain.starts_with("ufw-skip") ||
                     stop.chain.starts_with("ufw6-reject") || stop.chain.starts_with("ufw6-skip");
  return stop.tool != FilterTool::nft && stop.table == "filter" && (named || stop.number == 0);
}

// It writes nft's rules, or iptables' where it is told to.
inline bool by_firewalld(const Firewall& firewall, const FilterStop& stop) {
  const bool writes_nft =
      std::ranges::find(firewall.chains, "firewalld", &FilterChain::table) != firewall.chains.end();
  return writes_nft ? stop.table == "firewalld"
                    : stop.tool != FilterTool::nft && stop.table == "filter";
}

inline Owner owner_of(const Firewall& firewall, Way way, const FilterStop& stop) {
  // Both let answers pass by themselves: the rule was put beside theirs.
  if (stop.answer) return stop.tool == FilterTool::nft ? Owner::nft : Owner::iptables;
  if (firewall.firewalld && way == Way::in && by_firewalld(firewall, stop)) return Owner::firewalld;
  if (firewall.ufw && by_ufw(stop)) return Owner::ufw;
  return stop.tool == FilterTool::nft ? Owner::nft : Owner::iptables;
}

inline std::string nft_before(const FilterStop& stop, Way way, const Peers& peers, Ports ports) {
  const std::string chain =
      stop.family + " " + shell_quote(stop.table) + " " + shell_quote(stop.chain);
  return (stop.before == 0
              ? "nft add rule " + chain
              : "nft insert rule " + chain + " position " + std::to_string(stop.before)) +
         nft_match(way, peers, ports);
}

inline std::string iptables_before(const FilterStop& stop,
                                   Way way,
                                   const Peers& peers,
                                   Ports ports) {
  const std::string table = stop.table == "filter" ? "" : " -t " + shell_quote(stop.table);
  const std::string chain = shell_quote(stop.chain);
  return tool_of(stop) + table +
         (stop.before == 0 ? " -A " + chain : " -I " + chain + " " + std::to_string(stop.before)) +
         iptables_match(way, peers, ports);
}

inline const char* to_keep(Owner owner) {
  switch (owner) {
    case Owner::nft:
      return "it lasts until the rules are loaded anew: write it into the file that they come "
             "from, too (/etc/nftables.conf, or whatever made this table)";
    case Owner::iptables:
      return "it lasts until a restart: keep it the way this node keeps its rules "
             "(netfilter-persistent save, service iptables save)";
    case Owner::ufw:
      return "ufw keeps it";
    case Owner::firewalld:
      break;
  }
  return "`firewall-cmd --runtime-to-permanent` keeps it";
}

// The peers of one family that one rule, or one owner, stops.
struct Block {
  Owner owner;
  FilterStop stop;
  Peers peers;
};

inline bool joins(const Block& block, Owner owner, const Closed& closed) {
  if (block.owner != owner || block.peers.front().v6 != closed.peer.v6) return false;
  if (owner == Owner::ufw || owner == Owner::firewalld) return true;
  const FilterStop& stop = block.stop;
  return stop.tool == closed.stop.tool && stop.family == closed.stop.family &&
         stop.table == closed.stop.table && stop.chain == closed.stop.chain &&
         stop.before == closed.stop.before && stop.answer == closed.stop.answer;
}

inline std::vector<Block> blocks_of(const Firewall& firewall,
                                    Way way,
                                    const std::vector<Closed>& all) {
  std::vector<Block> blocks;
  for (const Closed& closed : all) {
    const Owner owner = owner_of(firewall, way, closed.stop);
    const auto block = std::ranges::find_if(
        blocks, [&](const Block& known) { return joins(known, owner, closed); });
    if (block == blocks.end()) {
      blocks.push_back({.owner = owner, .stop = closed.stop, .peers = {closed.peer}});
    } else if (std::ranges::find(block->peers, closed.peer) == block->peers.end()) {
      block->peers.push_back(closed.peer);
    }
  }
  // A rule that iptables inserts moves those behind it on: the last place comes first.
  std::ranges::stable_sort(blocks, [](const Block& one, const Block& other) {
    return one.stop.tool == other.stop.tool && one.stop.family == other.stop.family &&
           one.stop.table == other.stop.table && one.stop.chain == other.stop.chain &&
           one.stop.before > other.stop.before;
  });
  return blocks;
}

// Answers pass the node the other way, from the port.
inline Way way_of(const Block& block, Way way) {
  if (!block.stop.answer) return way;
  return way == Way::in ? Way::out : Way::in;
}

inline std::string command_for(const Block& block, const Opening& opening) {
  Ports ports = ports_of(opening, block.peers);
  ports.of_answers = block.stop.answer;
  const Way way = way_of(block, opening.way);
  std::string text;
  switch (block.owner) {
    case Owner::iptables:
      return iptables_before(block.stop, way, block.peers, ports);
    case Owner::nft:
      return nft_before(block.stop, way, block.peers, ports);
    case Owner::firewalld:
      text = through_firewalld(block.peers, ports, opening.interface);
      break;
    case Owner::ufw:
      text = through_ufw(way, block.peers, ports);
      break;
  }
  text.pop_back();  // the last line's end
  return text;
}

inline std::string text_for(const Block& block) {
  const std::string keep = std::string("; ") + to_keep(block.owner);
  if (block.owner == Owner::ufw) return "as root; ufw owns the filter" + keep;
  if (block.owner == Owner::firewalld) return "as root; firewalld owns the filter" + keep;
  return "as root; before " + text_of(block.stop) + keep;
}

}  // namespace firewall_fix_detail

// One rule before each that decides, in each base chain that ends the packets, through the tool
// that owns it. `opening.peers` is not read: each peer comes with what stops it.
inline std::vector<Fix> open_before_fix(const Opening& opening,
                                        const Firewall& firewall,
                                        const std::vector<Closed>& closed) {
  std::vector<Fix> fixes;
  for (const auto& block : firewall_fix_detail::blocks_of(firewall, opening.way, closed)) {
    fixes.push_back({.node = opening.node,
                     .kind = Fix::Kind::shell,
                     .command = firewall_fix_detail::command_for(block, opening),
                     .text = firewall_fix_detail::text_for(block)});
  }
  return fixes;
}

}  // namespace distdoctor
