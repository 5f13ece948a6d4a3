#include "capture/stand_ins.h"

#include "base/hostlist.h"
#include "base/text.h"
#include "capture/characters.h"
#include "capture/common_words.h"
#include "machine/machine.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace distdoctor::capture {
namespace {

constexpr int kFirstUser = 1000;  // login.defs(5): below are the system's own
constexpr int kNobody = 65534;

bool in_a_name(char c) {
  return in_a_word(c) || c == '-' || c == '_' || c == '.';
}
bool in_a_host(char c) {
  return in_a_word(c) || c == '-' || c == '.';
}

template <class In>
std::string_view run_at(std::string_view text, std::size_t at, In in) {
  std::size_t end = at;
  while (end < text.size() && in(text[end])) ++end;
  return text.substr(at, end - at);
}
template <class In>
std::string_view run_before(std::string_view text, std::size_t at, In in) {
  std::size_t begin = at;
  while (begin > 0 && in(text[begin - 1])) --begin;
  return text.substr(begin, at - begin);
}

std::size_t words_in(std::string_view name) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (in_a_word(name[i]) && (i == 0 || !in_a_word(name[i - 1]))) ++count;
  }
  return count;
}

// But for the first one of each line, and comments.
template <class Take>
void each_word(std::string_view text, Take take) {
  for (const auto line : split_lines(text)) {
    const auto words = split_words(line.substr(0, line.find('#')));
    for (std::size_t i = 1; i < words.size(); ++i) take(words[i]);
  }
}

bool is_file_of(std::string_view path, std::string_view name) {
  return path.starts_with("/proc/") && path.ends_with(name);
}

}  // namespace

bool is_node_list(std::string_view variable) {
  return variable.ends_with("NODELIST");
}

std::string written_out(std::string_view list) {
  const auto hosts = parse_hostlist(list);
  return hosts ? join(*hosts, ",") : std::string(list);
}

StandIns::StandIns(const machine::CapturedMachine& captured, const Scrambler& scrambler)
    : scrambler_(scrambler) {
  if (captured.links.known()) {
    for (const Link& link : *captured.links) links_.insert(link.name);
  }
  add_host(captured.hostname);
  add_variables(captured.environment);
  for (const auto& [command, output] : captured.children) {
    const auto words = split_words(command);  // getent ahosts NAME
    if (words.size() > 1 && words[0].ends_with("getent")) add_host(words.back());
    if (words.size() > 1 && words[0].ends_with("getent")) add_below_domains(output.out);
  }
  for (const auto& [path, file] : captured.files) {
    add_names_file(path, file.text);
    for (const std::string& text : {path, file.text, file.link}) add_homes(text);
  }
  for (const auto& [path, file] : captured.files) add_below_domains(file.text);
  if (captured.kernel_log.known()) add_below_domains(*captured.kernel_log);
}

void StandIns::add_names_file(std::string_view path, std::string_view text) {
  if (path == "/etc/passwd") return add_passwd(text);
  if (is_file_of(path, "/environ")) return add_variables(machine::parse_environment(text));
  if (is_file_of(path, "/cmdline")) return add_said(text);
  if (path == "/etc/hosts") return each_word(text, [this](auto word) { add_host(word); });
  if (is_file_of(path, "/mountinfo"))
    return each_word(text, [this](auto word) { add_server(word); });
  if (path == "/etc/resolv.conf") {  // nameservers are addresses, options have no dot
    each_word(text, [this](auto word) { add_domain(word); });
  }
}

// "fs01:/export", as a file server's folders are mounted.
void StandIns::add_server(std::string_view device) {
  const auto colon = device.find(":/");
  if (colon != std::string_view::npos) add_host(run_before(device, colon, in_a_host));
}

void StandIns::add(char prefix, std::string_view name) {
  while (!name.empty() && !in_a_word(name.back())) name.remove_suffix(1);
  while (!name.empty() && !in_a_word(name.front())) name.remove_prefix(1);
  const bool letters =
      std::ranges::any_of(name, [](char c) { return in_a_word(c) && (c < '0' || c > '9'); });
  if (name.size() < 2 || !letters || is_common(name) || Address::parse(name)) return;
  if (name.starts_with("ip6-") || Scrambler::is_name(name) || links_.contains(name)) return;
  const auto lower = to_lower(name);
  all_.emplace(lower, scrambler_.name(prefix, lower));
  most_words_ = std::max(most_words_, words_in(lower));
}

// "node0.cluster.example" is a host's name and a domain's.
void StandIns::add_host(std::string_view name) {
  if (const auto at = name.find('@'); at != std::string_view::npos) name.remove_prefix(at + 1);
  if (Address::parse(name)) return;
  const auto dot = name.find('.');
  add('h', name.substr(0, dot));
  if (dot != std::string_view::npos) add_domain(name.substr(dot + 1));
}

void StandIns::add_domain(std::string_view name) {
  while (name.ends_with('.')) name.remove_suffix(1);
  if (name.find('.') == std::string_view::npos) return;
  add('d', name);
  const auto lower = to_lower(name);
  if (const auto found = all_.find(lower); found != all_.end()) domains_.insert(*found);
}

