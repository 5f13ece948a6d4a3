#include "capture/anonymous.h"

#include "base/text.h"
#include "base/utf8.h"
#include "capture/numbers.h"
#include "capture/veil.h"
#include "machine/kernel_lines.h"
#include "machine/machine.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace distdoctor::capture {
namespace {

using machine::CapturedFile;
using machine::CapturedMachine;
using machine::ChildOutput;

constexpr std::string_view kHidden = "***";

// --- rows ----------------------------------------------------------------------------------------

// As a visitor of `fields`: addresses and hardware addresses. Names of links stay.
class Rows {
 public:
  Rows(const Scrambler& scrambler, const Veil& veil) : scrambler_(scrambler), veil_(veil) {}

  template <class T>
  void operator()(std::string_view /*name*/, T& member) {
    hide(member);
  }

  void hide(std::string& text) { text = hide_ids(text, scrambler_); }
  void hide(Address& address) {
    const auto zone = address.zone;
    address = scrambler_.address(address);
    address.zone = hide_ids(zone, scrambler_);
  }
  void hide(Route& route) {
    fields(*this, route);
    clear_behind(route.prefix, route.destination);
  }
  void hide(PolicyRule& rule) {
    fields(*this, rule);
    if (rule.from) clear_behind(rule.from_prefix, *rule.from);
    if (rule.to) clear_behind(rule.to_prefix, *rule.to);
  }

  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void hide(T& /*number*/) {}
  template <class T>
  void hide(std::optional<T>& x) {
    if (x) hide(*x);
  }
  template <class T>
  void hide(std::vector<T>& all) {
    for (T& x : all) hide(x);
  }
  template <class T>
  void hide(Observed<T>& x) {
    if (!x.known()) {
      x = Unknown{x.why().kind, veil_.text(x.why().text)};
      return;
    }
    T value = *x;
    hide(value);
    x = std::move(value);
  }
  template <class T>
    requires std::is_class_v<T>
  void hide(T& x) {
    fields(*this, x);
  }

 private:
  // The original's host part was zero: that of the other one is, too.
  static void clear_behind(int prefix, Address& address) {
    for (int i = prefix; i < address.bits(); ++i) {
      auto& byte = address.bytes.at(static_cast<std::size_t>(i) / 8);
      byte = static_cast<std::uint8_t>(byte & ~(0x80U >> static_cast<unsigned>(i) % 8U));
    }
  }

