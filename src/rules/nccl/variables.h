// What NCCL makes of its variables: their names, and its own parsing of their values.
#pragma once

#include <distdoctor/facts/predicted.h>
#include <distdoctor/job.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

enum class VariableKind : std::uint8_t {
  number,      // strtoll, base 0 (param.cc ncclLoadParam)
  only_one,    // a number that counts when it is 1 (paths.cc ncclGetLevel)
  level,       // LOC, NVL, ... SYS, or an old digit (the same)
  debug,       // VERSION, WARN, ... in any case (debug.cc ncclDebugInit)
  subsystems,  // a list for debug.cc
  family,      // AF_INET or AF_INET6, nothing else (socket.cc)
  algorithms,  // a list for tuning.cc parseList
  protocols,   // the same
  text         // a path, a name, a list that other rules read
};

struct VariableRow {
  std::string_view name;
  VariableKind kind = VariableKind::text;
  // Where all versions that have it agree on one number.
  std::optional<std::int64_t> usual = {};
};

// What some NCCL from 2.10 to 2.30 reads, by name.
std::span<const VariableRow> nccl_variables();

// Names that begin with NCCL_ and that somebody else reads: PyTorch, net and tuner plugins, RCCL,
// nccl-tests, build systems; and what older guides say and no version of the last years reads.
bool known_elsewhere(std::string_view name);

// The variable that was meant by a name that nobody reads; none where it is no slip of the pen.
// Words that NCCL uses are no slips, since a later version may have put them together anew.
std::optional<std::string_view> meant_variable(std::string_view name);

// Every NCCL_ setting that NCCL reads, and the misspelt ones.
std::vector<VariableReading> read_variables(const Settings& settings);

}  // namespace distdoctor::rules
