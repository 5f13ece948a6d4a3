#include "rules/launch/shell_lexer.h"

#include <algorithm>
#include <utility>

namespace distdoctor::rules {
namespace {

constexpr std::string_view kEndsWord = " \t\r\n;&|()<>";
constexpr std::string_view kDigits = "0123456789";
constexpr std::size_t kMostTokens = 200'000;
constexpr int kDeepest = 16;                      // arrays in arrays
constexpr std::size_t kLongestOtherwise = 4'096;  // each level of ${A:-${B:-...}} is a call

bool name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool name_character(char c) {
  return name_start(c) || kDigits.contains(c);
}

void add_text(Word& word, std::string_view text, bool quoted) {
  if (!word.pieces.empty() && word.pieces.back().kind == Piece::Kind::text &&
      word.pieces.back().quoted == quoted) {
    word.pieces.back().text += text;
  } else {
    word.pieces.push_back({.text = std::string(text), .quoted = quoted});
  }
}

// "NAME=" or "NAME+=", and nothing behind.
bool begins_array(const Word& word) {
  const std::string_view text = word.plain();
  if (!text.ends_with('=') || !name_start(text.front())) return false;
  const std::string_view name = text.substr(0, text.find_first_of("+="));
  return std::ranges::all_of(name, name_character) && name.size() + 2 >= text.size();
}

// "NAME=value", whose name is written out.
bool assigns(const Word& word) {
  if (word.is_array || word.pieces.empty()) return false;
  const Piece& first = word.pieces.front();
  const auto equals = first.text.find('=');
  return first.kind == Piece::Kind::text && !first.quoted && equals != std::string::npos &&
         equals > 0 && name_start(first.text[0]) &&
         std::ranges::all_of(first.text.substr(0, equals), name_character);
}

}  // namespace

std::string_view Word::plain() const {
  if (is_array || pieces.size() != 1) return {};
  const Piece& only = pieces.front();
  return only.kind == Piece::Kind::text && !only.quoted ? std::string_view(only.text)
                                                        : std::string_view();
}

char ShellLexer::take() {
  const char c = text_[at_++];
  if (c == '\n') ++line_;
  return c;
}

void ShellLexer::jump(std::size_t to) {
  to = std::min(to, text_.size());
  line_ += static_cast<int>(std::ranges::count(text_.substr(at_, to - at_), '\n'));
  at_ = to;
}

std::vector<Token> ShellLexer::run() {
  while (more() && tokens_.size() < kMostTokens) {
    if (skip_blanks() || redirection() || operator_token()) continue;
    word_token();
  }
  tokens_.push_back({.op = "\n", .line = line_});
  return std::move(tokens_);
}

Word ShellLexer::quoted_word() {
  Word word;
  while (more()) {
    if (peek() == '$') {
      dollar(word, true);
    } else {
      const char c = take();
      add_text(word, {&c, 1}, true);
    }
  }
  return word;
}

// Blanks, continued lines, comments.
bool ShellLexer::skip_blanks() {
  const char c = peek();
  if (c == ' ' || c == '\t' || c == '\r') {
    ++at_;
    return true;
  }
  if (next_is("\\\n") || next_is("\\\r\n")) {
    jump(text_.find('\n', at_) + 1);
    return true;
  }
  if (c == '#') {
    jump(std::min(text_.find('\n', at_), text_.size()));
    return true;
  }
  return false;
}

void ShellLexer::newline() {
  tokens_.push_back({.op = "\n", .line = line_});
  take();
  skip_here_documents();
}

void ShellLexer::skip_here_documents() {
  for (const HereDocument& document : here_) {
    while (more()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      if (line.ends_with('\r')) line.remove_suffix(1);
      while (document.tabs && line.starts_with('\t')) line.remove_prefix(1);
      jump(end + 1);
      if (line == document.end) break;
    }
  }
  here_.clear();
}

// `> file`, `2>&1`, `<<EOF`, `<<< word`. Process substitution, `<(...)`, stays a part of a word.
bool ShellLexer::redirection() {
  std::size_t sign = at_;
  if (next_is("&>")) ++sign;
  sign = std::min(text_.find_first_not_of(kDigits, sign), text_.size());
  if (sign >= text_.size() || (text_[sign] != '<' && text_[sign] != '>')) return false;
  if (sign + 1 < text_.size() && text_[sign + 1] == '(') return false;
  const std::string_view rest = text_.substr(sign);
  const bool here = rest.starts_with("<<") && !rest.starts_with("<<<");
  const bool tabs = here && rest.starts_with("<<-");
  jump(std::min(text_.find_first_not_of(tabs ? "<>-" : "<>", sign), text_.size()));
  if (peek() == '&' || peek() == '|') ++at_;
  while (more() && (peek() == ' ' || peek() == '\t')) ++at_;
  if (!more() || kEndsWord.contains(peek())) return true;
  const std::size_t before = tokens_.size();
  word_token();
  if (tokens_.size() == before) return true;
  if (here) {
    std::string end;
    for (const Piece& piece : tokens_.back().word.pieces) end += piece.text;
    here_.push_back({std::move(end), tabs});
  }
  tokens_.pop_back();
  return true;
}

bool ShellLexer::operator_token() {
  if (peek() == '\n') {
    newline();
    return true;
  }
  for (const std::string_view op : {";;", "&&", "||", "|&", ";", "&", "|", "(", ")"}) {
    if (!next_is(op)) continue;
    if (op == "(" && peek(1) == '(') {  // ((...)): a command of its own that sets nothing we follow
      jump(matching('(', ')', 0) + 1);
      tokens_.push_back({.word = {.pieces = {{.text = "(("}}}, .line = line_});
      return true;
    }
    tokens_.push_back({.op = op == "|&" ? "|" : std::string(op), .line = line_});
    at_ += op.size();
    return true;
  }
  return false;
}

void ShellLexer::word_token() {
  Token token{.line = line_};
  while (more() && (!kEndsWord.contains(peek()) || next_is("<(") || next_is(">("))) {
    if (next_is("\\\n")) {
      jump(at_ + 2);
      continue;
    }
    piece(token.word);
    if (peek() == '(' && begins_array(token.word)) {
      array(token.word);
      break;
    }
  }
  // The shell drops no carriage return. That of a value is kept, since it breaks what it is used
  // for; any other breaks the script at once.
  if ((next_is("\r\n") || text_.substr(at_) == "\r") && assigns(token.word)) {
    const char c = take();
    add_text(token.word, {&c, 1}, true);
  }
  if (!token.word.pieces.empty()) tokens_.push_back(std::move(token));
}

void ShellLexer::array(Word& word) {
  const std::size_t end = matching('(', ')', 0);
  const std::string_view inside =
      text_.substr(at_ + 1, std::min(end, text_.size()) - std::min(at_ + 1, end));
  word.is_array = true;
  if (nesting_ < kDeepest) {
    for (Token& token : ShellLexer(inside, nesting_ + 1).run()) {
      if (token.is_word()) word.elements.push_back(std::move(token.word));
    }
  }
  jump(end + 1);
}

void ShellLexer::piece(Word& word) {
  const char c = peek();
  if (c == '\'') {
    single_quotes(word, false);
  } else if (c == '"') {
    double_quotes(word);
  } else if (c == '`') {
    substitution(word, false, 1, '`');
  } else if (c == '$') {
    dollar(word, false);
  } else if (c == '<' || c == '>') {
    substitution(word, false, 2, ')');
  } else if (c == '\\') {
    take();
    const char escaped = more() ? take() : '\\';
    add_text(word, {&escaped, 1}, true);
  } else {
    add_text(word, {&c, 1}, false);
    take();
  }
}

void ShellLexer::single_quotes(Word& word, bool ansi) {
  std::string text;
  take();
  while (more() && peek() != '\'') {
    if (ansi && peek() == '\\' && at_ + 1 < text_.size()) take();
    text += take();
  }
  if (more()) take();
  add_text(word, text, true);
}

void ShellLexer::double_quotes(Word& word) {
  add_text(word, "", true);
  take();
  while (more() && peek() != '"') {
    if (peek() == '$') {
      dollar(word, true);
    } else if (peek() == '`') {
      substitution(word, true, 1, '`');
    } else {
      // Before anything else a backslash stays what it is.
      if (next_is("\\\n")) {
        jump(at_ + 2);
        continue;
      }
      if (peek() == '\\' && std::string_view("$`\"\\").contains(peek(1)) && peek(1) != '\0') take();
      const char c = take();
      add_text(word, {&c, 1}, true);
    }
  }
  if (more()) take();
}

void ShellLexer::dollar(Word& word, bool quoted) {
  const char next = peek(1);
  if (next_is("$((")) {
    const std::size_t begin = at_ + 3;
    at_ += 1;
    const std::size_t end = matching('(', ')', 0);
    const std::size_t stop = std::max(begin, end - std::min<std::size_t>(end, 1));
    word.pieces.push_back({.kind = Piece::Kind::arithmetic,
                           .text = std::string(text_.substr(begin, stop - begin)),
                           .quoted = quoted});
    jump(end + 1);
  } else if (next == '(') {
    substitution(word, quoted, 2, ')');
  } else if (next == '{') {
    braces(word, quoted);
  } else if (next == '\'' && !quoted) {
    ++at_;
    single_quotes(word, true);
  } else if (name_start(next)) {
    const std::size_t begin = at_ + 1;
    at_ = begin;
    while (more() && name_character(peek())) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    parameter(word, name, quoted, text_.substr(begin - 1, at_ - begin + 1));
  } else if (next != '\0' && std::string_view("0123456789@*#?$!-").contains(next)) {
    parameter(word, text_.substr(at_ + 1, 1), quoted, text_.substr(at_, 2));
    at_ += 2;
  } else {
    add_text(word, "$", quoted);
    ++at_;
  }
}

void ShellLexer::braces(Word& word, bool quoted) {
  const std::size_t begin = at_;
  ++at_;
  const std::size_t end = matching('{', '}', 0);
  const std::string_view inside =
      text_.substr(begin + 2, std::min(end, text_.size()) - std::min(begin + 2, end));
  const std::string_view written = text_.substr(begin, end + 1 - begin);
  parameter(word, inside, quoted, written);
  jump(end + 1);
}

void ShellLexer::parameter(Word& word,
                           std::string_view inside,
                           bool quoted,
                           std::string_view written) {
  const bool special = inside.size() == 1 && std::string_view("@*#").contains(inside.front());
  const auto* const stop = std::ranges::find_if_not(inside, name_character);
  const auto length = special ? 1 : static_cast<std::size_t>(stop - inside.begin());
  Piece piece{.kind = Piece::Kind::variable,
              .text = std::string(inside.substr(0, length)),
              .quoted = quoted,
              .written = std::string(written)};
  const std::string_view rest = inside.substr(length);
  bool understood = length > 0 && rest.size() <= kLongestOtherwise;
  if (rest == "[@]" || rest == "[*]") {
    piece.text += "[@]";
  } else if (rest.starts_with(":-") || rest.starts_with(":=")) {
    piece.has_otherwise = true;
    piece.otherwise = rest.substr(2);
  } else if (rest.starts_with('-') || rest.starts_with('=')) {
    piece.has_otherwise = true;
    piece.otherwise = rest.substr(1);
  } else if (!rest.empty()) {
    understood = false;
  }
  if (!understood) {
    piece = {.kind = Piece::Kind::unresolved, .text = std::string(written), .quoted = quoted};
  }
  word.pieces.push_back(std::move(piece));
}

void ShellLexer::substitution(Word& word, bool quoted, std::size_t opening, char closing) {
  const std::size_t begin = at_;
  at_ += opening - 1;
  std::size_t end = 0;
  if (closing == '`') {
    end = std::min(text_.find('`', at_ + 1), text_.size());
  } else {
    end = matching('(', ')', 0);
  }
  word.pieces.push_back({.kind = Piece::Kind::unresolved,
                         .text = std::string(text_.substr(begin, end + 1 - begin)),
                         .quoted = quoted});
  at_ = begin;
  jump(end + 1);
}

std::size_t ShellLexer::matching(char open, char close, int depth) const {
  char quote = '\0';
  for (std::size_t i = at_; i < text_.size(); ++i) {
    const char c = text_[i];
    if (c == '\\' && quote != '\'') {
      ++i;
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == open) {
      ++depth;
    } else if (c == close && --depth == 0) {
      return i;
    }
  }
  return text_.size();
}

}  // namespace distdoctor::rules
