#include "bisect/switches.h"

#include <distdoctor/fault_class.h>

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <utility>

namespace distdoctor::bisect {
namespace {

constexpr int kFirst = 1000;  // above every count of reports

int reports(std::initializer_list<FaultClass> classes) {
  int sum = 0;
  for (const FaultClass one : classes) sum += prior(one);
  return sum;
}

using Classes = std::initializer_list<FaultClass>;

// --- the switches ---

using enum FaultClass;

Candidate p2p_off() {
  return {Layer::p2p,
          "P2P off",
          {{"NCCL_P2P_DISABLE", "1"}},
          {},
          reports({p2p_broken_acs, p2p_consumer_gpu})};
}
Candidate shm_off() {
  return {
      Layer::shm, "SHM off", {{"NCCL_SHM_DISABLE", "1"}}, {}, reports({shm_small, unknown_shm})};
}
// Both at once: what is inside a node goes by the network.
Candidate both_off() {
  return {
      Layer::p2p, "P2P and SHM off", {{"NCCL_P2P_DISABLE", "1"}, {"NCCL_SHM_DISABLE", "1"}}, {}, 3};
}
Candidate nvls_off() {
  return {Layer::nvls, "NVLS off", {{"NCCL_NVLS_ENABLE", "0"}}, {}, reports({fabric_manager})};
}
// NCCL_IB_DISABLE alone would leave an external plugin in place.
Candidate sockets_only() {
  return {Layer::ib,
          "sockets only",
          {{"NCCL_NET", "Socket"}, {"NCCL_NET_PLUGIN", "none"}},
          {},
          reports({gdr_broken_acs, plugin_mismatch, ib_broken, ib_fabric_partition, roce_gid,
                   ib_retry_timeout})};
}
Candidate gdr_off() {
  return {Layer::gdr, "GDR off", {{"NCCL_NET_GDR_LEVEL", "LOC"}}, {}, reports({gdr_broken_acs})};
}
Candidate plugin_off() {
  return {Layer::plugin,
          "no network plugin",
          {{"NCCL_NET_PLUGIN", "none"}},
          {},
          reports({plugin_mismatch})};
}
Candidate one_rail() {
  return {Layer::rail, "same rail only", {{"NCCL_CROSS_NIC", "0"}}, {}, reports({rail_topology})};
}
Candidate pxn_off() {
  return {Layer::pxn, "PXN off", {{"NCCL_PXN_DISABLE", "1"}}, {}, reports({pxn})};
}
Candidate cumem_off() {
  return {Layer::cumem, "CUMEM off", {{"NCCL_CUMEM_ENABLE", "0"}}, {}, reports({imex})};
}
Candidate tuner_off() {
  return {Layer::tuner, "tuner off", {{"NCCL_TUNER_PLUGIN", "none"}}, {}, 0};
}
Candidate ring() {
  return {Layer::algorithm, "ALGO=Ring", {{"NCCL_ALGO", "Ring"}}, {}, reports({nccl_algo_env})};
}
Candidate simple() {
  return {Layer::protocol, "PROTO=Simple", {{"NCCL_PROTO", "Simple"}}, {}, reports({nccl_bug}) - 1};
}

// Without what the job itself has set: an empty value unsets.
Candidate own_off(const Shape& shape) {
  Candidate candidate{
      .layer = Layer::settings, .what = "without the job's own switches", .weight = 2 * kFirst};
  for (const auto& [name, value] : shape.own) candidate.switches[name] = "";
  return candidate;
}

std::string listed(const std::vector<std::string>& names) {
  return "=" + join(names, ",");
}

// Gloo takes exact names, and one device for each: a name that another node lacks breaks it.
Switches by_wire(const Shape& shape, const Wire& wire) {
  if (!shape.nccl()) return {{"GLOO_SOCKET_IFNAME", wire.interfaces.front()}};
  return {{"NCCL_SOCKET_IFNAME", listed(wire.interfaces)}};
}

// What is in use beside the wire.
std::vector<std::string> other_interfaces(const Shape& shape, const Wire& wire) {
  std::vector<std::string> others;
  for (const std::string& name : shape.interfaces_in_use) {
    const bool kept = std::ranges::find(wire.interfaces, name) != wire.interfaces.end();
    if (!kept) others.push_back(name);
  }
  return others;
}

// Each wire alone; the only one in use would be the baseline once more.
std::vector<Candidate> wires_alone(const Shape& shape) {
  std::vector<Candidate> all;
  for (const Wire& wire : shape.wires) {
    if (!shape.nccl() && wire.interfaces.size() > 1) continue;
    Candidate candidate{.layer = Layer::interface,
                        .what = "by " + join(wire.interfaces, ",") + " alone",
                        .switches = by_wire(shape, wire),
                        .names = other_interfaces(shape, wire),
                        .weight = shape.rdma ? 2 : reports({iface_wrong})};
    if (!candidate.names.empty()) all.push_back(std::move(candidate));
  }
  return all;
}

// HCAs that NCCL would not take by itself; none where it takes all there are.
std::vector<Candidate> hcas_alone(const Shape& shape) {
  std::vector<Candidate> all;
  for (const std::string& name : shape.hcas) {
    const bool used = std::ranges::find(shape.hcas_in_use, name) != shape.hcas_in_use.end();
    if (used || shape.hcas_in_use.empty()) continue;
    all.push_back({.layer = Layer::hca,
                   .what = "by " + name + " alone",
                   .switches = only_hcas({name}),
                   .names = shape.hcas_in_use,
                   .weight = 1});
  }
  return all;
}

// --- what cannot matter ---

bool matters(const Shape& shape, const Options& options, const Candidate& candidate) {
  if (!allowed(options, candidate.layer)) return false;
  if (!shape.nccl()) return candidate.layer == Layer::interface;
  // What the job has set already would be the baseline once more.
  const bool already = std::ranges::all_of(candidate.switches, [&](const auto& one) {
    const auto own = shape.own.find(one.first);
    return own != shape.own.end() && own->second == one.second;
  });
  if (already) return false;
  switch (candidate.layer) {
    case Layer::p2p:
    case Layer::shm:
    case Layer::cumem:
      return shape.shared_nodes;
    case Layer::nvls:
      return shape.nvswitch;
    case Layer::ib:
      return shape.between_nodes() && (shape.rdma || shape.net_plugin);
    case Layer::gdr:
      return shape.between_nodes() && shape.rdma;
    case Layer::plugin:
      return shape.between_nodes() && shape.net_plugin;
    case Layer::rail:
      return shape.between_nodes() && shape.hcas.size() > 1;
    case Layer::pxn:
      return shape.between_nodes() && shape.shared_nodes && shape.rdma;
    case Layer::streams:
      return shape.between_nodes();
    case Layer::tuner:
      return shape.tuner_plugin;
    case Layer::settings:
      return !shape.own.empty();
    default:
      return true;
  }
}

void arrange(std::vector<Candidate>& all, const Shape& shape, const Options& options) {
  std::erase_if(all, [&](const Candidate& one) { return !matters(shape, options, one); });
  // By hand, since equal weights keep their order.
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(i);
    const auto place = std::find_if(all.begin(), end,
                                    [&](const Candidate& one) { return one.weight < end->weight; });
    std::rotate(place, end, end + 1);
  }
}

void append(std::vector<Candidate>& all, std::vector<Candidate> more) {
  std::ranges::move(more, std::back_inserter(all));
}

// --- what the baseline says ---

// Its ranks connected, and say by what.
bool transports_known(const Experiment& baseline) {
  return !baseline.ranks.empty() && std::ranges::none_of(baseline.ranks, [](const RankRun& rank) {
    return rank.transports.empty();
  });
}

bool uses(const Experiment& baseline, std::string_view word) {
  return std::ranges::any_of(baseline.ranks, [&](const RankRun& rank) {
    return std::ranges::any_of(rank.transports, [&](const std::string& transport) {
      return transport.find(word) != std::string::npos;
    });
  });
}

struct Words {
  Layer layer;
  std::string_view word;
};
constexpr std::array<Words, 9> kWords = {{{Layer::nvls, "NVLS"},
                                          {Layer::nvls, "Multicast"},
                                          {Layer::ib, "NET/IB"},
                                          {Layer::ib, "ibv_"},
                                          {Layer::ib, "NET/OFI"},
                                          {Layer::shm, "/dev/shm"},
                                          {Layer::shm, "shared memory"},
                                          {Layer::cumem, "cuMem"},
                                          {Layer::p2p, "peer access"}}};

bool blamed(const Experiment& baseline, Layer layer) {
  return std::ranges::any_of(baseline.ranks, [&](const RankRun& rank) {
    return std::ranges::any_of(kWords, [&](const Words& words) {
      return words.layer == layer && rank.error.find(words.word) != std::string::npos;
    });
  });
}

// By what the transports of all ranks are called (NCCL's "via ..." lines).
bool out_of_use(const Experiment& baseline, const Candidate& candidate) {
  if (!transports_known(baseline) || candidate.switches.size() > 1) return false;
  if (blamed(baseline, candidate.layer)) return false;
  switch (candidate.layer) {
    case Layer::p2p:
      return !uses(baseline, "P2P");
    case Layer::shm:
      return !uses(baseline, "SHM");
    case Layer::gdr:
      return !uses(baseline, "GDRDMA");
    default:
      return false;
  }
}

}  // namespace

