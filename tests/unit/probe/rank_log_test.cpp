#include "probe/rank_log.h"

#include <doctest/doctest.h>

#include <fstream>

using distdoctor::probe::RankLog;
using distdoctor::probe::telling_lines;

TEST_CASE("what a process writes to the file that it is given is read back, and no file is left") {
  RankLog log;
  std::map<std::string, std::string> switches;
  log.ask_for(switches);
  CHECK(switches.at("NCCL_DEBUG") == "INFO");
  const std::string path = switches.at("NCCL_DEBUG_FILE");
  std::ofstream(path) << "n:1:1 [0] NCCL INFO Using network Socket\nsomething else\n";
  log.close();
  CHECK(log.lines() == std::vector<std::string>{"n:1:1 [0] NCCL INFO Using network Socket"});
  CHECK_FALSE(std::ifstream(path).good());
}

TEST_CASE("channels that go the same way are one line, and control characters are none") {
  const auto lines = telling_lines(
      "n:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
      "n:1:1 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
      "n:1:1 [0] NCCL INFO Channel 00/0 : 1[0] -> 2[1] [send] via NET/IB/0\n"
      "n:1:1 [0] x.cc:1 NCCL WARN odd \x1b[31m text\n");
  REQUIRE(lines.size() == 3);
  CHECK(lines[2].find('\x1b') == std::string::npos);
}
