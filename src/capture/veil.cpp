#include "capture/veil.h"

#include "base/secrets.h"
#include "base/text.h"
#include "capture/characters.h"
#include "capture/common_words.h"
#include "capture/numbers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace distdoctor::capture {
namespace {

// Of every Linux: what lies there is a distribution's or a vendor's.
constexpr std::array<std::string_view, 14> kSystem = {"proc", "sys",   "dev",   "usr",  "lib",
                                                      "bin",  "lib64", "lib32", "sbin", "etc",
                                                      "run",  "var",   "opt",   "boot"};

bool in_a_path(char c) {
  return c > ' ' && c != 0x7f &&
         std::string_view("\"'`=,;:()[]{}<>|&\\$*?!#").find(c) == std::string_view::npos;
}

bool is_packages(std::string_view segment) {
  return segment == "site-packages" || segment == "dist-packages";
}

// "libnccl.so.2.28.9": the name of a library is a program's.
bool is_library(std::string_view segment) {
  return segment.starts_with("lib") && segment.find(".so") != std::string_view::npos;
}

// Programs that a site wrote itself.
bool is_sites(std::string_view path) {
  return path.starts_with("/etc/distdoctor/");
}

bool is_kernels(std::string_view path) {
  return path.starts_with("/proc/") || path.starts_with("/sys/");
}

}  // namespace

Veil::Veil(const machine::CapturedMachine& captured, const Scrambler& scrambler)
    : scrambler_(scrambler), names_(captured, scrambler) {
  if (captured.links.known()) {
    for (const Link& link : *captured.links) {
      devices_.insert(link.name);
      devices_.insert(link.altnames.begin(), link.altnames.end());
    }
  }
  constexpr std::string_view kDevices = "/sys/class/infiniband/";
  for (const auto& [path, file] : captured.files) {
    const auto rest = after_prefix(path, kDevices);
    if (rest) devices_.emplace(rest->substr(0, rest->find('/')));
  }
}

std::string Veil::numbers(std::string_view original) const {
  return hide_addresses(hide_ids(original, scrambler_), scrambler_);
}

std::string Veil::socket_table(std::string_view original) const {
  return hide_socket_table(original, scrambler_);
}

std::string Veil::plain(std::string_view original) const {
  return names_.replaced(numbers(original));
}

std::string Veil::text(std::string_view original) const {
  std::string out;
  std::size_t from = 0;  // of what is no path
  for (std::size_t at = 0; at < original.size(); ++at) {
    const bool begins = original[at] == '/' && (at == 0 || !in_a_path(original[at - 1]));
    if (!begins) continue;
    std::size_t end = at;
    while (end < original.size() && in_a_path(original[end])) ++end;
    out += plain(original.substr(from, at - from));
    out += path(original.substr(at, end - at));
    from = end;
    at = end - 1;
  }
  return out + plain(original.substr(from));
}

// --- paths ---

bool Veil::is_private(std::string_view path) const {
  if (!path.starts_with('/')) return false;
  const auto parts = split(path.substr(1), '/');
  if (is_sites(path) || std::ranges::any_of(parts, is_packages)) return true;
  return path.size() > 1 && std::ranges::find(kSystem, parts.front()) == kSystem.end();
}

std::string Veil::segment(std::string_view original) const {
  return is_library(original) ? plain(original) : words(plain(original));
}

std::string Veil::path(std::string_view original) const {
  if (is_kernels(original)) return hide_ids(original, scrambler_);
  if (!is_private(original)) {
    std::vector<std::string> parts;
    for (const auto part : split(original, '/')) parts.push_back(plain(part));
    return join(parts, "/");
  }
  std::vector<std::string> parts;
  const auto first = split(original.substr(1), '/').front();
  bool hidden = is_sites(original) || std::ranges::find(kSystem, first) == kSystem.end();
  for (const auto part : split(original, '/')) {
    parts.push_back(hidden ? segment(part) : plain(part));
    hidden = hidden || is_packages(part);
  }
  return join(parts, "/");
}

// --- words ---

bool Veil::stays(std::string_view word) const {
  const bool number = word.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
                      word.find_first_of("0123456789") != std::string_view::npos;
  return number || is_common(word) || Scrambler::is_name(word);
}

std::string Veil::words(std::string_view original) const {
  if (devices_.contains(original)) return std::string(original);
  std::string out;
  std::size_t at = 0;
  while (at < original.size()) {
    std::size_t end = at;
    while (end < original.size() && in_a_word(original[end])) ++end;
    const auto word = original.substr(at, end - at);
    if (!word.empty()) out += stays(word) ? std::string(word) : scrambler_.name('w', word);
    if (end < original.size()) out += original[end];
    at = end + 1;
  }
  return out;
}

// Names that a site chose, of which nothing hangs but that they are equal.
std::string Veil::setting(std::string_view name, std::string_view value) const {
  constexpr std::array<std::string_view, 6> kChosen = {"TORCHELASTIC_RUN_ID", "PET_RDZV_ID",
                                                       "ROLE_NAME",           "SLURM_CLUSTER_NAME",
                                                       "SLURM_JOB_PARTITION", "NCCL_HOSTID"};
  if (is_node_list(name)) return text(written_out(value));
  const bool chosen = std::ranges::find(kChosen, name) != kChosen.end();
  return chosen ? words(plain(value)) : text(value);
}

// Of `sh -c "..."` each word is one.
std::string Veil::argument(std::string_view original) const {
  std::string out;
  std::size_t at = 0;
  while (at < original.size()) {
    const auto end = std::min(original.find_first_of(" \t\n", at), original.size());
    out += argument_word(original.substr(at, end - at));
    if (end < original.size()) out += original[end];
    at = end + 1;
  }
  return out;
}

std::string Veil::value_word(std::string_view original) const {
  if (original.starts_with('/')) return is_private(original) ? path(original) : text(original);
  const bool list = original.find('[') != std::string_view::npos;
  return words(plain(list ? written_out(original) : std::string(original)));
}

std::string Veil::argument_word(std::string_view original) const {
  const auto equals = original.find('=');
  const auto name = original.substr(0, equals);
  const bool flag = original.starts_with('-');
  if (equals != std::string_view::npos && (flag || may_leave_a_process(name))) {
    const auto value = original.substr(equals + 1);
    return std::string(name) + "=" + (flag ? value_word(value) : setting(name, value));
  }
  if (flag && original.find('/') == std::string_view::npos) return plain(original);
  if (flag) {  // "-I/home/maria/include"
    const auto slash = original.find('/');
    return std::string(original.substr(0, slash)) + value_word(original.substr(slash));
  }
  return value_word(original);
}

}  // namespace distdoctor::capture
