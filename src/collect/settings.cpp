#include "collect/settings.h"

#include "base/nccl_config.h"
#include "base/secrets.h"
#include "collect/accounts.h"
#include "collect/collectors.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::array<std::string_view, 12> kTorchrunNames = {
    "RANK",        "WORLD_SIZE",       "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
    "ROLE_RANK",   "GROUP_WORLD_SIZE", "ROLE_NAME",  "ROLE_WORLD_SIZE",  "MASTER_ADDR",
    "MASTER_PORT", "NODE_RANK"};
constexpr std::array<std::string_view, 6> kLauncherPrefixes = {"SLURM_", "OMPI_", "PMI_",
                                                               "PMIX_",  "PALS_", "TORCHELASTIC_"};

void add(const NcclConfigLine& line, Source source, const std::string& path, Settings& settings) {
  if (!may_leave_a_process(line.name)) return;
  const Origin origin{.source = source, .where = path + ":" + std::to_string(line.line)};
  settings.emplace(line.name, Setting{.value = mask_value(line.value), .origin = origin});
}

void add_file(const machine::FileTree& files,
              Source source,
              const std::string& path,
              Settings& settings) {
  const auto text = files.read(path);
  if (!text) return;  // a missing one is silent to NCCL too
  for (const auto& line : parse_nccl_config(*text)) add(line, source, path, settings);
}

}  // namespace

Source source_of(std::string_view name, const machine::Environment& environment) {
  const bool of_torchrun = environment.contains("TORCHELASTIC_RUN_ID") &&
                           std::ranges::find(kTorchrunNames, name) != kTorchrunNames.end();
  const bool of_launcher = std::ranges::any_of(
      kLauncherPrefixes, [name](std::string_view prefix) { return name.starts_with(prefix); });
  return of_torchrun || of_launcher ? Source::launcher : Source::environment;
}

UserConfig user_config(const machine::Machine& machine, const JobPlaces& said) {
  constexpr const char* kVariable = "NCCL_CONF_FILE";
  const auto of_job = said.find(kVariable);
  const auto own = machine.environment().find(kVariable);
  if (of_job != said.end()) {
    auto filled = fill_in(kVariable, of_job->second, machine.environment());
    if (!filled.whole) return {};
    if (!filled.text.empty()) return {std::move(filled.text), true};
  } else if (own != machine.environment().end() && !own->second.empty()) {
    return {own->second, true};
  }
  const auto accounts = read_accounts(machine.files());
  const auto account = accounts.find(machine.self().uid);
  return {.path = account != accounts.end() ? account->second.home + "/.nccl.conf" : ""};
}

Settings read_settings(const machine::Machine& machine, const JobPlaces& said) {
  Settings settings;
  const auto& environment = machine.environment();
  for (const auto& [name, value] : environment) {
    if (!may_leave_a_process(name)) continue;
    const Origin origin{.source = source_of(name, environment), .where = "$" + name};
    settings.emplace(name, Setting{.value = mask_value(value), .origin = origin});
  }
  const auto user = user_config(machine, said).path;
  if (!user.empty()) add_file(machine.files(), Source::user_config, user, settings);
  add_file(machine.files(), Source::system_config, kSystemConfig, settings);
  return settings;
}

void collect_settings(machine::Machine& machine, const CollectRequest& request, NodeFacts& node) {
  node.settings = read_settings(machine, request.settings);
}

}  // namespace distdoctor::collect