// People's names stand in the fifth field, too, which nobody needs (anonymous.cpp).
void StandIns::add_passwd(std::string_view text) {
  for (const auto line : split_lines(text)) {
    const auto fields = split(line, ':');
    const auto uid = fields.size() > 2 ? parse_int<int>(fields[2]) : std::nullopt;
    if (uid && *uid >= kFirstUser && *uid != kNobody) add('u', fields[0]);
  }
}

// no_proxy=localhost,.cluster.example,node7
void StandIns::add_exceptions(std::string_view list) {
  for (auto name : split(list, ',')) {
    name = trim(name);
    name.remove_prefix(std::min(name.find_first_not_of(".*"), name.size()));
    name.find('.') == std::string_view::npos ? add_host(name) : add_domain(name);
  }
}

void StandIns::add_variable(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 8> kHosts = {
      "MASTER_ADDR",       "HOSTNAME",        "SLURMD_NODENAME", "SLURM_SRUN_COMM_HOST",
      "PET_RDZV_ENDPOINT", "PET_MASTER_ADDR", "NCCL_COMM_ID",    "NCCL_HOSTID"};
  if (std::ranges::find(kHosts, name) != kHosts.end()) add_host(value.substr(0, value.find(':')));
  if (name == "SLURM_TOPOLOGY_ADDR") {  // switches above the node: "s0.s1.node3"
    for (const auto part : split(value, '.')) add('h', part);
  }
  if (is_node_list(name)) {
    for (const auto host : split(written_out(value), ',')) add_host(host);
  }
  if (to_lower(name) == "no_proxy") add_exceptions(value);
  if (value.find("://") != std::string_view::npos) add_said(value);
}

void StandIns::add_variables(const machine::Environment& environment) {
  for (const auto& [name, value] : environment) add_variable(name, value);
}

// "maria@node7" of an ssh, "http://proxy.example:3128", "--nodelist=node[1-4]".
void StandIns::add_said(std::string_view text) {
  for (std::size_t at = text.find('@'); at != std::string_view::npos; at = text.find('@', at + 1)) {
    add('u', run_before(text, at, in_a_name));
    add_host(run_at(text, at + 1, in_a_host));
  }
  for (std::size_t at = text.find("://"); at != std::string_view::npos;
       at = text.find("://", at + 3)) {
    add_host(run_at(text, at + 3, in_a_host));
  }
  for (auto argument : split(text, '\0')) {
    const auto equals = argument.starts_with('-') ? argument.find('=') : std::string_view::npos;
    if (equals != std::string_view::npos) argument.remove_prefix(equals + 1);
    if (argument.find('[') == std::string_view::npos) continue;
    if (const auto hosts = parse_hostlist(argument)) {
      for (const auto& host : *hosts) add_host(host);
    }
  }
}

// Of people that only a directory service knows.
void StandIns::add_homes(std::string_view text) {
  constexpr std::string_view kHome = "/home/";
  for (std::size_t at = text.find(kHome); at != std::string_view::npos;
       at = text.find(kHome, at + 1)) {
    add('u', run_at(text, at + kHome.size(), in_a_name));
  }
}

// "fs01.cluster.example", where the domain is known.
void StandIns::add_below_domains(std::string_view text) {
  std::vector<std::string> hosts;
  for (const auto& [domain, stand_in] : domains_) {
    const auto end = "." + domain;
    for (std::size_t at = text.find(end); at != std::string_view::npos;
         at = text.find(end, at + 1)) {
      hosts.emplace_back(run_before(text, at, in_a_host));
    }
  }
  for (const auto& host : hosts) {
    for (const auto part : split(host, '.')) add('h', part);
  }
}

// The longest name that `run` begins with and that ends where a word does.
StandIns::Found StandIns::found_in(std::string_view run) const {
  Found longest;
  std::size_t words = 0;
  for (std::size_t end = 1; end <= run.size() && words < most_words_; ++end) {
    const bool inside = end < run.size() && in_a_word(run[end]);
    if (inside || !in_a_word(run[end - 1])) continue;
    ++words;
    const auto found = all_.find(to_lower(run.substr(0, end)));
    if (found != all_.end()) longest = {end, found->second};
  }
  return longest;
}

std::string StandIns::replaced(std::string_view text) const {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const bool begins = in_a_word(text[at]) && (at == 0 || !in_a_word(text[at - 1]));
    const auto found = begins ? found_in(run_at(text, at, in_a_name)) : Found{};
    out += found.length > 0 ? found.stand_in : text.substr(at, 1);
    at += std::max<std::size_t>(found.length, 1);
  }
  return out;
}

std::string StandIns::replaced_in_place(std::string bytes) const {
  const auto lower = to_lower(bytes);
  for (const auto& [name, stand_in] : all_) {
    for (std::size_t at = lower.find(name); at != std::string::npos;
         at = lower.find(name, at + name.size())) {
      const std::size_t end = at + name.size();
      const bool inside =
          (at > 0 && in_a_word(bytes[at - 1])) || (end < bytes.size() && in_a_word(bytes[end]));
      if (inside) continue;
      for (std::size_t i = 0; i < name.size(); ++i) bytes[at + i] = stand_in[i % stand_in.size()];
    }
  }
  return bytes;
}

}  // namespace distdoctor::capture
