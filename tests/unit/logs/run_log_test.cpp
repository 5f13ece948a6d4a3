#include "logs/run_log.h"

#include <doctest/doctest.h>

using distdoctor::logs::read_run_log;
using distdoctor::logs::RunLog;
using Names = std::vector<std::string>;

TEST_CASE("the log of a rank tells its version, switches, transports and interfaces") {
  const Names lines = {
      "node0:71:71 [0] NCCL INFO Bootstrap: Using eth1:10.0.1.1<0>",
      "node0:71:71 [0] NCCL INFO NCCL version 2.28.9+cuda13.0",
      "node0:71:80 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.",
      "node0:71:80 [0] NCCL INFO NCCL_IB_HCA set to =mlx5_0",
      "node0:71:80 [0] NCCL INFO Comm config Blocking set to 0",
      "node0:71:80 [0] NCCL INFO NET/Socket : Using [0]eth1:10.0.1.1<0> [1]eth2:10.0.2.1<0>",
      "node0:71:80 [0] NCCL INFO Using network Socket",
      "node0:71:80 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
      "node0:71:80 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/Socket/0",
      "node0:71:80 [0] NCCL INFO Channel 01/0 : 1[1] -> 2[0] [send] via NET/Socket/0",
  };
  const RunLog log = read_run_log(lines);
  CHECK(log.version == "2.28.9");
  CHECK(log.variables.at("NCCL_P2P_DISABLE") == "1");
  CHECK(log.variables.at("NCCL_IB_HCA") == "=mlx5_0");
  CHECK(log.variables.size() == 2);
  CHECK(log.network == "Socket");
  CHECK(log.transports == Names{"SHM/direct/direct", "NET/Socket/0"});
  CHECK(log.interfaces == Names{"eth1", "eth2"});
  CHECK(log.warnings.empty());
}

TEST_CASE("HCAs in use are named as NCCL names them, without port and link layer") {
  const Names lines = {
      "n:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB "
      "eth0:10.0.0.1<0>"};
  CHECK(read_run_log(lines).interfaces == Names{"mlx5_0", "mlx5_1"});
}

TEST_CASE("warnings are kept by their text, a bounded number of them") {
  Names lines(30, "n:1:1 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect failed");
  lines.emplace_back("a line of somebody else via the log");
  const RunLog log = read_run_log(lines);
  CHECK(log.warnings.size() == 20);
  CHECK(log.warnings.front() == "socketStartConnect: Connect failed");
  CHECK(log.transports.empty());
}
