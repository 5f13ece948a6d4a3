// The network that NCCL_NET names, and the plugins that NCCL is told to load, are there.
#include <distdoctor/check.h>

#include "unresolved.h"
#include "variables.h"

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

bool has_net_plugin(const Software& software) {
  return std::ranges::find(software.plugins, "net", &NcclPlugin::kind) != software.plugins.end();
}

// The node's software, where NCCL was found on it: elsewhere the job may run in a container.
const Software* software_of(const NodeFacts& node, Judge& judge) {
  const Software* software = judge.see(node, "software", node.software);
  return software == nullptr || software->nccl.empty() ? nullptr : software;
}

// Where the libraries were found by a login's paths, the job's may lead elsewhere.
Severity capped_by_view(const InForce& row, Severity severity) {
  for (const Place& place : row.places) {
    const auto& nccl = place.node->software->nccl;
    const bool live = nccl.front().origin.starts_with("mapped by pid ");
    if (!live) severity = capped_by_context(severity, place.node->context);
  }
  return severity;
}

// --- NCCL_NET=IB ---

// Devices whose ports are down or not chosen are told by the checks of area rdma.
void judge_infiniband(const Case& c, InForce row, Judge& judge) {
  std::erase_if(row.places, [&](const Place& place) {
    const auto* rdma = judge.see(*place.node, "rdma", place.node->rdma);
    return rdma == nullptr || !rdma->devices.empty();
  });
  if (row.places.empty()) return;
  Finding finding{
      .code = "env-network-not-there",
      .severity = capped(c, row, Severity::blocker),
      .certainty = Certainty::likely,
      .symptom = Symptom::crash,
      .subjects = {.nodes = hosts_of(row.places)},
      .summary = fmt::format("{} {}, where there is no RDMA device: NCCL takes no other "
                             "network then, and stops",
                             row.text(), where_text(c, row.places))};
  for (const Place& place : row.places) {
    finding.evidence.push_back({.node = place.node->host,
                                .fact = row.name,
                                .observed = setting_text(*place.setting) + ", and no RDMA device",
                                .expected = "unset, or a device in /sys/class/infiniband",
                                .context = std::string(slug(place.node->context)),
                                .command = "ls /sys/class/infiniband; rdma link"});
  }
  finding.fix = mend(c, row, std::nullopt, "NCCL then takes the best that it finds: TCP here");
  judge.report(std::move(finding));
}

// --- NCCL_NET ---

void judge_network(const Case& c, InForce row, Judge& judge) {
  if (row.value().empty() || same_text(row.value(), "Socket")) return;
  if (same_text(row.value(), "IB")) return judge_infiniband(c, std::move(row), judge);
  // What networks a plugin has shows only when it runs.
  std::erase_if(row.places, [&](const Place& place) {
    const Software* software = software_of(*place.node, judge);
    return software == nullptr || has_net_plugin(*software) ||
           !plugin_was_looked_for(c, *place.node, judge);
  });
  if (row.places.empty()) return;
  Finding finding{
      .code = "env-network-not-there",
      .severity = capped_by_view(row, capped(c, row, Severity::blocker)),
      .certainty = Certainty::likely,
      .symptom = Symptom::crash,
      .subjects = {.nodes = hosts_of(row.places)},
      .summary = fmt::format("{} {}: NCCL itself has only IB and Socket, and there is no "
                             "plugin that could bring another network; it stops",
                             row.text(), where_text(c, row.places))};
  add_evidence(row, "IB, Socket, or a network of a plugin that is there", finding);
  finding.fix = mend(c, row, std::nullopt,
                     "NCCL then takes the best that it finds; or install the plugin that has it");
  judge.report(std::move(finding));
}

// --- NCCL_NET_PLUGIN and its kind ---

// Words of the value that led to no file on this node.
std::vector<std::string> not_found(const Software& software, const InForce& row) {
  std::vector<std::string> words;
  for (const NamedFile& file : software.named_files) {
    const bool ours = file.variable == row.name && file.error != 0 &&
                      row.value().find(file.path) != std::string::npos;
    if (ours) words.push_back(file.path);
  }
  return words;
}

void judge_plugin(const Case& c, InForce row, Judge& judge) {
  std::vector<std::string> words;
  std::erase_if(row.places, [&](const Place& place) {
    const Software* software = software_of(*place.node, judge);
    if (software == nullptr) return true;
    auto missing = not_found(*software, row);
    if (missing.empty()) return true;
    words = std::move(missing);
    return false;
  });
  if (row.places.empty()) return;
  Finding finding{
      .code = "env-plugin-not-there",
      .severity = Severity::notice,
      .certainty = Certainty::possible,
      .symptom = Symptom::slow,
      .subjects = {.nodes = hosts_of(row.places)},
      .summary = fmt::format("{} {}: no library {} was found; NCCL goes on without it", row.text(),
                             where_text(c, row.places), fmt::join(words, ", "))};
  add_evidence(row, "a library where the loader of the job looks", finding);
  finding.fix = mend(c, row, std::nullopt,
                     "or install the plugin, and put its folder on the job's LD_LIBRARY_PATH");
  judge.report(std::move(finding));
}

