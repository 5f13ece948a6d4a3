// NCCL's own parsing of nccl.conf (NCCL 2.28 misc/param.cc setEnvFile): NAME=VALUE per line, '#'
// in the first column, no trimming, the first occurrence wins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

struct NcclConfigLine {
  std::string name;   // as NCCL reads it: blanks and "export " stay part of it
  std::string value;  // quotes, comments and \r stay part of it
  int line = 0;       // from 1
  bool operator==(const NcclConfigLine&) const = default;
};
std::vector<NcclConfigLine> parse_nccl_config(std::string_view text);

}  // namespace distdoctor
