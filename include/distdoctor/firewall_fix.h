// The commands that let the peers of a job through a node's own packet filter, for exactly these
// addresses and ports. Which rule drops is not read yet, so the command asks on the node who owns
// the filter: firewalld, ufw, or whoever wrote iptables and nftables rules by hand. It is a script
// of short lines, since nobody can judge a long one.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/finding.h>
#include <distdoctor/quote.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

struct PortRange {  // TCP, both ends included
  std::uint16_t first;
  std::uint16_t last;
  bool operator==(const PortRange&) const = default;

  // "29500" or "32768-60999"; ufw and iptables want a colon.
  [[nodiscard]] std::string text(char separator = '-') const {
    return first == last ? std::to_string(first)
                         : std::to_string(first) + separator + std::to_string(last);
  }
};

enum class Way : std::uint8_t { in, out };  // connections that the peers open, or that we open

namespace firewall_fix_detail {

// firewalld filters what comes in; an interface that no zone names is in the default zone.
inline std::string through_firewalld(bool v6, PortRange ports, std::string_view interface) {
  std::string text;
  std::string zone;
  if (!interface.empty()) {
    zone = "--zone=\"$zone\" ";
    text = "    zone=$(firewall-cmd --get-zone-of-interface=" + shell_quote(interface) +
           " 2>/dev/null || firewall-cmd --get-default-zone)\n";
  }
  return text + "    firewall-cmd " + zone +
         "--add-rich-rule=\"rule family=" + (v6 ? "ipv6" : "ipv4") +
         " source address=$p port port=" + ports.text() + " protocol=tcp accept\"\n";
}

inline std::string through_ufw(Way way, PortRange ports) {
  return "    ufw prepend allow " +
         std::string(way == Way::in ? "proto tcp from $p to any" : "out proto tcp to $p") +
         " port " + ports.text(':') + "\n";
}

// The chain that iptables made is left to iptables, be it the legacy one that nft does not see.
inline std::string through_iptables(Way way, bool v6, PortRange ports) {
  const std::string command = v6 ? "ip6tables" : "iptables";
  const std::string chain = way == Way::in ? "INPUT" : "OUTPUT";
  return "    if " + command + " -S " + chain + " 2>/dev/null | grep -qv -- '-P " + chain +
         " ACCEPT'; then\n      " + command + " -I " + chain + (way == Way::in ? " -s" : " -d") +
         " $p -p tcp --dport " + ports.text(':') + " -j ACCEPT\n    fi\n";
}

// `accept` ends one base chain only, so that each of the hook that may end a packet gets the rule.
inline std::string through_nft(Way way, bool v6, PortRange ports) {
  const std::string family = v6 ? "ip6" : "ip";
  const std::string iptables = family + " filter " + (way == Way::in ? "INPUT" : "OUTPUT");
  return "    nft list chains 2>/dev/null |\n"
         "      awk '/^table/ {t = $2 \" \" $3} /chain/ {c = t \" \" $2}\n"
         "        /hook " +
         std::string(way == Way::in ? "input" : "output") + "/ && c ~ /^(inet|" + family +
         ") / && c != \"" + iptables +
         "\" {print c}' |\n"
         "      while read -r f t c; do\n"
         "        nft list chain $f $t $c | grep -Eq 'drop|reject|jump|goto|map|queue' || "
         "continue\n"
         "        nft insert rule $f $t $c " +
         family + (way == Way::in ? " saddr" : " daddr") + " $p tcp dport " + ports.text() +
         " accept\n"
         "      done\n";
}

// One step a line, so that whoever pastes it as root can read it first.
inline std::string command(
    Way way, bool v6, const std::string& peers, PortRange ports, std::string_view interface) {
  std::string text = "for p in" + peers + "; do\n  if ";
  if (way == Way::in) {
    text += "firewall-cmd -q --state 2>/dev/null; then\n" +
            through_firewalld(v6, ports, interface) + "  elif ";
  }
  return text + "ufw status 2>/dev/null | grep -q '^Status: active'; then\n" +
         through_ufw(way, ports) + "  else\n" + through_iptables(way, v6, ports) +
         through_nft(way, v6, ports) + "  fi\ndone";
}

}  // namespace firewall_fix_detail

struct Opening {
  std::string node;
  std::vector<Address> peers;  // who may come in, or where we may go
  PortRange ports;
  std::string interface = {};  // of the node that the packets pass; empty: not known
  Way way = Way::in;
};

// One fix for each address family that the peers have; none without peers. To be run by root's
// shell; running it again adds the same rules once more and harms nothing.
inline std::vector<Fix> open_port_fix(const Opening& opening) {
  std::vector<Fix> fixes;
  for (const bool v6 : {false, true}) {
    std::string peers;
    for (const Address& peer : opening.peers) {
      if (peer.v6 != v6) continue;
      Address bare = peer;
      bare.zone.clear();
      peers += " " + bare.text();
    }
    if (peers.empty()) continue;
    fixes.push_back({.node = opening.node,
                     .kind = Fix::Kind::shell,
                     .command = firewall_fix_detail::command(opening.way, v6, peers, opening.ports,
                                                             opening.interface),
                     .text = "as root; through firewalld or ufw where one is active, else one rule "
                             "at the top of each chain that may drop; make it permanent in the way "
                             "of that tool"});
  }
  return fixes;
}

}  // namespace distdoctor