// --- CollNet ---

// Only NVIDIA's SHARP plugin has it; NCCL goes on with rings and trees where there is none.
void judge_collnet(const Case& c, InForce row, Judge& judge) {
  const auto number = number_of(row);
  if (!number || *number == 0) return;
  std::erase_if(row.places, [&](const Place& place) {
    const Software* software = software_of(*place.node, judge);
    return software == nullptr || has_net_plugin(*software) ||
           !plugin_was_looked_for(c, *place.node, judge);
  });
  if (row.places.empty()) return;
  Finding finding{.code = "env-collnet-without-plugin",
                  .severity = Severity::notice,
                  .certainty = Certainty::possible,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = hosts_of(row.places)},
                  .summary = fmt::format("{} {} does nothing: there is no plugin that could have "
                                         "the switches reduce",
                                         row.text(), where_text(c, row.places))};
  add_evidence(row, "unset, or NVIDIA's SHARP plugin on every node", finding);
  finding.fix = mend(c, row, std::nullopt, "or install nccl-rdma-sharp-plugins (HPC-X)");
  judge.report(std::move(finding));
}

// --- LD_PRELOAD ---

void judge_preload(const Case& c, const InForce& row, Judge& judge) {
  InForce bad{.name = row.name};
  std::vector<std::string> words;
  for (const Place& place : row.places) {
    const Software* software = software_of(*place.node, judge);
    if (software == nullptr || !is_the_jobs_own(place.setting->origin.source)) continue;
    auto missing = not_found(*software, row);
    if (missing.empty()) continue;
    words = std::move(missing);
    bad.places.push_back(place);
  }
  if (bad.places.empty()) return;
  Finding finding{
      .code = "env-preload-not-there",
      .severity = Severity::notice,
      .certainty = Certainty::possible,
      .symptom = Symptom::slow,
      .subjects = {.nodes = hosts_of(bad.places)},
      .summary = fmt::format("{} {}: no library {} was found; the loader goes on without it",
                             bad.text(), where_text(c, bad.places), fmt::join(words, ", "))};
  add_evidence(bad, "a library that is there on every node", finding);
  finding.fix = mend(c, bad, std::nullopt, "or put the library where every node finds it");
  judge.report(std::move(finding));
}

// --- NCCL_IB_DISABLE beside a plugin ---

bool names_network(const Case& c, const Place& place) {
  const Prediction* prediction = find_prediction(c.cluster, place.node->host);
  return find_setting(*prediction, "NCCL_NET") != nullptr ||
         find_setting(*prediction, "NCCL_NET_PLUGIN") != nullptr;
}

// NVIDIA's plugin brings an InfiniBand of its own; those of the clouds have none to turn off.
bool brings_infiniband(const NcclPlugin& plugin) {
  return plugin.kind == "net" && plugin.path.find("sharp") != std::string::npos;
}

