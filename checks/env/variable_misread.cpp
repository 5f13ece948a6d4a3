// The values of NCCL's variables mean to NCCL what they say.
#include <distdoctor/check.h>

#include "variables.h"

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

bool misread(VariableTrap trap) {
  switch (trap) {
    case VariableTrap::word:
    case VariableTrap::rest:
    case VariableTrap::octal:
    case VariableTrap::exact:
    case VariableTrap::unknown:
      return true;
    default:
      return false;
  }
}

// --- what NCCL makes of it ---

std::string quoted(const InForce& row) {
  return "\"" + row.value() + "\"";
}

std::string what_happens(const InForce& row) {
  switch (row.reading->trap) {
    case VariableTrap::word:
      return fmt::format("NCCL reads a number there, and {} is 0", quoted(row));
    case VariableTrap::rest:
      return fmt::format("NCCL reads {} and drops the rest of {}", row.taken(), quoted(row));
    case VariableTrap::octal:
      return fmt::format("the leading 0 makes it octal, so NCCL reads {}", row.taken());
    case VariableTrap::exact:
      return fmt::format("NCCL heeds it only when it is 1, not {}", row.value());
    default:
      return fmt::format("NCCL knows no {} there and does as if it was not set", quoted(row));
  }
}

std::string expected_of(const InForce& row) {
  switch (row.reading->trap) {
    case VariableTrap::word:
    case VariableTrap::octal:
      return "a decimal number";
    case VariableTrap::rest:
      return "a number alone";
    case VariableTrap::exact:
      return "1, or unset";
    default:
      return "a value that NCCL knows";
  }
}

// --- what was meant ---

std::string lower(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lowered;
}

std::string upper(std::string_view text) {
  std::string raised(text);
  for (char& c : raised) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return raised;
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "true" and its kind; what stands in quotes may be a number.
std::optional<std::string> meant_by_word(std::string_view value) {
  constexpr std::string_view kQuotes = "\"'";
  const auto begin = value.find_first_not_of(kQuotes);
  if (begin == std::string_view::npos) return std::nullopt;
  const auto bare = value.substr(begin, value.find_last_not_of(kQuotes) + 1 - begin);
  if (all_digits(bare)) return std::string(bare);
  constexpr std::string_view kOn[] = {"true", "yes", "on", "y", "t", "enable", "enabled"};
  return std::ranges::find(kOn, lower(bare)) != std::end(kOn) ? std::optional<std::string>("1")
                                                              : std::nullopt;
}

// "4M" in bytes; else the digits that NCCL takes.
std::string meant_by_rest(const InForce& row) {
  const std::string& value = row.value();
  const auto digits = value.find_first_not_of("0123456789");
  const auto number = number_of(row);
  constexpr std::string_view kUnits = "kmg";
  const auto unit = kUnits.find(lower(value.substr(digits, 1)));
  const bool bytes = unit != std::string_view::npos && digits > 0 && number && *number < 100'000;
  return bytes ? fmt::to_string(*number << (10 * (unit + 1))) : row.taken();
}

std::optional<std::string> meant_by_unknown(const InForce& row) {
  if (row.name.ends_with("_FAMILY")) {
    return row.value().find('6') == std::string::npos ? "AF_INET" : "AF_INET6";
  }
  constexpr std::string_view kLevels[] = {"LOC", "NVL", "NVB", "C2C", "PIX",
                                          "PXB", "P2C", "PXN", "PHB", "SYS"};
  const std::string level = upper(row.value());
  const bool known =
      row.name.ends_with("_LEVEL") && std::ranges::find(kLevels, level) != std::end(kLevels);
  return known ? std::optional(level) : std::nullopt;
}

std::optional<std::string> meant(const InForce& row) {
  switch (row.reading->trap) {
    case VariableTrap::word:
      return meant_by_word(row.value());
    case VariableTrap::rest:
      return meant_by_rest(row);
    case VariableTrap::octal: {
      const auto begin = row.value().find_first_of("123456789");
      return begin == std::string::npos ? std::nullopt : std::optional(row.value().substr(begin));
    }
    case VariableTrap::exact:
      return "1";
    default:
      return meant_by_unknown(row);
  }
}

// --- findings ---

// What does as NCCL does without it costs nothing but a belief.
void judge_misread(const Case& c, const InForce& row, Judge& judge) {
  const bool idle = row.reading->as_default;
  Finding finding{.code = "env-variable-misread",
                  .severity = capped(c, row, idle ? Severity::notice : Severity::degraded),
                  .certainty = Certainty::proved,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = hosts_of(row.places)},
                  .summary = fmt::format("{} {}{}: {}", row.text(), where_text(c, row.places),
                                         idle ? " changes nothing" : " is another value to NCCL",
                                         what_happens(row))};
  add_evidence(row, expected_of(row), finding);
  const auto wanted = meant(row);
  finding.fix = mend(c, row, wanted,
                     wanted ? "if that is what was meant; else take it out"
                            : "take it out, or give a value that NCCL knows");
  judge.report(std::move(finding));
}

