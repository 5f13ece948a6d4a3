// What NCCL, Gloo and torch would choose on a node with its settings; computed by src/rules at the
// coordinator, never by an agent, so that recorded facts are judged by today's rules.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/enum_names.h>
#include <distdoctor/job.h>
#include <distdoctor/observed.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

struct Choice {
  std::string interface = {};  // the name that the library prints: an IPv4 alias has its label
  Address address = {};
  bool operator==(const Choice&) const = default;
};

// NCCL's interface rules changed twice that matter (socket.cc findInterfaces).
enum class NcclRules : std::uint8_t { to_2_22, to_2_27, from_2_28_3 };
template <>
struct EnumNames<NcclRules> {
  static constexpr std::string_view values[] = {"<=2.22", "2.23-2.27", "2.28.3+"};
};

struct NcclChoice {
  NcclRules rules = NcclRules::from_2_28_3;
  std::optional<Choice> bootstrap = {};
  std::string bootstrap_error = {};     // NCCL's own words, e.g. "no socket interface found"
  std::vector<Choice> net_socket = {};  // in NCCL's order, 16 at most
  std::string net_socket_error = {};
  bool operator==(const NcclChoice&) const = default;
};

// An RDMA port that NCCL's NET/IB would use (net_ib.cc ncclIbInit).
struct HcaChoice {
  std::string device = {};
  int port = 1;
  bool roce = false;
  std::optional<int> gid_index = {};  // of RoCE; none: no GID of the port would do
  bool operator==(const HcaChoice&) const = default;
};

enum class HcaPassed : std::uint8_t { filtered, not_active, not_usable, too_many };
template <>
struct EnumNames<HcaPassed> {
  // by NCCL_IB_HCA; by its state or link layer; no device node to open; beyond NCCL's table
  static constexpr std::string_view values[] = {"filtered", "not active", "not usable", "too many"};
};

struct HcaLeftOut {
  std::string device = {};
  int port = 1;
  HcaPassed why = HcaPassed::filtered;
  bool operator==(const HcaLeftOut&) const = default;
};

struct NcclHcas {
  std::vector<HcaChoice> used = {};  // in NCCL's order; empty: NCCL falls back to sockets
  // Ports of one card that NCCL 2.20 and later make one device of, "mlx5_0:1" and "mlx5_1:1"
  // (NCCL_IB_MERGE_NICS); in NCCL's order.
  std::vector<std::vector<std::string>> merged = {};
  std::vector<HcaLeftOut> left_out = {};
  std::string disabled_by = {};  // "NCCL_IB_DISABLE", "NCCL_NET", or empty
  bool operator==(const NcclHcas&) const = default;
};

// Why Gloo takes its address (tcp/device.cc): decides which mending makes sense.
enum class GlooReason : std::uint8_t { variable, hostname, fallback };
template <>
struct EnumNames<GlooReason> {
  // GLOO_SOCKET_IFNAME; getaddrinfo of the own hostname; loopback since that does not resolve
  static constexpr std::string_view values[] = {"variable", "hostname", "fallback"};
};

struct GlooChoice {
  std::vector<Choice> devices = {};  // one, or one for each name in GLOO_SOCKET_IFNAME
  std::string error = {};            // Gloo's own words
  GlooReason reason = GlooReason::hostname;
  bool operator==(const GlooChoice&) const = default;
};

// How the value or the name of a variable goes another way than it looks.
enum class VariableTrap : std::uint8_t {
  none,
  word,      // "true" where NCCL reads a number (strtoll, base 0): 0
  rest,      // "8x": 8, what follows the digits is dropped
  octal,     // "022": 18
  exact,     // a switch that counts only as 1 has another number
  unknown,   // a word that no version knows: as if it was not set
  refused,   // a word that makes NCCL 2.24 and later fail when it starts
  silenced,  // it keeps even NCCL's warnings from being printed
  misspelt   // a name that nobody reads
};
template <>
struct EnumNames<VariableTrap> {
  static constexpr std::string_view values[] = {
      "none", "word", "rest", "octal", "exact", "unknown", "refused", "silenced", "misspelt"};
};

// What NCCL makes of a variable in force.
struct VariableReading {
  std::string name = {};
  // The number, or the word as NCCL's sources write it; empty: as if it was not set. Of a misspelt
  // name: the one that was meant.
  std::string taken_as = {};
  bool as_default = false;  // what every known version does without it, too
  VariableTrap trap = VariableTrap::none;
  bool operator==(const VariableReading&) const = default;
};

