#include "capture/redact.h"

#include "base/secrets.h"
#include "base/text.h"
#include "machine/processes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace distdoctor::capture {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20;

// What tells in which world we are: that it is set counts, and of one what it says.
constexpr std::string_view kEngine = "container";
constexpr std::array<std::string_view, 8> kMarks = {
    "SSH_CONNECTION",   "KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER",   "SINGULARITY_CONTAINER",
    "SINGULARITY_NAME", "ENROOT_ROOTFS",           "PYXIS_CONTAINER_IMAGE", "CH_RUNNING"};

std::string environ_of(std::string_view text) {
  std::string kept;
  for (const auto& [name, value] : allowed_variables(machine::parse_environment(text))) {
    kept.append(name).append("=").append(value) += '\0';
  }
  return kept;
}

std::string command_line_of(std::string_view text) {
  std::string kept;
  for (const auto& argument : mask_secrets(machine::parse_command_line(text))) {
    kept += argument + '\0';
  }
  return kept;
}

std::string lines_with_path(std::string_view text) {
  std::string kept;
  for (const auto line : split_lines(text)) {
    if (line.find('/') != std::string_view::npos) kept += std::string(line) + '\n';
  }
  return kept;
}

bool is_nccl(std::string_view path) {
  return path.find("/libnccl.so") != std::string_view::npos;
}

}  // namespace

std::map<std::string, std::string> allowed_variables(
    const std::map<std::string, std::string>& environment) {
  std::map<std::string, std::string> allowed;
  for (const auto& [name, value] : environment) {
    const bool mark = std::ranges::find(kMarks, name) != kMarks.end();
    if (mark) allowed.emplace(name, "set");
    if (name == kEngine || may_leave_a_process(name)) allowed.emplace(name, mask_value(value));
  }
  return allowed;
}

std::string redacted(std::string_view path, std::string_view text) {
  const bool of_process = path.starts_with("/proc/");
  if (of_process && path.ends_with("/environ")) return environ_of(text);
  if (of_process && path.ends_with("/cmdline")) return command_line_of(text);
  if (of_process && path.ends_with("/maps")) return lines_with_path(text);
  if (is_nccl(path)) return redacted_part(path, text);
  return text.size() <= kMostText ? std::string(text) : "";
}

std::string redacted_part(std::string_view path, std::string_view part) {
  const auto at = is_nccl(path) ? part.find("NCCL version ") : std::string_view::npos;
  return at == std::string_view::npos ? "" : std::string(part.substr(at, 32));
}

}  // namespace distdoctor::capture
