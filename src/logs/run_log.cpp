#include "logs/run_log.h"

#include "base/nccl_log.h"
#include "base/text.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace distdoctor::logs {
namespace {

constexpr std::size_t kMostWarnings = 20;

std::optional<std::string_view> behind(std::string_view line, std::string_view mark) {
  const auto begin = line.find(mark);
  if (begin == std::string_view::npos) return std::nullopt;
  return line.substr(begin + mark.size());
}

void add_once(std::vector<std::string>& names, std::string_view name) {
  if (name.empty() || std::ranges::find(names, name) != names.end()) return;
  names.emplace_back(name);
}

// "... NCCL INFO NCCL_P2P_DISABLE set by environment to 1.", "NCCL_IB_HCA set to mlx5_0"
void read_variable(std::string_view line, RunLog& log) {
  const bool is_short = line.find(nccl_log::kSetByEnvironment) == std::string_view::npos;
  const auto mark = is_short ? nccl_log::kSet : nccl_log::kSetByEnvironment;
  const auto place = line.find(mark);
  if (place == std::string_view::npos) return;
  const auto before = line.substr(0, place);
  if (!before.substr(before.rfind(' ') + 1).starts_with("NCCL_")) return;
  auto value = line.substr(place + mark.size());
  if (value.ends_with('.')) value.remove_suffix(1);
  log.variables[std::string(before.substr(before.rfind(' ') + 1))] = value;
}

// "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM" and "... [send] via NET/IB/0/GDRDMA"
void read_transport(std::string_view line, RunLog& log) {
  const auto via = behind(line, nccl_log::kVia);
  if (!via) return;
  const auto name = via->substr(0, via->find(' '));
  if (name.starts_with("P2P") || name.starts_with("SHM") || name.starts_with("NET")) {
    add_once(log.transports, name);
  }
}

// "NET/Socket : Using [0]eth1:10.0.1.1<0> [1]eth2:..." and "NET/IB : Using [0]mlx5_0:1/IB [RO];
// ..."
void read_interfaces(std::string_view line, RunLog& log) {
  auto rest = behind(line, nccl_log::kUsing);
  if (!rest) return;
  for (auto word : split_words(*rest)) {
    const auto bracket = word.find(']');
    if (!word.starts_with('[') || bracket == std::string_view::npos) continue;
    word.remove_prefix(bracket + 1);
    const auto colon = word.find(':');  // "[RO]" has none
    if (colon != std::string_view::npos) add_once(log.interfaces, word.substr(0, colon));
  }
}

}  // namespace

RunLog read_run_log(std::span<const std::string> lines) {
  RunLog log;
  for (const std::string& line : lines) {
    read_variable(line, log);
    read_transport(line, log);
    read_interfaces(line, log);
    if (const auto text = behind(line, nccl_log::kVersion))
      log.version = text->substr(0, text->find('+'));
    if (const auto text = behind(line, nccl_log::kNetwork)) log.network = *text;
    const auto warning = behind(line, nccl_log::kWarning);
    if (warning && log.warnings.size() < kMostWarnings) log.warnings.emplace_back(*warning);
  }
  return log;
}

}  // namespace distdoctor::logs
