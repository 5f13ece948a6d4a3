// The names that a captured machine tells of hosts, domains and people, and what stands for each.
#pragma once

#include "capture/scramble.h"
#include "machine/captured.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace distdoctor::capture {

class StandIns {
 public:
  // Its own, those of /etc/hosts, /etc/resolv.conf and /etc/passwd, of node lists and proxies, what
  // was looked up, whose homes and which ssh targets and file servers occur, all of these domains.
  StandIns(const machine::CapturedMachine& captured, const Scrambler& scrambler);

  // Whole words, where letters and digits make words, in whatever case.
  [[nodiscard]] std::string replaced(std::string_view text) const;
  // The same for bytes whose places count: each stand-in is as long as what it stands for.
  [[nodiscard]] std::string replaced_in_place(std::string bytes) const;

 private:
  struct Found {
    std::size_t length = 0;  // of the name; 0: none
    std::string_view stand_in = {};
  };
  [[nodiscard]] Found found_in(std::string_view run) const;
  void add(char prefix, std::string_view name);
  void add_host(std::string_view name);
  void add_domain(std::string_view name);
  void add_server(std::string_view device);
  void add_exceptions(std::string_view list);
  void add_variable(std::string_view name, std::string_view value);
  void add_variables(const std::map<std::string, std::string>& environment);
  void add_said(std::string_view text);
  void add_homes(std::string_view text);
  void add_below_domains(std::string_view text);
  void add_passwd(std::string_view text);
  void add_names_file(std::string_view path, std::string_view text);

  const Scrambler& scrambler_;
  std::map<std::string, std::string, std::less<>> all_;  // by the name in lower case
  std::map<std::string, std::string, std::less<>> domains_;
  std::set<std::string, std::less<>> links_;  // which keep their names
  std::size_t most_words_ = 1;                // of one name
};

// "node[01-04]" written out, or as it is where that is no list of nodes.
std::string written_out(std::string_view list);
bool is_node_list(std::string_view variable);

}  // namespace distdoctor::capture
