// A rank's own NCCL log, kept in memory: nothing is left behind, however the rank ends.
#pragma once

#include "base/fd.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::probe {

class RankLog {
 public:
  // Makes NCCL write its log here (environment variables NCCL_DEBUG, NCCL_DEBUG_FILE, ...).
  void ask_for(std::map<std::string, std::string>& switches);
  // Reads what was written, and lets go of it.
  void close();
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  Fd file_ = {};
  std::vector<std::string> lines_ = {};
};

// Of a log's text the lines that show the version, switches in force, transports, interfaces and
// warnings; of lines that differ in ranks and channels only, the first.
std::vector<std::string> telling_lines(std::string_view text);

}  // namespace distdoctor::probe
