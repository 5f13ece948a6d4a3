#include "peers.h"

#include <fcntl.h>
#include <poll.h>
#include <strings.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

namespace distdoctor::sim {
namespace {

const Stop kNever = false;

// As NCCL reads numbers: strtoll in any base, 0 for words.
long long number_of(const char* name, long long otherwise) {
  const auto text = variable(name);
  return text.empty() ? otherwise : std::strtoll(text.c_str(), nullptr, 0);
}

// How many communicators the tests have made so far by this script.
std::uint64_t next_number() {
  const auto path = variable(kMarker) + ".runs";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return 0;
  ::flock(fd, LOCK_EX);
  std::uint64_t number = 0;
  if (::pread(fd, &number, sizeof number, 0) < 0) number = 0;
  ++number;
  if (::pwrite(fd, &number, sizeof number, 0) < 0) number = 0;
  ::close(fd);
  return number;
}

bool gather(int listener, std::vector<Peer>& peers, std::vector<int>& sockets) {
  std::size_t here = 0;
  do {
    const int fd = accept_from(listener, kNever);
    Peer peer;
    if (fd < 0 || !receive_all(fd, &peer, sizeof peer, kNever)) return false;
    if (peers.empty()) {
      peers.resize(static_cast<std::size_t>(peer.size));
      sockets.resize(peers.size(), -1);
    }
    const auto rank = static_cast<std::size_t>(peer.rank);
    if (static_cast<std::size_t>(peer.size) != peers.size() || rank >= peers.size()) return false;
    peers[rank] = peer;
    sockets[rank] = fd;
    ++here;
  } while (here < peers.size());
  return true;
}

void be_root(int listener) {
  std::vector<Peer> peers;
  std::vector<int> sockets;
  if (gather(listener, peers, sockets)) {
    for (const int fd : sockets) send_all(fd, peers.data(), peers.size() * sizeof(Peer), kNever);
  }
  for (const int fd : sockets) ::close(fd);
  ::close(listener);
}

std::vector<Hca> hcas_here() {
  std::vector<Hca> all = script()->hcas;
  std::string list = variable("NCCL_IB_HCA");
  if (list.empty()) return all;
  const bool unwanted = list.starts_with('^');
  if (unwanted) list.erase(0, 1);
  const bool exact = list.starts_with('=');
  if (exact) list.erase(0, 1);
  std::vector<std::string> names;
  std::istringstream words(list);
  for (std::string name; std::getline(words, name, ',');) {
    names.push_back(name.substr(0, name.find(':')));
  }
  std::erase_if(all, [&](const Hca& hca) {
    const bool named = std::ranges::any_of(names, [&](const std::string& name) {
      return exact ? hca.name == name : hca.name.starts_with(name);
    });
    return named == unwanted;
  });
  return all;
}

}  // namespace

bool serve_root(RootAddress& root) {
  const auto interfaces = socket_interfaces();
  if (interfaces.empty()) return false;
  root.address = interfaces.front().address;
  const int listener = listen_on(root.address);
  if (listener < 0) return false;
  std::memcpy(root.magic.data(), "SIMULATED NCCL", 14);
  root.number = next_number();
  std::thread(be_root, listener).detach();
  return true;
}

std::vector<Peer> meet(const RootAddress& root, const Peer& own, const Stop& stop) {
  const int fd = connect_to(root.address, stop);
  std::vector<Peer> peers(static_cast<std::size_t>(own.size));
  const bool met = fd >= 0 && send_all(fd, &own, sizeof own, stop) &&
                   receive_all(fd, peers.data(), peers.size() * sizeof(Peer), stop);
  if (fd >= 0) ::close(fd);
  if (!met) peers.clear();
  return peers;
}

Ways ways_here() {
  Ways ways{.interfaces = socket_interfaces()};
  const auto net = variable("NCCL_NET");
  const bool any = net.empty();
  const bool ib = (any || ::strcasecmp(net.c_str(), "IB") == 0) &&
                  number_of("NCCL_IB_DISABLE", 0) == 0 && !hcas_here().empty();
  if (ib) ways.hcas = hcas_here();
  if (ib) ways.network = "IB";
  if (!ib && (any || ::strcasecmp(net.c_str(), "Socket") == 0)) ways.network = "Socket";
  ways.p2p =
      script()->p2p && number_of("NCCL_P2P_DISABLE", 0) != 1 && variable("NCCL_P2P_LEVEL") != "LOC";
  ways.shm = number_of("NCCL_SHM_DISABLE", 0) != 1;
  ways.cumem = number_of("NCCL_CUMEM_ENABLE", 1) != 0;
  ways.gdr = variable("NCCL_NET_GDR_LEVEL") != "LOC";
  ways.pxn = number_of("NCCL_PXN_DISABLE", 0) != 1;
  ways.tree = variable("NCCL_ALGO") != "Ring";
  ways.nvls = ways.p2p && ways.tree && number_of("NCCL_NVLS_ENABLE", 2) != 0;
  ways.ll128 = variable("NCCL_PROTO") != "Simple";
  return ways;
}

Transport transport_between(const Ways& ways, const Peer& a, const Peer& b) {
  const bool together = a.node == b.node && a.shm_device == b.shm_device;
  if (together && ways.p2p) return Transport::p2p;
  if (together && ways.shm) return Transport::shm;
  return ways.network.empty() ? Transport::none : Transport::net;
}

}  // namespace distdoctor::sim
