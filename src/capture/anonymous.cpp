#include "capture/anonymous.h"

#include "base/hostlist.h"
#include "base/text.h"
#include "capture/scramble.h"
#include "machine/machine.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace distdoctor::capture {
namespace {

using machine::CapturedMachine;

constexpr int kFirstUser = 1000;  // login.defs(5): below are the system's own
constexpr int kNobody = 65534;

// --- names ---

struct Stand {
  std::string original;
  std::string other;
};

class Names {
 public:
  explicit Names(const Scrambler& scrambler) : scrambler_(scrambler) {}

  // "node0.cluster.example" is a host's name and a domain's.
  void add_host(std::string_view name) {
    const auto dot = name.find('.');
    add("h", name.substr(0, dot));
    if (dot != std::string_view::npos) add_domain(name.substr(dot + 1));
  }
  void add_domain(std::string_view name) {
    if (name.find('.') != std::string_view::npos) add("d", name);
  }
  void add_user(std::string_view name) { add("u", name); }

  // Longer ones first, so that none is found inside another.
  [[nodiscard]] std::vector<Stand> all() const {
    std::vector<Stand> stands;
    for (const auto& [original, other] : stands_) stands.push_back({original, other});
    std::ranges::stable_sort(stands, [](const Stand& a, const Stand& b) {
      return a.original.size() > b.original.size();
    });
    return stands;
  }

 private:
  void add(std::string_view prefix, std::string_view name) {
    const bool everybodys = name == "localhost" || name == "localdomain" || name == "root" ||
                            name.starts_with("ip6-") || name.size() < 2;
    const bool letters = std::ranges::any_of(
        name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
    if (everybodys || !letters || Address::parse(name)) return;
    stands_.emplace(name, scrambler_.name(prefix, name));
  }

  const Scrambler& scrambler_;
  std::map<std::string, std::string> stands_;
};

std::string text_of(const CapturedMachine& captured, const std::string& path) {
  const auto found = captured.files.find(path);
  return found == captured.files.end() ? "" : found->second.text;
}

void add_hosts_file(const CapturedMachine& captured, Names& names) {
  for (const auto line : split_lines(text_of(captured, "/etc/hosts"))) {
    const auto words = split_words(line.substr(0, line.find('#')));
    for (std::size_t i = 1; i < words.size(); ++i) names.add_host(words[i]);
  }
}

void add_resolver(const CapturedMachine& captured, Names& names) {
  for (const auto line : split_lines(text_of(captured, "/etc/resolv.conf"))) {
    const auto words = split_words(line);
    if (words.empty() || (words[0] != "search" && words[0] != "domain")) continue;
    for (std::size_t i = 1; i < words.size(); ++i) names.add_domain(words[i]);
  }
}

void add_users(const CapturedMachine& captured, Names& names) {
  for (const auto line : split_lines(text_of(captured, "/etc/passwd"))) {
    const auto fields = split(line, ':');
    const auto uid = fields.size() > 2 ? parse_int<int>(fields[2]) : std::nullopt;
    if (uid && *uid >= kFirstUser && *uid != kNobody) names.add_user(fields[0]);
  }
}

// Of `getent -s dns ahosts NAME`.
void add_looked_up(const CapturedMachine& captured, Names& names) {
  for (const auto& [command, output] : captured.children) {
    const auto words = split_words(command);
    if (words.size() > 1 && words[0].ends_with("getent")) names.add_host(words.back());
  }
}

bool is_node_list(std::string_view variable) {
  return variable.ends_with("NODELIST");
}

void add_variables(const machine::Environment& environment, Names& names) {
  constexpr std::array<std::string_view, 5> kHosts = {
      "MASTER_ADDR", "HOSTNAME", "SLURMD_NODENAME", "SLURM_SRUN_COMM_HOST", "SLURM_TOPOLOGY_ADDR"};
  for (const auto& [variable, value] : environment) {
    if (std::ranges::find(kHosts, variable) != kHosts.end()) names.add_host(value);
    if (!is_node_list(variable)) continue;
    for (const auto& host : parse_hostlist(value).value_or(std::vector<std::string>{})) {
      names.add_host(host);
    }
  }
}

bool is_environ(std::string_view path) {
  return path.starts_with("/proc/") && path.ends_with("/environ");
}

std::vector<Stand> stands_of(const CapturedMachine& captured, const Scrambler& scrambler) {
  Names names(scrambler);
  names.add_host(captured.hostname);
  add_hosts_file(captured, names);
  add_resolver(captured, names);
  add_users(captured, names);
  add_looked_up(captured, names);
  add_variables(captured.environment, names);
  for (const auto& [path, file] : captured.files) {
    if (is_environ(path)) add_variables(machine::parse_environment(file.text), names);
  }
  return names.all();
}

// --- texts ---

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// A whole word, where letters and digits make words.
std::string replace_word(const std::string& text, const Stand& stand) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = text.find(stand.original); at != std::string::npos;
       at = text.find(stand.original, at + 1)) {
    const std::size_t end = at + stand.original.size();
    const bool inside = at < from || (at > 0 && letter_or_digit(text[at - 1])) ||
                        (end < text.size() && letter_or_digit(text[end]));
    if (inside) continue;
    out += text.substr(from, at - from) + stand.other;
    from = end;
  }
  return out + text.substr(from);
}

bool in_a_token(char c) {
  return letter_or_digit(c) || c == ':' || c == '.' || c == '-' || c == '_' || c == '%';
}

