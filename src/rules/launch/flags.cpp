#include "rules/launch/flags.h"

#include "base/text.h"

#include <algorithm>
#include <ranges>

namespace distdoctor::rules {
namespace {

std::string normalised(std::string_view flag) {
  flag.remove_prefix(std::min(flag.find_first_not_of('-'), flag.size()));
  std::string name(flag);
  std::ranges::replace(name, '-', '_');
  return name;
}

bool listed(std::string_view list, std::string_view name) {
  const auto names = split_words(list);
  return std::ranges::find(names, name) != names.end();
}

bool has_prefix(std::string_view list, std::string_view name) {
  const auto prefixes = split_words(list);
  return std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

class FlagReader {
 public:
  FlagReader(std::span<const std::string> argv, const FlagTable& table)
      : argv_(argv), table_(table) {}

  Flags run() {
    at_ = 1;
    while (at_ < argv_.size()) {
      const std::string& word = argv_[at_];
      if (word == "--") {
        ++at_;
        break;
      }
      if (word.size() < 2 || word.front() != '-') break;
      ++at_;
      flag(word);
    }
    flags_.rest = std::min(at_, argv_.size());
    return std::move(flags_);
  }

 private:
  std::string next() { return at_ < argv_.size() ? argv_[at_++] : std::string(); }

  void flag(std::string_view word) {
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos && (word[1] == '-' || equals > 2)) {
      flags_.given.emplace_back(normalised(word.substr(0, equals)), word.substr(equals + 1));
      return;
    }
    if (word.size() > 2 && word[1] != '-' && table_.glued.contains(word[1])) {
      flags_.given.emplace_back(word.substr(1, 1), word.substr(2));
      return;
    }
    std::string name = normalised(word);
    std::string value;
    if (listed(table_.two, name)) {
      value = next();
      // Hydra takes `-genv NAME=VALUE` too.
      if (!value.contains('=')) value += "=" + next();
    } else if (listed(table_.one, name) || has_prefix(table_.prefixes, name)) {
      value = next();
    }
    flags_.given.emplace_back(std::move(name), std::move(value));
  }

  std::span<const std::string> argv_;
  const FlagTable& table_;
  std::size_t at_ = 0;
  Flags flags_;
};

}  // namespace

const std::string* Flags::find(std::string_view name, std::string_view alias) const {
  for (const auto& [given_name, value] : std::views::reverse(given)) {
    if (given_name == name || (!alias.empty() && given_name == alias)) return &value;
  }
  return nullptr;
}

Flags read_flags(std::span<const std::string> argv, const FlagTable& table) {
  return FlagReader(argv, table).run();
}

}  // namespace distdoctor::rules
