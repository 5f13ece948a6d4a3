#include "cli/input.h"

#include "base/hostlist.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/files.h"
#include "exam/recording.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace distdoctor::cli {
namespace {

constexpr std::size_t kMostHostFile = std::size_t{4} << 20;
constexpr std::size_t kMostEnvFile = std::size_t{1} << 20;

std::string line_place(const std::string& path, std::size_t line) {
  return path + ":" + std::to_string(line);
}

Result<std::pair<std::string, std::string>> assignment(std::string_view line) {
  const auto equals = line.find('=');
  const std::string_view name = trim(line.substr(0, equals));
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  const bool good = equals != std::string_view::npos && !name.empty() &&
                    name.find_first_not_of(kLetters) == std::string_view::npos &&
                    (name.front() < '0' || name.front() > '9');
  if (!good) return failure("read '" + std::string(line) + "'", "not NAME=VALUE");
  return std::pair(std::string(name), std::string(line.substr(equals + 1)));
}

// Quotes around a whole value are the shell's, not the value's.
std::string unquoted(std::string value) {
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
      value.back() == value.front()) {
    return value.substr(1, value.size() - 2);
  }
  return value;
}

Result<Settings> read_env_file(const std::string& path, Deadline by) {
  DD_TRY(const std::string text, read_file(path, kMostEnvFile, by));
  Settings settings;
  std::size_t number = 0;
  for (std::string_view line : split_lines(text)) {
    ++number;
    line = trim(line);
    if (line.empty() || line.front() == '#') continue;
    if (const auto rest = after_prefix(line, "export ")) line = trim(*rest);
    auto pair = assignment(line);
    if (!pair) {
      pair.error().place = line_place(path, number);
      return std::unexpected(pair.error());
    }
    settings[pair->first] = {unquoted(pair->second),
                             {.source = Source::option, .where = line_place(path, number)}};
  }
  return settings;
}

// Hostfiles of mpirun have comments, and words such as slots=8 behind a host.
std::string hosts_of_file(std::string_view text) {
  std::string hosts;
  for (const auto line : split_lines(text)) {
    for (const auto word : split_words(line.substr(0, line.find('#')))) {
      if (word.find('=') == std::string_view::npos) hosts.append(word).append(" ");
    }
    hosts += '\n';
  }
  return hosts;
}

}  // namespace

Result<std::vector<std::string>> read_peers(const std::string& text, Deadline by) {
  if (!text.empty()) {
    if (text.front() != '@') return parse_hostlist(text);
    DD_TRY(const std::string list, read_file(text.substr(1), kMostHostFile, by));
    return parse_hostlist(hosts_of_file(list));
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody writes our environment
  const char* slurm = std::getenv("SLURM_JOB_NODELIST");
  if (slurm == nullptr || *slurm == '\0') return std::vector<std::string>{};
  return parse_hostlist(slurm);
}

Result<Settings> read_env_option(const std::string& text, Deadline by) {
  if (text.find('=') == std::string::npos) return read_env_file(text, by);
  DD_TRY(auto pair, assignment(text));
  return Settings{{pair.first, {pair.second, {.source = Source::option, .where = "--env"}}}};
}

Result<Settings> read_master_option(const std::string& text) {
  std::string host = text;
  std::string port;
  const auto colon = text.rfind(':');
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string::npos) return failure("read --master " + text, "']' is missing");
    host = text.substr(1, end - 1);
    if (text.size() > end + 2 && text[end + 1] == ':') port = text.substr(end + 2);
  } else if (colon != std::string::npos && text.find(':') == colon) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (host.empty()) return failure("read --master " + text, "not HOST:PORT");
  const Origin origin{.source = Source::option, .where = "--master"};
  Settings settings = {{"MASTER_ADDR", {host, origin}}};
  if (!port.empty()) settings["MASTER_PORT"] = {port, origin};
  return settings;
}

Settings own_environment() {
  Settings settings;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name(text.substr(0, equals));
    if (!may_leave_a_process(name)) continue;
    settings[name] = {mask_value(text.substr(equals + 1)),
                      {.source = Source::environment, .where = "$" + name}};
  }
  return settings;
}

Result<ClusterFacts> read_facts(const std::vector<std::string>& paths, Deadline by) {
  std::vector<exam::RecordingFile> files;
  for (const std::string& path : paths) {
    DD_TRY(auto text, read_file(path, exam::kMostRecordingBytes, by));
    files.push_back({.name = path, .text = std::move(text)});
  }
  return exam::read_recordings(files);
}

}  // namespace distdoctor::cli