  const Scrambler& scrambler_;
  const Veil& veil_;
};

// --- files ---------------------------------------------------------------------------------------

bool of_process(std::string_view path, std::string_view name) {
  return path.starts_with("/proc/") && path.ends_with(name);
}

// Numbers in groups of four are no addresses there.
bool tells_a_version(std::string_view path) {
  constexpr std::array<std::string_view, 6> kEnds = {"version",       "/fw_ver",     "/version.py",
                                                     "/version.json", "/os-release", "_packages"};
  return path.find(".so") != std::string_view::npos ||
         std::ranges::any_of(kEnds, [&](std::string_view end) { return path.ends_with(end); });
}

// What a cloud writes there tells that it is one (collect/platform.cpp); anybody else's is a label
// on a machine.
std::string asset_tag(std::string_view text) {
  constexpr std::array<std::string_view, 2> kClouds = {"7783-7084-3265-9085-8269-3286-77",
                                                       "OracleCloud.com"};
  const bool everybodys =
      trim(text).empty() || std::ranges::find(kClouds, trim(text)) != kClouds.end();
  return std::string(everybodys ? text : kHidden);
}

std::string settings_of(std::string_view text, const Veil& veil) {
  std::string kept;
  for (const auto& [name, value] : machine::parse_environment(text)) {
    kept += name + "=" + veil.setting(name, value) + '\0';
  }
  return kept;
}

std::string arguments_of(std::string_view text, const Veil& veil) {
  std::string kept;
  for (const auto& word : machine::parse_command_line(text)) kept += veil.argument(word) + '\0';
  return kept;
}

// People's real names stand in the fifth field.
std::string accounts_of(std::string_view text, const Veil& veil) {
  std::string kept;
  for (const auto line : split_lines(text)) {
    auto parts = split(line, ':');
    if (parts.size() == 7) parts[4] = "";
    std::vector<std::string> hidden;
    for (const auto part : parts) hidden.push_back(veil.text(part));
    kept += join(hidden, ":") + "\n";
  }
  return kept;
}

std::string without_comments(std::string_view text) {
  std::string kept;
  for (const auto line : split_lines(text)) {
    const auto said = trim(line.substr(0, line.find('#')));
    if (!said.empty()) kept += std::string(said) + "\n";
  }
  return kept;
}

std::string text_of(const std::string& path, const std::string& text, const Veil& veil) {
  if (path == "/etc/passwd") return accounts_of(text, veil);
  if (path == "/etc/hosts" || path.ends_with("nccl.conf")) return veil.text(without_comments(text));
  if (path.ends_with("/chassis_asset_tag")) return asset_tag(text);
  if (of_process(path, "/environ")) return settings_of(text, veil);
  if (of_process(path, "/cmdline")) return arguments_of(text, veil);
  if (path.ends_with("/node_desc")) return veil.text(text);
  if (path == "/proc/net/tcp" || path == "/proc/net/tcp6") return veil.socket_table(text);
  if (tells_a_version(path)) return text;
  constexpr std::array<std::string_view, 6> kNumbers = {
      "/sys/", "/proc/cpuinfo", "/proc/net/", "/proc/bus/", "/proc/modules", "/proc/driver/"};
  const bool numbers = std::ranges::any_of(
      kNumbers, [&](std::string_view folder) { return path.starts_with(folder); });
  return numbers ? veil.numbers(text) : veil.text(text);
}

// The extended capability 3 of a PCI device is its serial number (PCI Express Base, 7.9.3).
std::string without_serial(std::string config) {
  constexpr std::size_t kFirst = 0x100;
  constexpr std::size_t kSize = 12;
  const auto word = [&](std::size_t at) {
    return static_cast<unsigned>(static_cast<unsigned char>(config[at])) |
           static_cast<unsigned>(static_cast<unsigned char>(config[at + 1])) << 8U;
  };
  std::size_t at = kFirst;
  for (int left = 256; left > 0 && at >= kFirst && at + 4 <= config.size(); --left) {
    const bool serial = word(at) == 3;
    for (std::size_t i = at + 4; serial && i < std::min(at + kSize, config.size()); ++i) {
      config[i] = '\0';
    }
    at = word(at + 2) >> 4U;
  }
  return config;
}

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(
        parse_int<unsigned char>(std::string_view(hex).substr(i, 2), 16).value_or(0));
  }
  return bytes;
}

std::string link_of(const std::string& path,
                    const std::string& target,
                    const Veil& veil,
                    const Scrambler& scrambler) {
  if (path.starts_with("/sys/")) return hide_ids(target, scrambler);
  const bool absolute = target.starts_with('/');
  const bool opened = of_process(path, "") && path.find("/fd/") != std::string::npos;
  if (opened && absolute && !target.starts_with("/dev/") && !target.starts_with("/proc/")) {
    return "/" + scrambler.name('w', target);  // somebody's file, and no matter which
  }
  if (absolute) return veil.path(target);
  if (!veil.is_private(path)) return veil.text(target);
  // As a sibling would be called.
  const auto folder = path.substr(0, path.rfind('/') + 1);
  return veil.path(folder + target).substr(veil.path(folder).size());
}

// --- the rest ------------------------------------------------------------------------------------

// Of lines that no check knows only the time of the first one counts: how far back it all goes.
std::string kernel_lines(std::string_view text, const Veil& veil) {
  std::string kept;
  for (const auto line : split_lines(text)) {
    if (machine::kernel_line_kind(line)) {
      kept += veil.text(line) + "\n";
    } else if (kept.empty() && line.starts_with('<') && line.find(']') != std::string_view::npos) {
      kept += std::string(line.substr(0, line.find(']') + 1)) + " " + std::string(kHidden) + "\n";
    }
  }
  return kept;
}

// Where a remark begins; npos without one.
std::size_t remark_in(std::string_view line) {
  std::size_t first = std::string_view::npos;
  for (const std::string_view word : {"comment \"", "prefix \"", "--comment ", "--log-prefix "}) {
    const auto found = line.find(word);
    if (found != std::string_view::npos) first = std::min(first, found + word.size());
  }
  const bool quoted = first < line.size() && line[first] == '"';
  return quoted ? first + 1 : first;
}

