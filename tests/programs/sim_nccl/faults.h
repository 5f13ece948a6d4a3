// Which of the script's faults strike a rank of a SIMULATED communicator.
#pragma once

#include "peers.h"

#include <string>
#include <vector>

namespace distdoctor::sim {

struct Struck {
  Fault fault = {};
  bool here = true;  // this rank itself; else only the communicator's speed
};

// Those that this communicator meets on its way, of which some show from a later all-reduce on.
std::vector<Struck> strikes(const Ways& ways,
                            const std::vector<Peer>& peers,
                            const Peer& own,
                            std::uint64_t number);

// What NCCL warns of when this layer fails.
std::string words_of(const Fault& fault);

// Seconds that an all-reduce of so many bytes takes.
double seconds_of(const Ways& ways,
                  const std::vector<Peer>& peers,
                  const std::vector<Struck>& faults,
                  std::size_t bytes);

}  // namespace distdoctor::sim
