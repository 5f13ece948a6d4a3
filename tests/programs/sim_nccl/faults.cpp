#include "faults.h"

#include <algorithm>
#include <cmath>

namespace distdoctor::sim {
namespace {

bool is_at(const Peer& peer, const Place& place) {
  return place.node == peer.node.data() && (place.device < 0 || place.device == peer.device);
}

bool between_nodes(const std::vector<Peer>& peers) {
  return std::ranges::any_of(peers,
                             [&](const Peer& peer) { return peer.node != peers.front().node; });
}

// Whether a fault of what connects two ranks is on the way between these.
bool covers(const Fault& fault, const Peer& a, const Peer& b) {
  const auto& places = fault.places;
  if (places.empty()) return true;
  if (places.size() == 1) return is_at(a, places[0]) || is_at(b, places[0]);
  return (is_at(a, places[0]) && is_at(b, places[1])) ||
         (is_at(b, places[0]) && is_at(a, places[1]));
}

// All pairs count: NCCL's channels go through them in different orders.
class Meeting {
 public:
  Meeting(const Ways& ways, const std::vector<Peer>& peers, const Peer& own)
      : ways_(ways), peers_(peers), own_(own) {}

  // Whether the communicator uses it at all, and whether this rank does.
  [[nodiscard]] bool used(const Fault& fault) const {
    return std::ranges::any_of(peers_, [&](const Peer& peer) { return by(fault, peer); });
  }
  [[nodiscard]] bool used_here(const Fault& fault) const { return by(fault, own_); }

 private:
  [[nodiscard]] bool connects(const Fault& fault, const Peer& one, Transport transport) const {
    return std::ranges::any_of(peers_, [&](const Peer& other) {
      return other.rank != one.rank && transport_between(ways_, one, other) == transport &&
             covers(fault, one, other);
    });
  }
  [[nodiscard]] bool has(const std::string& name, const auto& all) const {
    return std::ranges::any_of(all, [&](const auto& one) { return one.name == name; });
  }

  [[nodiscard]] bool by(const Fault& fault, const Peer& peer) const {
    const std::string& layer = fault.layer;
    const auto at_place = [&] { return fault.places.empty() || is_at(peer, fault.places[0]); };
    if (layer == "node" || layer == "gpu") return at_place();
    if (layer == "setting") return at_place() && setting_is(fault.name);
    if (layer == "p2p") return connects(fault, peer, Transport::p2p);
    if (layer == "cumem") return ways_.cumem && connects(fault, peer, Transport::p2p);
    if (layer == "nvls") return ways_.nvls && connects(fault, peer, Transport::p2p);
    if (layer == "shm") return connects(fault, peer, Transport::shm);
    if (layer == "tree") return ways_.tree && peers_.size() > 1 && at_place();
    if (layer == "ll128") return ways_.ll128 && peers_.size() > 1 && at_place();
    return connects(fault, peer, Transport::net) && by_network(fault);
  }

  [[nodiscard]] bool by_network(const Fault& fault) const {
    const std::string& layer = fault.layer;
    if (layer == "wire" || layer == "net") return between_nodes(peers_) || layer == "net";
    if (layer == "socket") return ways_.hcas.empty();
    if (layer == "iface") return ways_.hcas.empty() && has(fault.name, ways_.interfaces);
    if (layer == "ib") return !ways_.hcas.empty();
    if (layer == "gdr") return !ways_.hcas.empty() && ways_.gdr;
    if (layer == "pxn") return !ways_.hcas.empty() && ways_.pxn;
    return layer == "hca" && has(fault.name, ways_.hcas);
  }

  static bool setting_is(const std::string& setting) {
    const auto equals = setting.find('=');
    return variable(setting.substr(0, equals).c_str()) == setting.substr(equals + 1);
  }

  const Ways& ways_;
  const std::vector<Peer>& peers_;
  const Peer& own_;
};

// The same on all ranks: from the communicator's number.
bool this_time(const Fault& fault, std::uint64_t number) {
  if (fault.every > 1) return number % static_cast<std::uint64_t>(fault.every) == 0;
  const auto mixed = (number * 0x9e3779b97f4a7c15U) >> 11U;
  return static_cast<double>(mixed) / std::pow(2.0, 53) < fault.probability;
}

}  // namespace

std::vector<Struck> strikes(const Ways& ways,
                            const std::vector<Peer>& peers,
                            const Peer& own,
                            std::uint64_t number) {
  const Meeting meeting(ways, peers, own);
  std::vector<Struck> found;
  for (const Fault& fault : script()->faults) {
    if (!this_time(fault, number) || !meeting.used(fault)) continue;
    found.push_back({.fault = fault, .here = meeting.used_here(fault)});
  }
  return found;
}

std::string words_of(const Fault& fault) {
  if (fault.layer == "shm") {
    return "Error while creating shared memory segment /dev/shm/nccl-SIMULATED (size 9637888), "
           "error: Input/output error (5)";
  }
  if (fault.layer == "nvls") {
    return "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 536870912 : CUDA error 2 "
           "'SIMULATED'";
  }
  if (fault.layer == "ib" || fault.layer == "hca" || fault.layer == "gdr") {
    return "NET/IB: Got completion from peer 10.0.0.1<1> with status=IBV_WC_RETRY_EXC_ERR(12) "
           "opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 req_type=Send SIMULATED";
  }
  if (fault.layer == "p2p") {
    return "Cuda failure 217 'peer access is not supported between these two devices' SIMULATED";
  }
  return "Cuda failure 700 'an illegal memory access was encountered' SIMULATED";
}

double seconds_of(const Ways& ways,
                  const std::vector<Peer>& peers,
                  const std::vector<Struck>& faults,
                  std::size_t bytes) {
  const auto& speeds = script()->gb_per_s;
  double slowest = 1e9;
  for (std::size_t i = 0; i < peers.size() && peers.size() > 1; ++i) {
    const auto transport = transport_between(ways, peers[i], peers[(i + 1) % peers.size()]);
    double here = speeds.at("p2p");
    if (transport == Transport::shm) here = speeds.at("shm");
    if (transport == Transport::net && ways.hcas.empty()) here = speeds.at("socket");
    if (transport == Transport::net && !ways.hcas.empty()) {
      here = 0;
      for (const Hca& hca : ways.hcas) here += 0.9 * hca.gbps / 8;
    }
    slowest = std::min(slowest, here);
  }
  for (const Struck& struck : faults) {
    if (struck.fault.ailment == "slow") slowest /= struck.fault.times;
  }
  const auto n = static_cast<double>(peers.size());
  return 2 * (n - 1) / n * static_cast<double>(bytes) / 1e9 / slowest;
}

}  // namespace distdoctor::sim
