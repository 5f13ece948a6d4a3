// The text file named by DISTDOCTOR_SIM_GPUS: what the SIMULATED libcuda.so.1 and libnccl.so.2 of
// the tests pretend to have, and what is wrong with it. One thing a line, '#' begins a comment:
//
//   gpus 8                              on each node (default 8)
//   hca mlx5_0 100                      an RDMA card of so many Gb/s, on each node
//   lacks p2p                           GPUs that cannot reach each other
//   speed p2p|shm|socket 20             bus bandwidth in GB/s (10^9 bytes)
//   fault LAYER [NAME] [PLACE [PLACE]] AILMENT [TIMES] [from K] [every N] [probability P]
//
// LAYER: p2p shm cumem nvls net socket ib gdr pxn tree ll128 (what carries data), iface NAME, hca
// NAME, setting NAME=VALUE (in the environment), node PLACE, gpu PLACE, wire PLACE PLACE (between
// two nodes), driver (the CUDA driver itself). PLACE: node0 or node0:3; a fault of a layer without
// one is everywhere. AILMENT: hang, deaf (a hang that no abort ends), fail, corrupt, crash, slow
// TIMES. `from K`: from the K-th all-reduce on. `every N`: in each N-th communicator only, counted
// in FILE.runs. `probability P`: of each communicator.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::sim {

inline constexpr const char* kMarker = "DISTDOCTOR_SIM_GPUS";

struct Place {
  std::string node = {};
  int device = -1;  // all of the node
};

struct Fault {
  std::string layer = {};
  std::string name = {};
  std::vector<Place> places = {};
  std::string ailment = {};
  double times = 1;
  int from = 1;
  int every = 1;
  double probability = 1;
};

struct Hca {
  std::string name = {};
  double gbps = 0;
};

struct Script {
  int gpus = 8;
  bool p2p = true;
  std::vector<Hca> hcas = {};
  std::map<std::string, double> gb_per_s = {{"p2p", 20}, {"shm", 8}, {"socket", 4}};
  std::vector<Fault> faults = {};
};

// Null without the tests' variable: then nothing may pretend to be there.
const Script* script();

// Of this machine, as the script calls it: NCCL_HOSTID, or the host's name.
std::string own_node();
std::string variable(const char* name);

}  // namespace distdoctor::sim