// Of nft: comment "...", log prefix "..."; of iptables, which quotes only what has blanks in it:
// --comment "...", --log-prefix "...".
std::string without_remarks(std::string_view text) {
  std::string kept;
  for (auto line : split_lines(text)) {
    for (auto at = remark_in(line); at != std::string_view::npos; at = remark_in(line)) {
      kept += std::string(line.substr(0, at)) + std::string(kHidden);
      const auto end = std::min(line.find(line[at - 1] == '"' ? '"' : ' ', at), line.size());
      kept += line.substr(end, 1);
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    kept += std::string(line) + "\n";
  }
  return kept;
}

// A site's own check may say anything: what counts is how bad it is.
std::string verdict_of(std::string_view text) {
  if (trim(text).empty()) return "";
  const auto at = text.find("\"severity\"");
  if (!trim(text).starts_with('{') || at == std::string_view::npos) return std::string(kHidden);
  const auto parts = split(text.substr(at), '"', 5);  // |severity|: |blocker|...
  constexpr std::array<std::string_view, 5> kKnown = {"ok", "notice", "degraded", "blocker",
                                                      "unknown"};
  if (parts.size() < 5 || std::ranges::find(kKnown, parts[3]) == kKnown.end()) {
    return std::string(kHidden);
  }
  return R"({"severity": ")" + std::string(parts[3]) + R"(", "text": ")" + std::string(kHidden) +
         R"("})";
}

ChildOutput output_of(std::string_view command, const ChildOutput& output, const Veil& veil) {
  if (command.starts_with('/')) {
    return {output.exit_code, verdict_of(output.out), verdict_of(output.err)};
  }
  return {output.exit_code, veil.text(without_remarks(output.out)), veil.text(output.err)};
}

CapturedFile file_of(const std::string& path,
                     const CapturedFile& file,
                     const Veil& veil,
                     const Scrambler& scrambler) {
  CapturedFile other = file;
  other.text = text_of(path, file.text, veil);
  // Where the text is as long as the file, it goes on being so.
  if (file.size == static_cast<std::int64_t>(file.text.size())) {
    other.size = static_cast<std::int64_t>(other.text.size());
  }
  if (!file.link.empty()) other.link = link_of(path, file.link, veil, scrambler);
  if (file.hex.empty()) return other;
  auto bytes = bytes_of(file.hex);
  bytes = path.ends_with("/config") ? without_serial(std::move(bytes))
                                    : veil.in_place(std::move(bytes));
  other.hex = to_hex(bytes);
  return other;
}

template <class T, class Key, class Value>
std::map<std::string, T> other_map(const std::map<std::string, T>& all, Key key, Value value) {
  std::map<std::string, T> other;
  for (const auto& [name, x] : all) other.emplace(key(name), value(name, x));
  return other;
}

}  // namespace

CapturedMachine anonymous(CapturedMachine captured, std::string_view word) {
  const Scrambler scrambler(word);
  const Veil veil(captured, scrambler);
  Rows rows(scrambler, veil);
  const auto text = [&](const std::string& original) { return veil.text(original); };
  const auto path = [&](const std::string& original) { return veil.path(original); };
  const auto name = [](const std::string& original) { return original; };

  captured.hostname = veil.text(captured.hostname);
  captured.environment = other_map(captured.environment, name,
                                   [&](const std::string& variable, const std::string& value) {
                                     return veil.setting(variable, value);
                                   });
  rows.hide(captured.links);
  captured.qos = other_map(
      captured.qos, [&](const std::string& link) { return hide_ids(link, scrambler); },
      [](const auto& /*key*/, const auto& x) { return x; });
  rows.hide(captured.routes);
  rows.hide(captured.rules);
  rows.hide(captured.neighbours);
  rows.hide(captured.sockets);
  for (auto& [question, answer] : captured.routes_to) rows.hide(answer);
  captured.routes_to =
      other_map(captured.routes_to, text, [](const auto& /*key*/, const auto& x) { return x; });
  if (captured.kernel_log.known()) captured.kernel_log = kernel_lines(*captured.kernel_log, veil);
  captured.children = other_map(captured.children, text,
                                [&](const std::string& command, const ChildOutput& output) {
                                  return output_of(command, output, veil);
                                });
  captured.files =
      other_map(captured.files, path, [&](const std::string& key, const CapturedFile& file) {
        return file_of(key, file, veil, scrambler);
      });
  captured.file_systems =
      other_map(captured.file_systems, path, [](const auto& /*key*/, const auto& x) { return x; });
  return captured;
}

}  // namespace distdoctor::capture
