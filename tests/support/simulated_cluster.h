// A SIMULATED cluster: facts, and a fault somewhere in it. It answers a planned run as NCCL would
// by its own rules: peer-to-peer access, else shared memory, else the network; a ring over the
// ranks. No process runs, no byte moves.
#pragma once

#include <distdoctor/facts.h>

#include "bisect/bisect.h"

#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace distdoctor::testing {

struct SimulatedShape {
  std::size_t nodes = 2;
  int gpus = 4;           // on each node
  bool nvswitch = false;  // else PCIe 4.0 x16, one root port for each GPU
  int hcas = 0;           // of 200 Gb/s, on each node; 0: TCP by eth1 of 25 Gb/s
  bool plugin = false;    // a network plugin is installed
};

// Where `places` has two GPUs the fault lies between them, else in each place; none: everywhere.
struct SimulatedFault {
  Layer layer = Layer::none;
  Ailment ailment = Ailment::hangs;
  std::vector<RunPlace> places = {};
  std::vector<std::string> names = {};  // HCAs, interfaces, or variables of the job's own
  double probability = 1;               // that it shows in a run
  bool only_with_others = false;        // a GPU or node that is sound alone
  int pools_that_fit = 0;               // above 0: in each /dev/shm, by ranks
};

class SimulatedCluster {
 public:
  SimulatedCluster(const SimulatedShape& shape, SimulatedFault fault, unsigned seed = 1);

  // The planned run with its outcome.
  Experiment run(Experiment planned);
  // From the first run to the last: what the planner ends with.
  bisect::Step bisected();

  [[nodiscard]] std::size_t runs() const { return facts.experiments.size(); }

  ClusterFacts facts;
  bisect::Options options;
  std::vector<std::string> deaf = {};  // switches that no library of this cluster heeds

 private:
  struct Connection;

  [[nodiscard]] std::string env(const Experiment& run, const std::string& name) const;
  [[nodiscard]] std::vector<Connection> connections(const Experiment& run) const;
  [[nodiscard]] Connection connect(const Experiment& run, RunPlace from, RunPlace to) const;
  void by_network(const Experiment& run, Connection& way) const;
  [[nodiscard]] std::vector<std::string> hcas_for(const Experiment& run, std::size_t most) const;
  [[nodiscard]] double speed_of(const Connection& way) const;
  [[nodiscard]] bool hits(const Experiment& run, const Connection& way) const;
  [[nodiscard]] bool hits(const Experiment& run) const;
  [[nodiscard]] bool in_place(const Connection& way) const;
  [[nodiscard]] bool blamed(const RunPlace& place) const;
  void tell(Experiment& run, bool sick) const;
  void time(Experiment& run, double gb_per_s) const;

  SimulatedShape shape_;
  SimulatedFault fault_;
  std::mt19937 dice_;
};

}  // namespace distdoctor::testing