// Groups of hexadecimal digits: {2, 2, ...} with ':', {8, 4, 4, 4, 12} with '-'.
bool in_groups(std::string_view text, char separator, const std::vector<std::size_t>& sizes) {
  const auto groups = split(text, separator);
  if (groups.size() != sizes.size()) return false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool hex =
        groups[i].find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    if (groups[i].size() != sizes[i] || !hex) return false;
  }
  return true;
}

bool is_number_of_a_thing(std::string_view token) {
  static const std::vector<std::size_t> uuid = {8, 4, 4, 4, 12};
  return in_groups(token, ':', std::vector<std::size_t>(6, 2)) ||
         in_groups(token, ':', std::vector<std::size_t>(20, 2)) ||
         in_groups(token, ':', std::vector<std::size_t>(4, 4)) || in_groups(token, '-', uuid);
}

// Each group with its zeros, as the kernel writes GIDs.
std::string long_form(const Address& address) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < address.bytes.size(); ++i) {
    if (i > 0 && i % 2 == 0) text += ':';
    text += kDigits[address.bytes.at(i) >> 4U];
    text += kDigits[address.bytes.at(i) & 0xfU];
  }
  return text;
}

class Veil {
 public:
  Veil(const CapturedMachine& captured, const Scrambler& scrambler)
      : scrambler_(scrambler), stands_(stands_of(captured, scrambler)) {}

  // As a visitor of `fields`.
  template <class T>
  void operator()(std::string_view /*name*/, T& member) {
    hide(member);
  }

  void hide(std::string& text) {
    std::string out;
    std::size_t at = 0;
    while (at < text.size()) {
      std::size_t end = at;
      while (end < text.size() && in_a_token(text[end])) ++end;
      if (end > at) out += token(std::string_view(text).substr(at, end - at));
      if (end < text.size()) out += text[end];
      at = end + 1;
    }
    for (const auto& stand : stands_) out = replace_word(out, stand);
    text = std::move(out);
  }
  void hide(Address& address) { address = scrambler_.address(address); }
  void hide(Route& route) {
    fields(*this, route);
    clear_behind(route.prefix, route.destination);
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
    if (!x.known()) return;
    T value = *x;
    hide(value);
    x = std::move(value);
  }
  template <class T>
  void hide(std::map<std::string, T>& all) {
    std::map<std::string, T> other;
    for (auto& [name, value] : all) {
      std::string key = name;
      hide(key);
      hide(value);
      other.emplace(std::move(key), std::move(value));
    }
    all = std::move(other);
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

  [[nodiscard]] std::optional<std::string> address_text(std::string_view token) const {
    const auto address = Address::parse(token);
    if (!address) return std::nullopt;
    const auto other = scrambler_.address(*address);
    return address->v6 && token.size() == 39 ? long_form(other) : other.text();
  }

  [[nodiscard]] std::string token(std::string_view text) const {
    // The end of a sentence is none of an address.
    const auto last = text.find_last_not_of(".:-");
    const auto core = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
    const auto rest = std::string(text.substr(core.size()));
    if (text.ends_with("::")) {
      if (const auto whole = address_text(text)) return *whole;
    }
    if (is_number_of_a_thing(core)) return scrambler_.digits(core) + rest;
    if (const auto whole = address_text(core)) return *whole + rest;
    // "10.0.0.1:29500", "10.0.0.1-10.0.0.9", "GPU-<UUID>", "mac=02:..."
    for (const char separator : {':', '-'}) {
      const auto at = core.find(separator);
      if (at == std::string_view::npos) continue;
      const auto left = core.substr(0, at);
      const auto right = core.substr(at + 1);
      const bool uuid = separator == '-' && is_number_of_a_thing(right);
      if (uuid) return std::string(left) + separator + scrambler_.digits(right) + rest;
      const auto first = address_text(left);
      if (first)
        return *first + separator + address_text(right).value_or(std::string(right)) + rest;
    }
    return std::string(text);
  }

  const Scrambler& scrambler_;
  std::vector<Stand> stands_;
};

// People's real names stand in the fifth field of passwd(5).
void drop_real_names(CapturedMachine& captured) {
  const auto passwd = captured.files.find("/etc/passwd");
  if (passwd == captured.files.end()) return;
  std::string kept;
  for (const auto line : split_lines(passwd->second.text)) {
    auto parts = split(line, ':');
    if (parts.size() == 7) parts[4] = "";
    kept += join(parts, ":") + "\n";
  }
  passwd->second.text = std::move(kept);
}

// "node[01-04]" written out, or the stand-ins would not be found in it.
void write_out_lists(machine::Environment& environment) {
  for (auto& [variable, value] : environment) {
    if (!is_node_list(variable)) continue;
    const auto hosts = parse_hostlist(value);
    if (hosts) value = join(*hosts, ",");
  }
}

void write_out_lists(CapturedMachine& captured) {
  write_out_lists(captured.environment);
  for (auto& [path, file] : captured.files) {
    if (!is_environ(path)) continue;
    auto environment = machine::parse_environment(file.text);
    write_out_lists(environment);
    file.text.clear();
    for (const auto& [name, value] : environment) file.text += name + "=" + value + '\0';
  }
}

}  // namespace

CapturedMachine anonymous(CapturedMachine captured, std::string_view word) {
  const Scrambler scrambler(word);
  Veil veil(captured, scrambler);
  drop_real_names(captured);
  write_out_lists(captured);
  veil.hide(captured);
  return captured;
}

}  // namespace distdoctor::capture
