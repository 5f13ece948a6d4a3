#include "collect/identity.h"

#include "base/text.h"
#include "collect/accounts.h"
#include "collect/collectors.h"

#include <algorithm>
#include <array>
#include <utility>

namespace distdoctor::collect {
namespace {

using Clue = std::pair<std::string_view, std::string_view>;

// Set by the engine in each of its containers. An image of one engine that another one runs keeps
// the first one's files (/.singularity.d, /.dockerenv), so that these are asked last.
constexpr std::array<Clue, 7> kVariables = {{{"APPTAINER_CONTAINER", "apptainer"},
                                             {"SINGULARITY_CONTAINER", "apptainer"},
                                             {"SINGULARITY_NAME", "apptainer"},
                                             {"ENROOT_ROOTFS", "enroot"},
                                             {"PYXIS_CONTAINER_IMAGE", "enroot"},
                                             {"CH_RUNNING", "charliecloud"},
                                             {"KUBERNETES_SERVICE_HOST", "kubernetes"}}};
constexpr std::array<Clue, 6> kFiles = {{{"/run/secrets/kubernetes.io", "kubernetes"},
                                         {"/var/run/secrets/kubernetes.io", "kubernetes"},
                                         {"/run/.containerenv", "podman"},
                                         {"/.dockerenv", "docker"},
                                         {"/.enroot", "enroot"},
                                         {"/.singularity.d", "apptainer"}}};
constexpr std::array<Clue, 5> kGroups = {{{"/kubepods", "kubernetes"},
                                          {"/docker/", "docker"},
                                          {"/docker-", "docker"},
                                          {"/libpod-", "podman"},
                                          {"/lxc", "lxc"}}};

bool has(const machine::Environment& environment, const std::string& name) {
  return environment.contains(name);
}

// As systemd's container interface has it: $container, of ours, or of process 1 where we may look,
// and what systemd made of it.
std::string named_by_engine(const machine::Machine& machine) {
  const auto& own = machine.environment();
  auto name = own.find("container");
  if (name != own.end()) return name->second;
  for (const auto* file : {"/run/host/container-manager", "/run/systemd/container"}) {
    auto word = machine.files().word(file);
    if (!word.empty()) return word;
  }
  const auto text = machine.files().read_head("/proc/1/environ", std::size_t{1} << 16);
  const auto first = machine::parse_environment(text.value_or(""));
  name = first.find("container");
  return name != first.end() ? name->second : "";
}

}  // namespace

std::string parse_os_name(std::string_view os_release) {
  for (const auto line : split_lines(os_release)) {
    const auto value = after_prefix(line, "PRETTY_NAME=");
    if (!value) continue;
    auto name = trim(*value);
    const bool quoted = name.size() > 1 && (name.front() == '"' || name.front() == '\'') &&
                        name.back() == name.front();
    if (quoted) name = name.substr(1, name.size() - 2);
    return std::string(name);
  }
  return "";
}

std::string container_of_cgroups(std::string_view text) {
  for (const auto& [part, kind] : kGroups) {
    if (text.find(part) != std::string_view::npos) return std::string(kind);
  }
  return "";
}

std::string container_kind(const machine::Machine& machine) {
  for (const auto& [variable, kind] : kVariables) {
    if (has(machine.environment(), std::string(variable))) return std::string(kind);
  }
  for (const auto& [path, kind] : kFiles) {
    if (machine.files().info(path)) return std::string(kind);
  }
  if (is_enroot_root(machine.files().read("/proc/self/mountinfo").value_or(""))) return "enroot";
  const auto group = container_of_cgroups(machine.files().read("/proc/self/cgroup").value_or(""));
  return group.empty() ? named_by_engine(machine) : group;
}

bool is_enroot_root(std::string_view mountinfo) {
  for (const auto line : split_lines(mountinfo)) {
    const auto words = split_words(line);
    if (words.size() < 5 || words[4] != "/") continue;
    // Its data folder, ~/.local/share/enroot by default; "pyxis_JOB.STEP" is what Slurm's plugin
    // calls its containers.
    const bool named = line.find("/enroot/") != std::string_view::npos ||
                       line.find("/pyxis_") != std::string_view::npos;
    if (named) return true;
  }
  return false;
}

Context context_of(const machine::Machine& machine) {
  const auto& environment = machine.environment();
  const auto script = environment.find("SLURM_SCRIPT_CONTEXT");
  if (script != environment.end() &&
      (script->second.starts_with("prolog") || script->second.starts_with("epilog"))) {
    return Context::prolog;
  }
  if (has(environment, "SLURM_STEP_ID") || has(environment, "SLURM_PROCID")) {
    return Context::slurm_step;
  }
  if (!container_kind(machine).empty()) return Context::container;
  return has(environment, "SSH_CONNECTION") ? Context::ssh : Context::shell;
}

void collect_identity(machine::Machine& machine,
                      const CollectRequest& /*request*/,
                      NodeFacts& node) {
  node.context = context_of(machine);
  const auto self = machine.self();
  const auto& files = machine.files();
  node.identity = Identity{.hostname = self.hostname,
                           .boot_id = files.word("/proc/sys/kernel/random/boot_id"),
                           .kernel = self.release,
                           .os = parse_os_name(files.read("/etc/os-release").value_or("")),
                           .container = container_kind(machine),
                           .user = user_name(read_accounts(files), self.uid),
                           .uid = self.uid};
}

// The clock of the processes' start times, which stands still in a capture.
void collect_uptime(machine::Machine& machine, const CollectRequest& /*request*/, NodeFacts& node) {
  const double uptime_s = machine.self().uptime_s;
  if (uptime_s > 0) {
    node.uptime_s = uptime_s;
  } else {
    node.uptime_s = Unknown{Why::not_collected, "the capture does not tell it"};
  }
}

}  // namespace distdoctor::collect
