#include "base/hostlist.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <unordered_set>

namespace distdoctor {
namespace {

constexpr std::string_view kSeparators = ", \t\r\n";
constexpr std::size_t kLongestName = 255;   // RFC 1035, 2.3.4
constexpr std::size_t kLongestNumber = 18;  // fits 64 bits
constexpr std::size_t kMostBrackets = 8;    // each one copies every name begun so far
constexpr std::string_view kTooLong = "a node's name has at most 255 characters";
constexpr std::string_view kAttempt = "read the node list";

bool host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == ':' || c == '-';
}

bool padded(std::string_view number) {
  return number.size() > 1 && number.starts_with('0');
}

struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::size_t width = 0;
};

// Reads one list and keeps its place in it, so that every refusal can name a column.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> read() {
    skip_separators();
    while (at_ < text_.size()) {
      DD_TRY(name());
      skip_separators();
    }
    if (hosts_.empty()) return refuse(0, "it names no node");
    return std::move(hosts_);
  }

 private:
  [[nodiscard]] std::unexpected<Error> refuse(std::size_t at, std::string_view reason) const {
    return failure(kAttempt, reason, fmt::format("column {}", at + 1));
  }

  void skip_separators() {
    at_ = std::min(text_.find_first_not_of(kSeparators, at_), text_.size());
  }

  // One word, brackets and all: every bracket multiplies the names begun so far.
  Result<void> name() {
    const std::size_t begin = at_;
    std::vector<std::string> names = {""};
    std::size_t brackets_seen = 0;
    while (at_ < text_.size() && !kSeparators.contains(text_[at_])) {
      if (text_[at_] != '[') {
        append_literal(names);
      } else {
        if (++brackets_seen > kMostBrackets) return refuse(at_, "too many brackets in one name");
        DD_TRY(const std::vector<Range> ranges, brackets());
        DD_TRY(names, multiplied(names, ranges, begin));
      }
      // Here and not only at the end: many numbers times a long name would fill the memory.
      if (names.front().size() > kLongestName) return refuse(begin, kTooLong);
    }
    return keep(std::move(names), begin);
  }

  // What stands between brackets. More than a name can hold is not copied into every one.
  void append_literal(std::vector<std::string>& names) {
    const std::size_t end = std::min(text_.find_first_of(", \t\r\n[", at_), text_.size());
    const std::string_view literal = text_.substr(at_, std::min(end - at_, kLongestName + 1));
    for (std::string& one : names) one += literal;
    at_ = end;
  }

  Result<std::vector<Range>> brackets() {
    const std::size_t open = at_;
    const std::size_t close = text_.find(']', open);
    if (close == std::string_view::npos) return refuse(open, "'[' is never closed");
    std::vector<Range> ranges;
    at_ = open + 1;
    for (const std::string_view part : split(text_.substr(at_, close - at_), ',')) {
      DD_TRY(const Range one, range(part));
      ranges.push_back(one);
      at_ += part.size() + 1;
    }
    at_ = close + 1;
    return ranges;
  }

  [[nodiscard]] Result<Range> range(std::string_view part) const {
    const std::vector<std::string_view> ends = split(part, '-', 2);
    const std::string_view first = ends.front();
    const std::string_view last = ends.back();
    const auto low = parse_int<std::uint64_t>(first);
    const auto high = parse_int<std::uint64_t>(last);
    if (!low || !high || std::max(first.size(), last.size()) > kLongestNumber) {
      return refuse(at_, fmt::format("'{}' is no number or range of numbers", shortened(part, 40)));
    }
    if (*low > *high) return refuse(at_, fmt::format("the range {} runs backwards", part));
    if ((padded(first) || padded(last)) && first.size() != last.size()) {
      return refuse(at_, fmt::format("the ends of {} are padded to different widths", part));
    }
    return Range{*low, *high, first.size()};
  }

  [[nodiscard]] Result<std::vector<std::string>> multiplied(const std::vector<std::string>& names,
                                                            const std::vector<Range>& ranges,
                                                            std::size_t begin) const {
    std::vector<std::string> all;
    for (const std::string& name : names) {
      for (const Range& range : ranges) {
        if (range.last - range.first >= kMostHosts - std::min(all.size(), kMostHosts)) {
          return refuse_many(begin);
        }
        for (std::uint64_t number = range.first; number <= range.last; ++number) {
          all.push_back(fmt::format("{}{:0{}}", name, number, range.width));
        }
      }
    }
    return all;
  }

  [[nodiscard]] std::unexpected<Error> refuse_many(std::size_t at) const {
    return refuse(at, fmt::format("it names more than {} nodes", kMostHosts));
  }

  Result<void> keep(std::vector<std::string> names, std::size_t begin) {
    if (names.size() > kMostHosts - hosts_.size()) return refuse_many(begin);
    for (std::string& name : names) {
      const std::string_view bad = bad_peer_name(name);
      const std::string shown = printable(shortened(name, 60));
      if (!bad.empty()) return refuse(begin, fmt::format("'{}': {}", shown, bad));
      if (!seen_.insert(name).second) return refuse(begin, fmt::format("'{}' twice", shown));
      hosts_.push_back(std::move(name));
    }
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> hosts_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

std::string_view bad_host_name(std::string_view name) {
  if (name.empty()) return "a node needs a name";
  if (name.starts_with('-')) return "a node's name cannot begin with '-'";
  if (name.size() > kLongestName) return kTooLong;
  if (!std::ranges::all_of(name, host_character)) {
    return "a node's name is made of letters, digits and . _ : -";
  }
  return {};
}

std::string_view bad_peer_name(std::string_view name) {
  const auto at = name.find('@');
  if (at == std::string_view::npos) return bad_host_name(name);
  if (name.size() > kLongestName) return kTooLong;
  const auto user = bad_host_name(name.substr(0, at));
  return user.empty() ? bad_host_name(name.substr(at + 1)) : user;
}

std::string_view host_of_peer(std::string_view name) {
  const auto at = name.find('@');
  return at == std::string_view::npos ? name : name.substr(at + 1);
}

Result<std::vector<std::string>> parse_hostlist(std::string_view text) {
  return Reader(text).read();
}

}  // namespace distdoctor
