// Where the ranks of a job meet: MASTER_ADDR and MASTER_PORT, or what a launcher puts in their
// place (torch run.py, launcher/api.py, static_tcp_rendezvous.py, 1.13 to 2.x; accelerate
// launchers.py and deepspeed launcher/runner.py for theirs).
#pragma once

#include <distdoctor/job.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::rules {

struct Rendezvous {
  std::string host = {};
  std::optional<std::uint16_t> port = {};  // none: not said, or no port
  // torchrun's c10d: the agents meet here, while the ranks then get the first agent's host name as
  // MASTER_ADDR and a free ephemeral port of it as MASTER_PORT, new in each restart.
  bool endpoint = false;
  std::optional<bool> is_host = {};  // of --rdzv-conf
  bool operator==(const Rendezvous&) const = default;
};

// The launch that decides where the ranks of `node` meet: one that was seen there goes before one
// that was said. None: plain MASTER_ADDR and MASTER_PORT decide, for srun, mpirun and python leave
// them as they are. A launch for one node says nothing about a job of several.
const Launch* deciding_launch(const JobSpec& job, std::string_view node);

// None: no setting was seen, or only the job's own shell knows it.
std::optional<Rendezvous> rendezvous_of(const JobSpec& job, std::string_view node = {});

}  // namespace distdoctor::rules
