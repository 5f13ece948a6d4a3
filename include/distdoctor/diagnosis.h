// The answer: ranked causes with their consequences, what every check said, what was not seen.
#pragma once

#include <distdoctor/enum_names.h>
#include <distdoctor/fault_class.h>
#include <distdoctor/finding.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

// A finding in its place. `explains` holds its consequences, each once.
struct Cause {
  Finding finding;
  FaultClass fault_class = {};
  std::string title = {};    // its code's
  std::string because = {};  // why it stands where it stands
  std::vector<Cause> explains = {};
  // Consequences that it would explain too, but that nest under a better cause.
  std::vector<std::string> also_explains = {};  // codes
};

enum class CheckResult : std::uint8_t { pass, notice, degraded, blocker, unknown, skipped };
template <>
struct EnumNames<CheckResult> {
  static constexpr std::string_view values[] = {"pass",    "notice",  "degraded",
                                                "blocker", "unknown", "skipped"};
};

struct CheckLine {
  std::string name = {};   // "net/mtu_mismatch"
  std::string title = {};  // the check's own
  CheckResult result = CheckResult::pass;
  std::string detail = {};  // the worst finding's summary, the reason of a skip, what was unseen
};

// One gap for all the nodes that have it.
struct MergedGap {
  std::vector<std::string> nodes = {};
  std::string fact = {};
  Unknown why = {};
};

enum class Verdict : std::uint8_t { healthy, problems, inconclusive };
template <>
struct EnumNames<Verdict> {
  static constexpr std::string_view values[] = {"healthy", "problems", "inconclusive"};
};

struct NodeLine {
  std::string host = {};
  bool reached = false;
  std::string why = {};  // when it was not
};

struct Diagnosis {
  std::vector<Cause> causes = {};  // in rank order
  std::vector<CheckLine> checks = {};
  std::vector<MergedGap> gaps = {};
  std::vector<NodeLine> nodes = {};
  Verdict verdict = Verdict::healthy;
  int exit_code = 0;
  bool interrupted = false;  // Ctrl-C or the budget ended it before all was done
};

}  // namespace distdoctor