bool allowed(const Options& options, Layer layer) {
  return options.only.empty() || std::ranges::find(options.only, layer) != options.only.end();
}

bool speaks_of_shm(const RankRun& rank) {
  return rank.error.find("/dev/shm") != std::string::npos ||
         rank.error.find("shared memory") != std::string::npos;
}

Switches only_hcas(const std::vector<std::string>& names) {
  return {{"NCCL_IB_HCA", listed(names)}};
}

Switches all_but_hcas(const std::vector<std::string>& names) {
  return {{"NCCL_IB_HCA", "^" + listed(names)}};
}

std::vector<Candidate> when_broken(const Shape& shape,
                                   const Options& options,
                                   const Experiment& baseline) {
  std::vector<Candidate> all = {own_off(shape), p2p_off(),   shm_off(),   both_off(), nvls_off(),
                                sockets_only(), cumem_off(), tuner_off(), ring(),     simple()};
  // Where there is RDMA those are parts of the sockets-only run, and sought when that works.
  append(all, wires_alone(shape));
  std::erase_if(all, [&](const Candidate& one) { return out_of_use(baseline, one); });
  for (Candidate& one : all) {
    if (blamed(baseline, one.layer)) one.weight += kFirst;
  }
  // With an NVSwitch no bridge stands between the GPUs.
  for (Candidate& one : all) {
    if (one.layer == Layer::nvls && shape.nvswitch) one.weight += reports({p2p_broken_acs});
  }
  arrange(all, shape, options);
  return all;
}

