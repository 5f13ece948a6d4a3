#include "rules/launch/shell_text.h"

#include "rules/launch/shell_lexer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace distdoctor::rules {
namespace {

using Kind = Statement::Kind;

constexpr std::array<std::string_view, 6> kOpenBranch = {"if",    "case", "while",
                                                         "until", "for",  "select"};
constexpr std::array<std::string_view, 3> kCloseBranch = {"fi", "esac", "done"};
// Words that only part what they stand between; what follows them is a command again.
constexpr std::array<std::string_view, 6> kParting = {"then", "else", "elif", "do", "time", "!"};
constexpr std::array<std::string_view, 9> kTests = {"[",       "[[",    "test",  "((",  "grep",
                                                    "command", "which", "false", "type"};

bool is_one_of(std::string_view word, const auto& words) {
  return std::ranges::find(words, word) != words.end();
}

class ShellParser {
 public:
  explicit ShellParser(std::string_view text) : tokens_(ShellLexer(text).run()) {}

  std::vector<Statement> run() {
    while (at_ < tokens_.size() && statements_.size() < kMostStatements) step();
    return std::move(statements_);
  }

 private:
  void step() {
    const Token& token = tokens_[at_];
    if (!token.is_word()) {
      ++at_;
      separator(token);
      return;
    }
    if (reserved(token)) return;
    command();
  }

  void mark(Kind kind, int line) { statements_.push_back({.kind = kind, .line = line}); }

  void separator(const Token& token) {
    if (token.op == "(") {
      ++subshells_;
      mark(Kind::open_subshell, token.line);
    } else if (token.op == ")" && subshells_ > 0) {
      --subshells_;
      mark(Kind::close_subshell, token.line);
    } else if (token.op == ")" && !statements_.empty() && cases_ > 0) {
      statements_.pop_back();  // a pattern of `case`, not a command
    } else {
      decide(token.op);
    }
  }

  // Whether what comes next runs for certain.
  void decide(std::string_view op) {
    const bool goes_on = op == "\n" && continues_;
    continues_ = goes_on || op == "&&" || op == "||" || op == "|";
    if (op == "||") {
      maybe_ = true;
    } else if (op == "&&") {
      maybe_ = maybe_ || test_;
    } else if (!continues_ && op != ")") {
      maybe_ = false;
    }
  }

  // What has a meaning of its own where a command may begin.
  bool reserved(const Token& token) {
    const std::string_view word = token.word.plain();
    if (word.empty()) return false;
    if (is_one_of(word, kOpenBranch)) {
      cases_ += word == "case" ? 1 : 0;
      mark(Kind::open_branch, token.line);
      ++at_;
      if (word == "for" || word == "select" || word == "case") skip_header(word == "case");
      return true;
    }
    if (is_one_of(word, kCloseBranch)) {
      cases_ -= word == "esac" && cases_ > 0 ? 1 : 0;
      mark(Kind::close_branch, token.line);
      ++at_;
      return true;
    }
    if (word == "[[") {
      skip_test();
      return true;
    }
    if (is_one_of(word, kParting)) {
      ++at_;
      return true;
    }
    return brace(token, word) || function(token, word);
  }

  // A group that runs for certain leaves no mark.
  bool brace(const Token& token, std::string_view word) {
    if (word == "{") {
      braces_.push_back(maybe_ ? Kind::close_branch : Kind::command);
      if (maybe_) mark(Kind::open_branch, token.line);
    } else if (word == "}") {
      const Kind close = braces_.empty() ? Kind::command : braces_.back();
      if (!braces_.empty()) braces_.pop_back();
      if (close != Kind::command) mark(close, token.line);
    } else {
      return false;
    }
    ++at_;
    return true;
  }

  // `for NAME in ...` up to the `do`, `case WORD in`.
  void skip_header(bool is_case) {
    while (at_ < tokens_.size()) {
      const Token& token = tokens_[at_];
      if (is_case ? token.word.plain() == "in" : !token.is_word()) break;
      ++at_;
    }
    if (is_case && at_ < tokens_.size()) ++at_;
  }

  void skip_test() {
    statements_.push_back({.line = tokens_[at_].line, .words = {tokens_[at_].word}});
    while (at_ < tokens_.size() && tokens_[at_].op != "\n" && tokens_[at_].word.plain() != "]]") {
      ++at_;
    }
    if (at_ < tokens_.size() && tokens_[at_].is_word()) ++at_;
    continues_ = false;
    test_ = true;
  }

  // `name() {` and `function name {`.
  bool function(const Token& token, std::string_view word) {
    std::size_t name = at_;
    std::size_t next = at_ + 1;
    if (word == "function") {
      name = next++;
      if (name >= tokens_.size() || !tokens_[name].is_word()) return false;
    }
    const bool brackets =
        next + 1 < tokens_.size() && tokens_[next].op == "(" && tokens_[next + 1].op == ")";
    if (brackets) next += 2;
    if (!brackets && word != "function") return false;
    while (next < tokens_.size() && tokens_[next].op == "\n") ++next;
    if (next >= tokens_.size() || tokens_[next].word.plain() != "{") return false;
    statements_.push_back(
        {.kind = Kind::open_function, .line = token.line, .words = {tokens_[name].word}});
    braces_.push_back(Kind::close_function);
    at_ = next + 1;
    return true;
  }

  void command() {
    Statement statement{.line = tokens_[at_].line, .maybe = maybe_};
    while (at_ < tokens_.size() && tokens_[at_].is_word()) {
      statement.words.push_back(std::move(tokens_[at_++].word));
    }
    continues_ = false;
    test_ = is_one_of(statement.words.front().plain(), kTests);
    statements_.push_back(std::move(statement));
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::vector<Statement> statements_;
  int subshells_ = 0;
  int cases_ = 0;
  std::vector<Kind> braces_;  // what each open brace will close
  bool continues_ = false;    // the line ended in an operator that wants more
  bool maybe_ = false;
  bool test_ = false;
};

}  // namespace

std::vector<Statement> parse_shell(std::string_view text) {
  return ShellParser(text).run();
}

Word parse_quoted(std::string_view text) {
  return ShellLexer(text).quoted_word();
}

}  // namespace distdoctor::rules
