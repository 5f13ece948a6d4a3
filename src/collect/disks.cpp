#include "collect/disks.h"

#include "base/text.h"
#include "collect/processes.h"
#include "collect/settings.h"
#include "machine/patient_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::size_t kMostDisks = 16;
constexpr std::size_t kMostWorkers = 8;
constexpr std::chrono::milliseconds kPatience{500};

constexpr std::array<std::string_view, 7> kFiles = {
    "NCCL_DEBUG_FILE",         "NCCL_TOPO_DUMP_FILE",
    "NCCL_GRAPH_DUMP_FILE",    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
    "TORCH_FR_DUMP_TEMP_FILE", "TORCH_LOGS_OUT",
    "TORCHELASTIC_ERROR_FILE"};

std::string value_of(const Settings& settings, std::string_view name) {
  const auto found = settings.find(std::string(name));
  return found == settings.end() ? "" : found->second.value;
}

std::string absolute(std::string_view path, std::string_view working_folder) {
  if (path.starts_with('/')) return std::string(path);
  if (working_folder.empty()) return "";
  return std::string(working_folder) + (path.empty() ? "" : "/" + std::string(path));
}

std::string link_of(const machine::FileTree& files, const std::string& path) {
  return files.read_link(path).value_or("");
}

void add_cores(const machine::Machine& machine,
               const std::string& working_folder,
               std::vector<Place>& places) {
  const auto limits = machine.limits();
  const auto core = limits ? limits->find("core") : std::map<std::string, Limit>::const_iterator{};
  if (!limits || core == limits->end() || core->second.soft == 0) return;
  const auto pattern = machine.files().word("/proc/sys/kernel/core_pattern");
  if (const auto folder = folder_of_cores(pattern, working_folder)) {
    places.push_back({"core dumps", *folder});
  }
}

// What a process has in its environment, for those that see the files that we see.
void add_workers(const machine::Machine& machine, std::vector<Place>& places) {
  const auto& files = machine.files();
  const auto own = link_of(files, "/proc/self/ns/mnt");
  std::size_t asked = 0;
  for (const auto& found : find_training(machine)) {
    if (found.role != ProcessRole::worker || asked++ >= kMostWorkers) continue;
    const auto folder = "/proc/" + std::to_string(found.process->pid);
    if (own.empty() || link_of(files, folder + "/ns/mnt") != own) continue;
    Settings settings;
    if (found.process->environment.known()) {
      for (const auto& [name, value] : *found.process->environment) settings[name].value = value;
    }
    for (auto& place : places_of(settings, link_of(files, folder + "/cwd"))) {
      places.push_back(std::move(place));
    }
  }
}

std::vector<Place> all_places(const machine::Machine& machine) {
  const auto working_folder = link_of(machine.files(), "/proc/self/cwd");
  auto places = places_of(read_settings(machine), working_folder);
  add_cores(machine, working_folder, places);
  add_workers(machine, places);
  return places;
}

// Root may write everywhere, and whoever cannot run test(1) is not told.
bool may_not_write(const machine::Machine& machine, const std::string& folder) {
  if (machine.self().uid == 0) return false;
  const auto asked =
      machine.run({.argv = {"test", "-w", folder, "-a", "-x", folder}}, Deadline::after(kPatience));
  return asked && asked->exit_code == 1;
}

Disk look(const machine::Machine& machine, const Place& place, machine::PatientFiles& files) {
  Disk disk{.purpose = place.purpose, .path = place.path};
  const auto room = files.file_system(place.path);
  if (!room) {
    disk.error = room.error().errno_value;
    return disk;
  }
  disk.size = room->size;
  disk.free = room->free;
  disk.files_free = room->files_free;
  disk.read_only = room->read_only;
  if (!disk.read_only && may_not_write(machine, place.path)) disk.error = EACCES;
  return disk;
}

// Its room is told elsewhere (shm.cpp).
void add_shared_memory(const machine::Machine& machine,
                       machine::PatientFiles& files,
                       std::vector<Disk>& disks) {
  Disk disk = look(machine, {"shared memory", "/dev/shm"}, files);
  if (disk.error == EACCES) disks.push_back(std::move(disk));
}

}  // namespace

std::optional<std::string> folder_of(std::string_view file, std::string_view working_folder) {
  if (file.empty() || file.starts_with("/dev/") || file.starts_with("/proc/")) return std::nullopt;
  const auto fixed = file.substr(0, file.find('%'));
  const auto slash = fixed.rfind('/');
  if (slash == 0) return "/";
  auto folder =
      absolute(slash == std::string_view::npos ? "" : fixed.substr(0, slash), working_folder);
  return folder.empty() ? std::nullopt : std::optional(std::move(folder));
}

std::optional<std::string> folder_of_cores(std::string_view pattern,
                                           std::string_view working_folder) {
  return pattern.starts_with('|') ? std::nullopt : folder_of(pattern, working_folder);
}

std::vector<Place> places_of(const Settings& settings, const std::string& working_folder) {
  const auto temporary = value_of(settings, "TMPDIR");
  std::vector<Place> places = {temporary.starts_with('/') ? Place{"TMPDIR", temporary}
                                                          : Place{"temporary files", "/tmp"}};
  if (working_folder.starts_with('/')) places.push_back({"working folder", working_folder});
  for (const auto name : kFiles) {
    const auto folder = folder_of(value_of(settings, name), working_folder);
    if (folder) places.push_back({std::string(name), *folder});
  }
  const auto trace = value_of(settings, "TORCH_TRACE");
  if (!trace.empty()) places.push_back({"TORCH_TRACE", absolute(trace, working_folder)});
  return places;
}

std::vector<Disk> read_disks(const machine::Machine& machine) {
  machine::PatientFiles files(machine.shared_files(), kPatience);
  std::vector<Place> seen;
  std::vector<Disk> disks;
  for (const auto& place : all_places(machine)) {
    const bool known = place.path.empty() || std::ranges::find(seen, place) != seen.end();
    if (known || disks.size() == kMostDisks) continue;
    seen.push_back(place);
    disks.push_back(look(machine, place, files));
  }
  add_shared_memory(machine, files, disks);
  return disks;
}

}  // namespace distdoctor::collect