std::vector<Candidate> within(const Candidate& broad, const Shape& shape, const Options& options) {
  std::vector<Candidate> all;
  if (broad.layer == Layer::ib) all = {gdr_off(), plugin_off(), one_rail(), pxn_off()};
  if (broad.layer == Layer::p2p && broad.switches.size() == 1) all = {nvls_off(), cumem_off()};
  arrange(all, shape, options);
  return all;
}

std::vector<Candidate> when_slow(const Shape& shape, const Options& options, bool between_nodes) {
  const Candidate more_streams{Layer::streams,
                               "more TCP connections",
                               {{"NCCL_SOCKET_NTHREADS", "4"}, {"NCCL_NSOCKS_PERTHREAD", "4"}},
                               {},
                               shape.rdma ? 0 : reports({socket_single_stream})};
  const Candidate gdr_anywhere{Layer::gdr,
                               "GDR at any distance",
                               {{"NCCL_NET_GDR_LEVEL", "SYS"}},
                               {},
                               reports({gdr_disabled}) - 1};
  const Candidate p2p_anywhere{
      Layer::p2p, "P2P at any distance", {{"NCCL_P2P_LEVEL", "SYS"}}, {}, reports({p2p_level})};
  std::vector<Candidate> all = {own_off(shape), gdr_off(), gdr_anywhere,   more_streams,
                                one_rail(),     pxn_off(), sockets_only(), plugin_off()};
  append(all, wires_alone(shape));
  append(all, hcas_alone(shape));
  for (Candidate& one : all) one.weight += between_nodes ? kFirst / 2 : 0;
  append(all, {p2p_off(), p2p_anywhere, nvls_off(), shm_off(), cumem_off(), tuner_off(), ring(),
               simple()});
  arrange(all, shape, options);
  return all;
}

}  // namespace distdoctor::bisect
