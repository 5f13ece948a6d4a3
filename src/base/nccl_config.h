// NCCL's own parsing of nccl.conf (NCCL misc/param.cc setEnvFile; 2.8 to 2.30 alike): NAME=VALUE
// per line, '#' in the first column is a comment, no trimming.
//
// Their weight: the environment, even an empty variable; then the user's file, which is
// NCCL_CONF_FILE (2.23+) *instead of* ~/.nccl.conf; then /etc/nccl.conf. NCCL takes the home folder
// from the password database, not from $HOME, and is silent about a file that is not there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

struct NcclConfigLine {
  std::string name = {};   // as NCCL reads it: blanks and "export " stay part of it; 1023 bytes
  std::string value = {};  // quotes, comments and \r stay part of it; 1023 bytes
  int line = 0;            // from 1
  bool operator==(const NcclConfigLine&) const = default;
};

// Each line that sets something, also what is set twice. Takes any bytes.
std::vector<NcclConfigLine> nccl_config_lines(std::string_view text);
// Each name once: NCCL never overwrites, so the first line of a name wins.
std::vector<NcclConfigLine> parse_nccl_config(std::string_view text);

}  // namespace distdoctor