void judge_disabled(const Case& c, InForce row, Judge& judge) {
  const auto number = number_of(row);
  if (!number || *number == 0) return;
  std::string path;
  std::erase_if(row.places, [&](const Place& place) {
    const Software* software = software_of(*place.node, judge);
    if (software == nullptr || names_network(c, place)) return true;
    const auto plugin = std::ranges::find_if(software->plugins, brings_infiniband);
    if (plugin == software->plugins.end()) return true;
    path = plugin->path;
    return false;
  });
  if (row.places.empty()) return;
  Finding finding{
      .code = "env-plugin-overrides",
      .severity = Severity::notice,
      .certainty = Certainty::possible,
      .symptom = Symptom::crash,
      .subjects = {.nodes = hosts_of(row.places)},
      .summary = fmt::format("{} {} turns off NCCL's own InfiniBand only; the plugin {} "
                             "goes before it and may use it all the same",
                             row.text(), where_text(c, row.places), path)};
  add_evidence(row, "NCCL_NET=Socket beside it, or NCCL_NET_PLUGIN=none", finding);
  finding.fix = {{.node = "*",
                  .kind = Fix::Kind::env,
                  .env = {{"NCCL_NET", "Socket"}},
                  .text = "where TCP is what you want"}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  see_settings(c, judge);
  see_value(c, "NCCL_NET", judge);
  for (InForce& row : in_force(c, "NCCL_NET")) judge_network(c, std::move(row), judge);
  for (const char* name : {"NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"}) {
    see_value(c, name, judge);
    for (InForce& row : in_force(c, name)) judge_plugin(c, std::move(row), judge);
  }
  for (InForce& row : in_force(c, "NCCL_COLLNET_ENABLE")) judge_collnet(c, std::move(row), judge);
  for (const InForce& row : in_force(c, "LD_PRELOAD")) judge_preload(c, row, judge);
  for (InForce& row : in_force(c, "NCCL_IB_DISABLE")) judge_disabled(c, std::move(row), judge);
}

// --- the catalogue ---

constexpr Page kNetworkPage{
    .meaning =
        "NCCL_NET forces one network by name. NCCL itself has `IB`, where there are RDMA devices, "
        "and "
        "`Socket`, in any case; all others (`AWS Libfabric`, `IBext`, `FasTrak`) come with a "
        "plugin, "
        "and none was found. NCCL then stops: `Failed to initialize any NET plugin`, before 2.27 "
        "`network ... not found`.",
    .confirm = "NCCL_DEBUG=INFO prints that line, and `Could not find: libnccl-net.so` before it.",
    .fix = "Unset NCCL_NET, or install the plugin where the job's loader looks.",
    .verify = "NCCL_DEBUG=INFO prints `Using network NAME`."};
constexpr Page kPluginPage{
    .meaning =
        "NCCL_NET_PLUGIN, NCCL_TUNER_PLUGIN or NCCL_PROFILER_PLUGIN names a library, by its path, "
        "its file name, or X for libnccl-net-X.so. There is none where the loader looks. NCCL says "
        "so only at INFO and goes on with its own networks: slower, where the plugin was the way "
        "to the fabric.",
    .confirm = "NCCL_DEBUG=INFO prints `NET/Plugin: Could not find: ...`.",
    .fix = "Install it on all nodes, put its folder on LD_LIBRARY_PATH, or unset the variable.",
    .verify = "NCCL_DEBUG=INFO prints `Successfully loaded external network plugin`."};
constexpr Page kCollnetPage{
    .meaning =
        "NCCL_COLLNET_ENABLE=1 lets the switches of an InfiniBand fabric reduce (SHARP). NCCL does "
        "that through a plugin only, and none was found: it goes on with rings and trees. Where "
        "some nodes have the plugin and others do not, the job may hang.",
    .confirm = "NCCL_DEBUG=INFO prints no `CollNet` channel, and `Could not find: libnccl-net.so`.",
    .fix = "Install NVIDIA's SHARP plugin on all nodes, or unset the variable.",
    .verify = "NCCL_DEBUG=INFO prints `Using network SHARP` or `CollNet` channels."};
constexpr Page kPreloadPage{
    .meaning =
        "LD_PRELOAD names a library that is not on this node. The dynamic loader prints one line "
        "and goes on without it, so the ranks of this node run other code than the others: "
        "another NCCL, where it was one.",
    .confirm = "The ranks print `object '...' from LD_PRELOAD cannot be preloaded: ignored`.",
    .fix = "Put the library on all nodes, or take it out of LD_PRELOAD.",
    .verify =
        "The line is gone; `grep libnccl /proc/PID/maps` of a rank shows the wanted library."};
constexpr Page kOverridesPage{
    .meaning =
        "A network plugin goes before NCCL's own networks, and NCCL_IB_DISABLE is read by NCCL's "
        "own InfiniBand. NVIDIA's plugin (HPC-X, SHARP) brings another InfiniBand transport, which "
        "stays in use.",
    .confirm = "NCCL_DEBUG=INFO prints `Using network IBext` in spite of NCCL_IB_DISABLE=1.",
    .fix = "NCCL_NET=Socket or NCCL_NET_PLUGIN=none says what was meant.",
    .verify = "NCCL_DEBUG=INFO prints `Using network Socket`."};
constexpr Code kCodes[] = {{.id = "env-network-not-there",
                            .fault_class = FaultClass::plugin_override,
                            .worst = Severity::blocker,
                            .title = "NCCL_NET names a network that nothing provides",
                            .causes = {},
                            .page = kNetworkPage},
                           {.id = "env-plugin-not-there",
                            .fault_class = FaultClass::plugin_override,
                            .worst = Severity::notice,
                            .title = "A plugin that NCCL is told to load is not there",
                            .causes = {},
                            .page = kPluginPage},
                           {.id = "env-collnet-without-plugin",
                            .fault_class = FaultClass::plugin_override,
                            .worst = Severity::notice,
                            .title = "NCCL_COLLNET_ENABLE without a plugin that has it",
                            .causes = {},
                            .page = kCollnetPage},
                           {.id = "env-preload-not-there",
                            .fault_class = FaultClass::plugin_override,
                            .worst = Severity::notice,
                            .title = "A library that LD_PRELOAD names is not there",
                            .causes = {},
                            .page = kPreloadPage},
                           {.id = "env-plugin-overrides",
                            .fault_class = FaultClass::plugin_override,
                            .worst = Severity::notice,
                            .title = "NCCL_IB_DISABLE does not reach the plugin",
                            .causes = {},
                            .page = kOverridesPage}};

}  // namespace

extern const Check env_named_network{
    .title = "The network that NCCL is told to use is there", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
