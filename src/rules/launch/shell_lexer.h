// Cuts the text of a shell script into words and operators.
#pragma once

#include "rules/launch/shell_text.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

struct Token {
  std::string op = {};  // "\n", ";", "&&", "||", "|", "&", "(", ")", ";;"; empty: a word
  Word word = {};
  int line = 0;
  [[nodiscard]] bool is_word() const { return op.empty(); }
};

class ShellLexer {
 public:
  explicit ShellLexer(std::string_view text, int nesting = 0) : text_(text), nesting_(nesting) {}

  // Comments, redirections and here-documents are left out. Ends early at a text that is broken.
  std::vector<Token> run();
  // All of the text as the inside of double quotes.
  Word quoted_word();

 private:
  [[nodiscard]] bool more() const { return at_ < text_.size(); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool next_is(std::string_view what) const {
    return text_.substr(at_).starts_with(what);
  }
  char take();
  bool skip_blanks();
  void newline();
  void skip_here_documents();
  bool redirection();
  bool operator_token();
  void word_token();
  void array(Word& word);

  void piece(Word& word);
  void double_quotes(Word& word);
  void single_quotes(Word& word, bool ansi);
  void dollar(Word& word, bool quoted);
  void braces(Word& word, bool quoted);
  void parameter(Word& word, std::string_view inside, bool quoted, std::string_view written);
  void substitution(Word& word, bool quoted, std::size_t opening, char closing);
  // From `at_`, the place of the bracket that closes `depth` open ones, quotes respected.
  [[nodiscard]] std::size_t matching(char open, char close, int depth) const;
  void jump(std::size_t to);

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int nesting_;
  std::vector<Token> tokens_;
  struct HereDocument {
    std::string end;
    bool tabs;
  };
  std::vector<HereDocument> here_;
};

}  // namespace distdoctor::rules
