// How the ranks of a SIMULATED communicator meet, and by what each pair of them is connected.
#pragma once

#include "script.h"
#include "sockets.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace distdoctor::sim {

// Fits in ncclUniqueId: a magic, where the root listens, and the communicator's number.
struct RootAddress {
  std::array<char, 16> magic = {};
  sockaddr_in address = {};
  std::uint64_t number = 0;
};

struct Peer {
  std::array<char, 64> node = {};
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::int32_t device = 0;
  std::int32_t pid = 0;
  std::uint64_t shm_device = 0;
  sockaddr_in ring = {};  // where it waits for the rank before it
};

inline constexpr const char* kBadRoot = "mismatch in info from procs";

// Serves the root in a thread of its own: gathers all peers, and sends all of them to each.
// False: no socket.
bool serve_root(RootAddress& root);
// All peers by rank; empty: stopped, or the root is gone.
std::vector<Peer> meet(const RootAddress& root, const Peer& own, const Stop& stop);

// What NCCL decides once a process, from its environment.
struct Ways {
  std::vector<Interface> interfaces = {};
  std::vector<Hca> hcas = {};  // in use; empty: NET/Socket
  std::string network = {};    // "IB" or "Socket"; empty: NCCL_NET names none that is there
  bool p2p = true;
  bool shm = true;
  bool cumem = true;
  bool nvls = true;
  bool gdr = true;
  bool pxn = true;
  bool tree = true;
  bool ll128 = true;
};
Ways ways_here();

enum class Transport : std::uint8_t { none, p2p, shm, net };
Transport transport_between(const Ways& ways, const Peer& a, const Peer& b);

}  // namespace distdoctor::sim