// Since 2.24 an unknown word ends the initialisation; before, it was passed over.
enum class Refuses : std::uint8_t { no, maybe, yes };

Refuses refuses(const Case& c, const InForce& row) {
  Refuses worst = Refuses::no;
  for (const Place& place : row.places) {
    const Prediction* prediction = find_prediction(c.cluster, place.node->host);
    if (!prediction->nccl_version_known || !prediction->nccl.known()) {
      worst = std::max(worst, Refuses::maybe);
    } else if (prediction->nccl->rules == NcclRules::from_2_28_3) {
      worst = Refuses::yes;
    }
  }
  return worst;
}

void judge_refused(const Case& c, const InForce& row, Judge& judge) {
  const Refuses sure = refuses(c, row);
  Finding finding{
      .code = "env-variable-refused",
      .severity = capped(c, row, sure == Refuses::no ? Severity::degraded : Severity::blocker),
      .certainty = sure == Refuses::yes ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::crash,
      .subjects = {.nodes = hosts_of(row.places)},
      .summary = fmt::format("{} {} holds a word that NCCL does not know: from 2.24 on it fails "
                             "when it starts",
                             row.text(), where_text(c, row.places))};
  add_evidence(row,
               row.name == "NCCL_PROTO" ? "of LL, LL128 and Simple, without blanks"
                                        : "of Tree, Ring, CollNetDirect, CollNetChain, NVLS, "
                                          "NVLSTree and PAT, without blanks",
               finding);
  finding.fix = mend(c, row, std::nullopt, "NCCL chooses by itself, and well");
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  see_settings(c, judge);
  for (const InForce& row : with_trap(c, misread)) judge_misread(c, row, judge);
  const auto refused = [](VariableTrap trap) { return trap == VariableTrap::refused; };
  for (const InForce& row : with_trap(c, refused)) judge_refused(c, row, judge);
}

// --- the catalogue ---

constexpr Page kMisreadPage{
    .meaning =
        "NCCL takes most of its variables for numbers with strtoll(3) and base 0: `true`, `yes` "
        "and `on` are 0, so `NCCL_IB_DISABLE=true` disables nothing; `022` is octal, 18; `8x` is "
        "8 and `4M` is 4. NCCL_P2P_DISABLE counts as 1 only. NCCL_P2P_LEVEL and "
        "NCCL_NET_GDR_LEVEL are compared with upper-case names, NCCL_SOCKET_FAMILY with AF_INET "
        "and AF_INET6; what is none of them is ignored without a word.",
    .confirm =
        "With NCCL_DEBUG=INFO NCCL prints `NCCL_X set by environment to N.`: N is what it read.",
    .fix =
        "Decimal numbers, 1 for on and 0 for off; the names as NCCL's documentation writes them.",
    .verify = "The same line says what was meant."};
constexpr Page kRefusedPage{
    .meaning =
        "NCCL_ALGO and NCCL_PROTO are lists of NCCL's own words, in any case, without blanks; "
        "since 2.24 also `allreduce:tree,ring;broadcast:ring`. An unknown word ends the "
        "initialisation with ncclInvalidUsage; older versions pass over it, and fail when nothing "
        "is left.",
    .confirm = "NCCL_DEBUG=WARN prints `Unrecognized element token \"...\" when parsing \"...\"`.",
    .fix = "Unset the variable. NCCL's own choice by message size is right on nearly all machines.",
    .verify = "The communicator is created: `Init COMPLETE` with NCCL_DEBUG=INFO."};
constexpr Code kCodes[] = {{.id = "env-variable-misread",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::degraded,
                            .title = "A variable is another value to NCCL than it looks",
                            .causes = {},
                            .page = kMisreadPage},
                           {.id = "env-variable-refused",
                            .fault_class = FaultClass::nccl_algo_env,
                            .worst = Severity::blocker,
                            .title = "NCCL does not start with this value",
                            .causes = {},
                            .page = kRefusedPage}};

}  // namespace

extern const Check env_variable_misread{
    .title = "NCCL's variables mean what they say", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
