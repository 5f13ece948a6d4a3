// NCCL_IB_HCA has to name a port that the node has.
#include <distdoctor/check.h>

#include "chosen.h"

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

constexpr const char* kVariable = "NCCL_IB_HCA";

// --- the value ---

struct List {
  std::string head;  // '^', '=' or both
  std::vector<std::string> elements;
};

List parts_of(std::string_view value) {
  List list;
  while (!value.empty() && (value.front() == '^' || value.front() == '=') && list.head.size() < 2) {
    list.head += value.front();
    value.remove_prefix(1);
  }
  for (std::size_t at = 0; at <= value.size();) {
    const auto end = std::min(value.find(',', at), value.size());
    list.elements.emplace_back(value.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

// Without what NCCL takes for a part of the name, and without a port number that is none.
std::string cleaned(std::string_view element) {
  constexpr std::string_view kAround = " \t\r\n\"'";
  const auto first = element.find_first_not_of(kAround);
  if (first == std::string_view::npos) return "";
  element = element.substr(first, element.find_last_not_of(kAround) - first + 1);
  if (element.ends_with(':')) element.remove_suffix(1);
  return std::string(element);
}

bool names_a_port(const RdmaNode& one, std::string_view element, bool exact) {
  const auto colon = element.rfind(':');
  const std::string_view name = element.substr(0, colon);
  const std::string_view number = colon == std::string_view::npos ? "" : element.substr(colon + 1);
  return std::ranges::any_of(one.hcas->left_out, [&](const HcaLeftOut& hca) {
    const bool named = exact ? hca.device == name : hca.device.starts_with(name);
    return hca.why == HcaPassed::filtered && named && !name.empty() &&
           (number.empty() || number == std::to_string(hca.port));
  });
}

// The same list as it was meant, if that takes a port here.
std::optional<std::string> meant(const RdmaNode& one, const std::string& value) {
  const List list = parts_of(value);
  std::vector<std::string> elements;
  bool works = false;
  for (const std::string& element : list.elements) {
    std::string clean = cleaned(element);
    if (clean.empty()) continue;
    works = works || names_a_port(one, clean, list.head.ends_with('='));
    elements.push_back(std::move(clean));
  }
  if (list.head.starts_with('^') || !works) return std::nullopt;
  return list.head + fmt::format("{}", fmt::join(elements, ","));
}

// --- the finding ---

// All that NCCL would take, but for the variable.
std::vector<std::string> real_ports(const RdmaNode& one) {
  std::vector<std::string> ports;
  for (const HcaLeftOut& hca : one.hcas->left_out) {
    if (hca.why == HcaPassed::filtered) ports.push_back(port_text(hca.device, hca.port));
  }
  return ports;
}

bool matches_nothing(const RdmaNode& one) {
  const Setting* list = find_setting(*one.prediction, kVariable);
  return list != nullptr && one.hcas->disabled_by.empty() && one.hcas->used.empty() &&
         !real_ports(one).empty();
}

// Of all nodes where the value is the same and matches on none.
bool all_alike(const std::vector<RdmaNode>& nodes, const RdmaNode& one) {
  const std::string& value = find_setting(*one.prediction, kVariable)->value;
  return std::ranges::all_of(nodes, [&](const RdmaNode& other) {
    return matches_nothing(other) && find_setting(*other.prediction, kVariable)->value == value &&
           meant(other, value) == meant(one, value);
  });
}

std::vector<Fix> mend(const std::vector<RdmaNode>& nodes,
                      const RdmaNode& one,
                      const Setting& setting) {
  const std::string real = fmt::format("{}", fmt::join(real_ports(one), ", "));
  const std::string where = all_alike(nodes, one) ? "*" : one.node->host;
  if (const auto value = meant(one, setting.value)) {
    return {{.node = where,
             .kind = Fix::Kind::env,
             .env = {{kVariable, *value}},
             .text = "without blanks, quotes and empty port numbers, which NCCL does not skip"}};
  }
  return {
      {.node = where,
       .kind = Fix::Kind::env,
       .env = {{kVariable, std::nullopt}},
       .text = fmt::format("then NCCL takes every active port: {} on {}", real, one.node->host)}};
}

void judge_node(const Case& c,
                const std::vector<RdmaNode>& nodes,
                const RdmaNode& one,
                Judge& judge) {
  const bool others_use = any_used(nodes);
  const Setting& setting = *find_setting(*one.prediction, kVariable);
  const std::string real = fmt::format("{}", fmt::join(real_ports(one), ", "));
  Finding finding{.code = "rdma-hca-no-match",
                  .severity = capped(c, others_use ? Severity::blocker : Severity::degraded),
                  .certainty = Certainty::proved,
                  .symptom = others_use ? Symptom::hang : Symptom::slow,
                  .subjects = {.nodes = {one.node->host}},
                  .summary = fmt::format(
                      "NCCL_IB_HCA={} matches no port of {}, which has {}: NCCL uses sockets "
                      "there",
                      setting.value, one.node->host, real)};
  finding.evidence = {
      {.node = one.node->host,
       .fact = kVariable,
       .observed = setting_text(setting),
       .expected = "one of " + real,
       .command = see_setting(*one.prediction, kVariable) + "; ls /sys/class/infiniband"}};
  finding.fix = mend(nodes, one, setting);
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  const auto kept = [](const RdmaNode& one) { return !one.hcas->disabled_by.empty(); };
  const auto given = [](const RdmaNode& one) {
    return find_setting(*one.prediction, kVariable) != nullptr;
  };
  if (any_device(nodes) && std::ranges::none_of(nodes, given)) judge.skip("NCCL_IB_HCA is not set");
  if (any_device(nodes) && std::ranges::all_of(nodes, kept)) judge.skip("NCCL is kept from RDMA");
  for (const RdmaNode& one : nodes) {
    if (matches_nothing(one)) judge_node(c, nodes, one, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "NCCL_IB_HCA is a list of name prefixes, or of whole names after `=`, each with an "
        "optional "
        "`:port`. NCCL trims nothing: a blank after a comma, quotes or an empty port number belong "
        "to the name. Where nothing matches, NET/IB has no device, and NCCL falls back to TCP "
        "sockets without a warning; if other nodes find theirs, the two sides do not fit together.",
    .confirm =
        "`ls /sys/class/infiniband` shows the names; NCCL_DEBUG=INFO prints `NET/IB : No device "
        "found` and `Using network Socket`.",
    .fix =
        "Write the names as sysfs has them (`NCCL_IB_HCA='=mlx5_0,mlx5_1'`), or unset the "
        "variable.",
    .verify = "NCCL_DEBUG=INFO prints `NET/IB : Using [0]mlx5_0:1/IB ...` on every node."};
constexpr std::string_view kCauses[] = {"rdma-hca-sets-differ", "net-slow-interface"};
constexpr Code kCodes[] = {{.id = "rdma-hca-no-match",
                            .fault_class = FaultClass::socket_instead_ib,
                            .worst = Severity::blocker,
                            .title = "NCCL_IB_HCA matches no RDMA port",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check rdma_hca_no_match{.title = "NCCL_IB_HCA names ports that exist",
                                     .codes = kCodes,
                                     .run = run,
                                     .needs = Needs::rdma};

}  // namespace distdoctor::checks
