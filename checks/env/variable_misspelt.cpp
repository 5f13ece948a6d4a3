// Every variable of NCCL, PyTorch and Gloo has a name that something reads.
#include <distdoctor/check.h>

#include "names_there.h"

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

constexpr std::string_view kInterface = "NCCL_SOCKET_IFNAME";
constexpr std::string_view kGlooInterface = "GLOO_SOCKET_IFNAME";

bool of_nccl(const InForce& row) {
  return row.name.starts_with("NCCL_");
}

// The right name is there as well, so nothing is lost.
bool said_rightly(const Case& c, const InForce& row, const std::string& meant) {
  return std::ranges::all_of(row.places, [&](const Place& place) {
    const Prediction* prediction = find_prediction(c.cluster, place.node->host);
    return find_setting(*prediction, meant) != nullptr;
  });
}

Severity severity_of(const Case& c, const InForce& row, const std::string& meant) {
  const bool lost = steers_traffic(meant) && !said_rightly(c, row, meant);
  if (!lost) return Severity::notice;
  if (meant != kInterface) return Severity::degraded;
  const bool bad = std::ranges::any_of(row.places, [&](const Place& place) {
    return interface_is_bad(c, *find_prediction(c.cluster, place.node->host));
  });
  if (bad) return Severity::blocker;
  return c.cluster.nodes.size() > 1 ? Severity::degraded : Severity::notice;
}

// A blank in a config file's line became part of the name: env/nccl_config tells of the line.
bool is_a_damaged_line(const InForce& row) {
  return !plain_name(row.name) && !bare_name(row.name).empty();
}

bool would_name_nothing(const InForce& row, const std::string& meant) {
  return std::ranges::any_of(row.places, [&](const Place& place) {
    return names_nothing(*place.node, meant, meant_value(row.value()));
  });
}

// Where the ranks meet is told by rendezvous/master_missing; Gloo's interface by nobody else.
Severity severity_of_other(const Case& c, const InForce& row, const std::string& meant) {
  const bool interface = meant == kGlooInterface && c.cluster.nodes.size() > 1;
  if (!interface || c.cluster.job.gloo != Use::yes) return Severity::notice;
  Severity worst = Severity::notice;
  for (const Place& place : row.places) {
    worst = std::max(worst, capped_by_origin(place, Severity::degraded));
  }
  return worst;
}

void judge_name(const Case& c, const InForce& row, Judge& judge) {
  if (of_nccl(row) && is_a_damaged_line(row)) return;
  const std::string& meant = row.reading->taken_as;
  const bool interface = meant == kInterface;
  const std::string_view reader = of_nccl(row) ? "NCCL" : "PyTorch or Gloo";
  Finding finding{.code = interface ? "env-ifname-misspelt" : "env-variable-misspelt",
                  .severity = of_nccl(row) ? capped(c, row, severity_of(c, row, meant))
                                           : severity_of_other(c, row, meant),
                  .certainty = Certainty::likely,
                  .symptom = interface || meant == kGlooInterface ? Symptom::hang : Symptom::slow,
                  .subjects = {.nodes = hosts_of(row.places)},
                  .summary = fmt::format("{} {} is read by no {}: {} was meant?", row.name,
                                         where_text(c, row.places), reader, meant)};
  add_evidence(row, meant, finding);
  const bool lost = !said_rightly(c, row, meant);
  finding.fix =
      mend(c, row, std::nullopt, fmt::format("a name that {} ignores without a word", reader));
  for (Fix& fix : finding.fix) {
    if (!lost || fix.kind != Fix::Kind::env || would_name_nothing(row, meant)) continue;
    fix.env[meant] = row.value();
    fix.text = fmt::format("the same value under the name that {} reads", reader);
  }
  for (const Place& place : row.places) {
    const auto at = config_line(*place.setting);
    if (!lost || !at) continue;
    const auto fix = std::ranges::find(finding.fix, place.node->host, &Fix::node);
    if (fix == finding.fix.end()) continue;
    *fix = mend_line(*place.node, *at, meant, row.value());
  }
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  see_settings(c, judge);
  const auto misspelt = [](VariableTrap trap) { return trap == VariableTrap::misspelt; };
  for (const InForce& row : with_trap(c, misspelt)) {
    if (!of_nccl(row) || c.cluster.job.nccl != Use::no) judge_name(c, row, judge);
  }
}

// --- the catalogue ---

constexpr std::string_view kConfirm =
    "`env | grep ^NCCL_` in the job. With NCCL_DEBUG=INFO NCCL prints `NAME set by environment to "
    "...` for what it reads, and nothing for this name.";
constexpr std::string_view kVerify = "NCCL_DEBUG=INFO prints `... set by environment to` for it.";
constexpr Page kIfnamePage{
    .meaning =
        "NCCL ignores names that it does not know without a word. The interface that was chosen "
        "with this variable is not the one that NCCL takes.",
    .confirm = kConfirm,
    .fix = "Spell it NCCL_SOCKET_IFNAME.",
    .verify = kVerify};
constexpr Page kPage{
    .meaning =
        "NCCL, PyTorch and Gloo ignore names that they do not know without a word. This one is a "
        "letter or two from a variable of theirs; no NCCL from 2.10 to 2.30, no plugin, no PyTorch "
        "and no Gloo that we know reads it.",
    .confirm =
        "`env | grep -E '^(NCCL|TORCH|GLOO|MASTER)_'` in the job. With NCCL_DEBUG=INFO NCCL prints "
        "`NAME set by environment to ...` for what it reads of its own, and nothing for this name.",
    .fix = "Spell it as its library does, or take it out.",
    .verify = "The right name stands in the environment of a rank, /proc/PID/environ."};
constexpr std::string_view kCauses[] = {"net-nccl-ifname-no-match", "net-nccl-ifname-loopback",
                                        "net-nccl-interface-unreachable", "net-slow-interface"};
constexpr Code kCodes[] = {{.id = "env-ifname-misspelt",
                            .fault_class = FaultClass::iface_wrong,
                            .worst = Severity::blocker,
                            .title = "NCCL_SOCKET_IFNAME is misspelt",
                            .causes = kCauses,
                            .page = kIfnamePage},
                           {.id = "env-variable-misspelt",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::degraded,
                            .title = "A variable has a name that nobody reads",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check env_variable_misspelt{
    .title = "Variables are spelt as NCCL, PyTorch and Gloo read them",
    .codes = kCodes,
    .run = run};

}  // namespace distdoctor::checks
