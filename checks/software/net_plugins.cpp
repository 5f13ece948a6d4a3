// NCCL's network plugin is the same on all nodes, and one that this NCCL loads.
#include <distdoctor/check.h>
#include <distdoctor/followed.h>

#include "found.h"

#include <charconv>

namespace distdoctor::checks {
namespace {

using namespace software;  // NOLINT(google-build-using-namespace): the look-ups of this folder

std::string list_command() {
  return "ldconfig -p | grep libnccl-net; echo \"$LD_LIBRARY_PATH\"";
}

std::string plugin_text(const Found& one) {
  const NcclPlugin* plugin = net_plugin(one);
  if (plugin == nullptr) return "no network plugin";
  return plugin->path + (plugin->version.empty() ? "" : ", " + plugin->version) + " (" +
         plugin->origin + ")";
}

// NCCL_NET names one of NCCL's own, or no plugin is wanted.
bool wants_none(const Case& c, const Found& one) {
  const Prediction* prediction = find_prediction(c.cluster, one.host());
  if (prediction == nullptr) return false;
  const auto lower = [](std::string text) {
    std::ranges::transform(text, text.begin(), [](char x) {
      return x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x;
    });
    return text;
  };
  const Setting* net = find_setting(*prediction, "NCCL_NET");
  const Setting* plugin = find_setting(*prediction, "NCCL_NET_PLUGIN");
  const auto name = net == nullptr ? "" : lower(net->value);
  return name == "ib" || name == "socket" || (plugin != nullptr && lower(plugin->value) == "none");
}

// --- on some nodes only ---

void judge_missing(const Case& c, const std::vector<Found>& all, Judge& judge) {
  std::vector<Found> without;
  std::ranges::copy_if(all, std::back_inserter(without), [&](const Found& one) {
    return net_plugin(one) == nullptr && plugin_was_looked_for(c, *one.node, judge);
  });
  if (without.empty() || without.size() == all.size()) return;
  const auto with = std::ranges::find_if(all, [](const Found& one) { return net_plugin(one); });
  Finding finding{
      .code = "software-plugin-missing",
      .severity = capped(c, all, Severity::blocker),
      .certainty = one_live_job(all) ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::hang,
      .summary = fmt::format("{} of {} nodes have no network plugin for NCCL, while {} "
                             "has {}: ranks that take different networks cannot connect",
                             without.size(), all.size(), with->host(), net_plugin(*with)->path)};
  for (const Found& one : without) {
    finding.subjects.nodes.push_back(one.host());
    finding.evidence.push_back(
        row_of(one, "NCCL network plugin", plugin_text(one), plugin_text(*with), list_command()));
  }
  finding.evidence.push_back(row_of(*with, "NCCL network plugin", plugin_text(*with),
                                    "the same on all nodes",
                                    "ls -l " + shell_quote(net_plugin(*with)->path)));
  finding.fix = {
      by_hand("*", "install the plugin on all nodes, or in the image that all run"),
      {.node = "*",
       .kind = Fix::Kind::env,
       .env = {{"NCCL_NET_PLUGIN", "none"}},
       .text = "or do without it everywhere: slower, where it is the way to the fabric"}};
  judge.report(std::move(finding));
}

// --- of other versions ---

std::string version_of(const Found& one) {
  const NcclPlugin* plugin = net_plugin(one);
  return plugin == nullptr ? "" : plugin->version;
}

void judge_versions(const Case& c, const std::vector<Found>& all, Judge& judge) {
  std::string usual;
  const auto odd = differing(all, version_of, usual);
  if (odd.empty()) return;
  Finding finding{.code = "software-plugin-version-differs",
                  .severity = capped(c, all, Severity::notice),
                  .certainty = Certainty::possible,
                  .symptom = Symptom::hang,
                  .summary = fmt::format("{} of {} nodes have another network plugin than {}",
                                         odd.size(), all.size(), usual)};
  for (const Found& one : odd) {
    finding.subjects.nodes.push_back(one.host());
    finding.evidence.push_back(row_of(one, "NCCL network plugin", plugin_text(one), usual,
                                      fmt::format("strings {} | grep -m 1 'aws-ofi-nccl [0-9]'",
                                                  shell_quote(net_plugin(one)->path))));
  }
  finding.fix = {by_hand("*", fmt::format("give all nodes {}", usual))};
  judge.report(std::move(finding));
}

// --- not for this NCCL ---

struct Span {
  int lowest;
  int highest;
};
// The interfaces that a NCCL asks a plugin for: read in the library itself, so only of those
// versions that were looked at.
std::optional<Span> interfaces_of(std::string_view nccl) {
  if (nccl.starts_with("2.28.")) return Span{6, 11};
  return std::nullopt;
}

// 8 of "ncclNetPlugin_v8".
int interface_number(std::string_view symbol) {
  int number = 0;
  const auto at = symbol.rfind('v');
  if (at == std::string_view::npos) return 0;
  std::from_chars(symbol.data() + at + 1, symbol.data() + symbol.size(), number);
  return number;
}

void judge_interfaces(const Case& c, const Found& one, Judge& judge) {
  const NcclPlugin* plugin = net_plugin(one);
  const NcclLibrary& nccl = one.software->nccl.front();
  const auto span = interfaces_of(nccl.version);
  if (plugin == nullptr || plugin->exports.empty() || !span) return;
  const bool fits = std::ranges::any_of(plugin->exports, [&](const std::string& symbol) {
    const int number = interface_number(symbol);
    return number >= span->lowest && number <= span->highest;
  });
  if (fits) return;
  Finding finding{.code = "software-plugin-refused",
                  .severity = capped(c, {one}, Severity::degraded),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = {one.host()}},
                  .summary = fmt::format(
                      "NCCL {} of {} loads no interface of the plugin {}; it goes on without",
                      nccl.version, one.host(), plugin->path)};
  finding.evidence.push_back(
      row_of(one, "NCCL network plugin",
             fmt::format("{} exports {}", plugin->path, fmt::join(plugin->exports, ", ")),
             fmt::format("ncclNetPlugin_v{} to v{}", span->lowest, span->highest),
             fmt::format("nm -D {} | grep ncclNetPlugin", shell_quote(plugin->path))));
  finding.fix = {
      by_hand(one.host(), fmt::format("a build of the plugin for NCCL {}", nccl.version))};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  auto all = with_nccl(found_on(c, judge));
  std::erase_if(all, [&](const Found& one) { return wants_none(c, one); });
  judge_missing(c, all, judge);
  judge_versions(c, all, judge);
  for (const Found& one : all) judge_interfaces(c, one, judge);
}

// --- the catalogue ---

constexpr Page kMissingPage{
    .meaning =
        "NCCL looks for a network plugin (libnccl-net.so, or what NCCL_NET_PLUGIN names) when it "
        "starts: AWS's OFI for EFA, NVIDIA's SHARP, Google's TCPX. Some nodes have one and some do "
        "not. Then ranks choose different networks, and the job hangs or stops when they connect.",
    .confirm =
        "NCCL_DEBUG=INFO: `Using network ...` is not the same on all ranks; `Could not find: "
        "libnccl-net.so` on some.",
    .fix =
        "One image or environment for all nodes. The plugin must be where the loader of the job "
        "looks: LD_LIBRARY_PATH or /etc/ld.so.conf.d.",
    .verify = "`Using network` is the same on all ranks."};
constexpr Page kVersionPage{
    .meaning =
        "The nodes have different versions of NCCL's network plugin. They may work together; when "
        "connections fail, it is the first difference to look at.",
    .confirm = "NCCL_DEBUG=INFO: `Initializing aws-ofi-nccl VERSION` differs between ranks.",
    .fix = "One image or environment for all nodes.",
    .verify = "The line shows one version."};
constexpr Page kRefusedPage{
    .meaning =
        "A plugin offers NCCL one or more numbered interfaces (ncclNetPlugin_v8); NCCL asks for "
        "those that it knows and passes over a library that has none of them. The job then goes "
        "over NCCL's own InfiniBand or TCP.",
    .confirm =
        "`nm -D PLUGIN | grep ncclNetPlugin` against `strings LIBNCCL | grep ncclNetPlugin_v`. "
        "NCCL_DEBUG=INFO prints `External network plugin ... is unsupported`.",
    .fix = "Install a build of the plugin for this NCCL.",
    .verify = "NCCL_DEBUG=INFO prints `Successfully loaded external network plugin`."};
constexpr Code kCodes[] = {{.id = "software-plugin-missing",
                            .fault_class = FaultClass::plugin_mismatch,
                            .worst = Severity::blocker,
                            .title = "NCCL's network plugin is on some nodes only",
                            .causes = {},
                            .page = kMissingPage},
                           {.id = "software-plugin-version-differs",
                            .fault_class = FaultClass::plugin_mismatch,
                            .worst = Severity::notice,
                            .title = "Nodes have different versions of NCCL's network plugin",
                            .causes = {},
                            .page = kVersionPage},
                           {.id = "software-plugin-refused",
                            .fault_class = FaultClass::plugin_mismatch,
                            .worst = Severity::degraded,
                            .title = "This NCCL loads no interface of the network plugin",
                            .causes = {},
                            .page = kRefusedPage}};

}  // namespace

extern const Check software_net_plugins{
    .title = "NCCL's network plugins agree", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
