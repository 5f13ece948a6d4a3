// What the NCCL log of one rank of a tiny all-reduce tells. The words are those of init.cc,
// param.cc, transport/*.cc and net.cc, 2.14 to 2.28.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace distdoctor::logs {

struct RunLog {
  std::string version = {};  // "2.28.9"
  // "NCCL_P2P_DISABLE set by environment to 1."
  std::map<std::string, std::string> variables = {};
  std::vector<std::string> transports =
      {};  // each once: "P2P/CUMEM", "SHM/direct/direct", "NET/IB/0"
  std::vector<std::string> interfaces = {};  // of sockets and HCAs in use: "eth1", "mlx5_0"
  std::string network = {};                  // "IB", "Socket", "AWS Libfabric"
  std::vector<std::string> warnings = {};    // the texts behind NCCL WARN, 20 at most
};

RunLog read_run_log(std::span<const std::string> lines);

}  // namespace distdoctor::logs