// One node's predictions. `nccl` follows the version in use when that is known; else it is today's
// rules, and `nccl_others` holds the choices of older rules where they differ.
struct Prediction {
  std::string node = {};
  Settings settings = {};  // in force on this node: shared ones, the node's own, its config files
  std::vector<VariableReading> variables = {};  // of `settings`, what is NCCL's, by name
  Observed<NcclChoice> nccl = {};
  std::vector<NcclChoice> nccl_others = {};
  bool nccl_version_known = false;
  Observed<NcclHcas> hcas = {};
  Observed<GlooChoice> gloo = {};
  // torchrun's c10d: does this node take the endpoint for itself and host the store?
  Observed<bool> hosts_endpoint = {};
  bool operator==(const Prediction&) const = default;
};

// Settings that would make the choice right on every node, proved against the facts.
struct Recommended {
  // "*" for all nodes, or one entry a node; empty when nothing needs to be set or nothing helps.
  std::map<std::string, std::map<std::string, std::string>> env = {};
  std::map<std::string, std::string> reasons = {};  // by variable: why it is right
  bool operator==(const Recommended&) const = default;
};

// Where MASTER_ADDR:MASTER_PORT (or torchrun's endpoint) leads, worked out over all nodes.
struct Master {
  std::string host = {};  // as written
  std::optional<std::uint16_t> port = {};
  std::string node = {};  // the peer that has the address; empty: none of them, or unknown
  std::vector<Address> addresses = {};  // that the peers would dial, each once
  bool endpoint = false;                // it is torchrun's c10d rendezvous endpoint
  bool operator==(const Master&) const = default;
};

struct Predicted {
  std::vector<Prediction> nodes = {};  // as ClusterFacts.nodes
  std::optional<Master> master = {};   // none: no setting was seen
  Recommended recommended = {};
  bool operator==(const Predicted&) const = default;
};

template <class V, Is<Choice> T>
void fields(V& v, T& x) {
  v("interface", x.interface);
  v("address", x.address);
}
template <class V, Is<NcclChoice> T>
void fields(V& v, T& x) {
  v("rules", x.rules);
  v("bootstrap", x.bootstrap);
  v("bootstrap_error", x.bootstrap_error);
  v("net_socket", x.net_socket);
  v("net_socket_error", x.net_socket_error);
}
template <class V, Is<HcaChoice> T>
void fields(V& v, T& x) {
  v("device", x.device);
  v("port", x.port);
  v("roce", x.roce);
  v("gid_index", x.gid_index);
}
template <class V, Is<HcaLeftOut> T>
void fields(V& v, T& x) {
  v("device", x.device);
  v("port", x.port);
  v("why", x.why);
}
template <class V, Is<NcclHcas> T>
void fields(V& v, T& x) {
  v("used", x.used);
  v("merged", x.merged);
  v("left_out", x.left_out);
  v("disabled_by", x.disabled_by);
}
template <class V, Is<GlooChoice> T>
void fields(V& v, T& x) {
  v("devices", x.devices);
  v("error", x.error);
  v("reason", x.reason);
}
template <class V, Is<VariableReading> T>
void fields(V& v, T& x) {
  v("name", x.name);
  v("taken_as", x.taken_as);
  v("as_default", x.as_default);
  v("trap", x.trap);
}
template <class V, Is<Prediction> T>
void fields(V& v, T& x) {
  v("node", x.node);
  v("settings", x.settings);
  v("variables", x.variables);
  v("nccl", x.nccl);
  v("nccl_others", x.nccl_others);
  v("nccl_version_known", x.nccl_version_known);
  v("hcas", x.hcas);
  v("gloo", x.gloo);
  v("hosts_endpoint", x.hosts_endpoint);
}
template <class V, Is<Recommended> T>
void fields(V& v, T& x) {
  v("env", x.env);
  v("reasons", x.reasons);
}
template <class V, Is<Master> T>
void fields(V& v, T& x) {
  v("host", x.host);
  v("port", x.port);
  v("node", x.node);
  v("addresses", x.addresses);
  v("endpoint", x.endpoint);
}
template <class V, Is<Predicted> T>
void fields(V& v, T& x) {
  v("nodes", x.nodes);
  v("master", x.master);
  v("recommended", x.recommended);
}

}  // namespace distdoctor
