// The shape of a shell script: its simple commands and what encloses them. Nothing is expanded here
// and nothing is ever run. POSIX.1-2017 "Shell Command Language", and what bash adds to it: arrays,
// [[ ]], (( )), $'...'.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

struct Piece {
  enum class Kind : std::uint8_t {
    text,        // as it is
    variable,    // $NAME, ${NAME}, ${NAME:-otherwise}, $1, $@
    arithmetic,  // $((...)): `text` is what stands inside
    unresolved,  // $(...), `...` and what else only a shell can work out, as written
  };
  Kind kind = Kind::text;
  std::string text = {};  // of a variable: its name
  bool quoted = false;    // in double or single quotes: not split into words
  bool has_otherwise = false;
  std::string otherwise = {};  // of ${NAME:-...} and ${NAME:=...}, not yet expanded
  std::string written = {};    // of a variable: all of it
};

struct Word {
  std::vector<Piece> pieces = {};
  bool is_array = false;            // NAME=(...): the pieces are only "NAME="
  std::vector<Word> elements = {};  // of that array
  // The text, when no part of it was quoted or needs a shell; else "".
  [[nodiscard]] std::string_view plain() const;
};

struct Statement {
  enum class Kind : std::uint8_t {
    command,
    open_branch,  // if, case, while, until, for: what is inside may run, or not
    close_branch,
    open_subshell,  // ( ... ): assignments inside end with it
    close_subshell,
    open_function,  // name() {: `words` holds its name
    close_function,
  };
  Kind kind = Kind::command;
  int line = 0;  // from 1
  std::vector<Word> words = {};
  bool maybe = false;  // after ||, or after && where a test decides
};

// At most kMostStatements; a script longer than that, or deeper nested than kDeepest, is cut there.
constexpr std::size_t kMostStatements = 20'000;
std::vector<Statement> parse_shell(std::string_view text);

// One word's worth of text, as it stands between the quotes of "..." (for ${NAME:-...}).
Word parse_quoted(std::string_view text);

}  // namespace distdoctor::rules
