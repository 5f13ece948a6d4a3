// Texts, paths and command lines without what names a site or its people.
#pragma once

#include "capture/scramble.h"
#include "capture/stand_ins.h"
#include "machine/captured.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace distdoctor::capture {

class Veil {
 public:
  Veil(const machine::CapturedMachine& captured, const Scrambler& scrambler);

  // Addresses, ids, known names, and the paths in it.
  [[nodiscard]] std::string text(std::string_view original) const;
  // Numbers of the kernel alone: it holds no name, though a word of it may be somebody's.
  [[nodiscard]] std::string numbers(std::string_view original) const;
  // In folders of people and of the site each part has a stand-in, unless its words are common.
  [[nodiscard]] std::string path(std::string_view original) const;
  [[nodiscard]] bool is_private(std::string_view path) const;
  // All words that are not common, of links, or stand-ins already.
  [[nodiscard]] std::string words(std::string_view original) const;
  // One word of a command line: flags stay, and settings that may leave a process.
  [[nodiscard]] std::string argument(std::string_view original) const;
  [[nodiscard]] std::string setting(std::string_view name, std::string_view value) const;
  [[nodiscard]] std::string socket_table(std::string_view original) const;
  [[nodiscard]] std::string in_place(std::string bytes) const {
    return names_.replaced_in_place(std::move(bytes));
  }

 private:
  [[nodiscard]] std::string plain(std::string_view original) const;
  [[nodiscard]] std::string argument_word(std::string_view original) const;
  [[nodiscard]] std::string value_word(std::string_view original) const;
  [[nodiscard]] std::string segment(std::string_view original) const;
  [[nodiscard]] bool stays(std::string_view word) const;

  const Scrambler& scrambler_;
  StandIns names_;
  std::set<std::string, std::less<>> devices_;  // links, and RDMA devices
};

}  // namespace distdoctor::capture
