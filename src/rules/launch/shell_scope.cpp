#include "rules/launch/shell_scope.h"

#include "base/text.h"
#include "rules/launch/settings.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace distdoctor::rules {
namespace {

constexpr std::size_t kLongest = 65'536;  // of one expanded text
constexpr std::size_t kMostFields = 4'096;
constexpr std::string_view kBlanks = " \t\n";

bool is_mark(char c) {
  return c == kTaskMark || c == kOuterMark || c == kEndMark;
}

std::size_t position(std::string_view digits) {
  return parse_int_within<std::size_t>(digits, 0, 99).value_or(0);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<std::string> resolved(std::string_view text) {
  if (std::ranges::any_of(text, is_mark)) return std::nullopt;
  return std::string(text);
}

std::string as_written(std::string_view text) {
  std::string written(text);
  std::erase_if(written, is_mark);
  return written;
}

std::vector<std::string> outer_sources(std::string_view text) {
  std::vector<std::string> sources;
  while (true) {
    const std::size_t begin = text.find(kOuterMark);
    if (begin == std::string_view::npos) return sources;
    const std::size_t end = std::min(text.find(kEndMark, begin), text.size());
    sources.push_back(as_written(text.substr(begin, end - begin)));
    text.remove_prefix(end);
  }
}

std::string without_marks(std::string_view text) {
  std::string clean(text);
  std::ranges::replace_if(clean, is_mark, '?');
  return clean;
}

// Text that grows into the current field, or begins the next one.
struct Scope::Fields {
  std::vector<std::string> done = {};
  std::string current = {};
  bool begun = false;

  void add(std::string_view text) {
    current += text.substr(0, kLongest - std::min(current.size(), kLongest));
    begun = true;
  }
  void close() {
    if (begun && done.size() < kMostFields) done.push_back(current);
    current.clear();
    begun = false;
  }
  // Splits at blanks, but not inside what is unresolved.
  void add_split(std::string_view text) {
    bool inside = false;
    for (const char c : text) {
      if (is_mark(c)) inside = c != kEndMark;
      if (!inside && kBlanks.contains(c)) {
        close();
      } else {
        add({&c, 1});
      }
    }
  }
};

std::string Scope::unresolved(std::string_view written) const {
  return (per_task ? kTaskMark : kOuterMark) + without_marks(written) + kEndMark;
}

std::string Scope::number(const Piece& piece) const {
  const auto value = [&](std::string_view name) -> std::optional<long long> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return parse_int<long long>(found->second.value);
  };
  const auto result = evaluate_arithmetic(piece.text, value);
  return result ? std::to_string(*result) : unresolved("$((" + piece.text + "))");
}

std::string Scope::variable_text(const Piece& piece) const {
  const std::string& name = piece.text;
  if (is_number(name) && name != "0") {
    const std::size_t index = position(name);
    if (index >= 1 && index <= arguments.size()) return arguments[index - 1];
    return piece.has_otherwise ? expand_value(parse_quoted(piece.otherwise)) : "";
  }
  const auto found = variables.find(name);
  const bool empty = found != variables.end() && found->second.value.empty();
  if (found != variables.end() && !(empty && piece.has_otherwise)) return found->second.value;
  // A rank differs from node to node, so that a default for it is nobody's for certain.
  if (piece.has_otherwise && !per_rank(name)) return expand_value(parse_quoted(piece.otherwise));
  return unresolved(piece.written);
}

std::string Scope::text_of(const Piece& piece) const {
  switch (piece.kind) {
    case Piece::Kind::text:
      return piece.text;
    case Piece::Kind::arithmetic:
      return number(piece);
    case Piece::Kind::unresolved:
      return unresolved(piece.text);
    case Piece::Kind::variable:
      break;
  }
  return variable_text(piece);
}

// "$@", ${NAME[@]}: one field for each.
std::optional<std::vector<std::string>> Scope::list_of(const Piece& piece) const {
  if (piece.kind != Piece::Kind::variable) return std::nullopt;
  if (piece.text == "@" || piece.text == "*") return arguments;
  const auto name = before_suffix(piece.text, "[@]");
  if (!name) return std::nullopt;
  const auto found = variables.find(*name);
  if (found == variables.end()) return std::vector<std::string>{unresolved(piece.written)};
  if (!found->second.is_array) return std::vector<std::string>{found->second.value};
  return found->second.items;
}

void Scope::add_piece(const Piece& piece, Fields& fields) const {
  if (const auto list = list_of(piece)) {
    bool first = true;
    for (const std::string& item : *list) {
      if (!first) fields.close();
      piece.quoted ? fields.add(item) : fields.add_split(item);
      first = false;
    }
  } else if (piece.quoted || piece.kind == Piece::Kind::text) {
    fields.add(text_of(piece));
  } else {
    fields.add_split(text_of(piece));
  }
}

std::vector<std::string> Scope::expand(const Word& word) const {
  Fields fields;
  for (const Piece& piece : word.pieces) add_piece(piece, fields);
  fields.close();
  return std::move(fields.done);
}

std::string Scope::expand_value(const Word& word) const {
  Fields fields;
  for (const Piece& piece : word.pieces) {
    const auto list = list_of(piece);
    fields.add(list ? join(*list, " ") : text_of(piece));
  }
  return std::move(fields.current);
}

std::vector<std::string> Scope::expand_all(const std::vector<Word>& words) const {
  std::vector<std::string> all;
  for (const Word& word : words) {
    for (std::string& field : expand(word)) {
      if (all.size() < kMostFields) all.push_back(std::move(field));
    }
  }
  return all;
}

void Scope::leave_only_exported() {
  std::erase_if(variables, [](const auto& entry) { return !entry.second.exported; });
  arguments.clear();
  export_all = false;
}

bool Scope::is_fallback(const Word& word, std::string_view name) const {
  const auto from_outside = [&](const Piece& piece) {
    return piece.kind == Piece::Kind::variable && piece.text == name && piece.has_otherwise;
  };
  return !variables.contains(name) && std::ranges::any_of(word.pieces, from_outside);
}

}  // namespace distdoctor::rules
