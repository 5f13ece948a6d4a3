#include "rules/launch/shell_text.h"

#include "base/text.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {
namespace {

std::string text_of(const Word& word) {
  std::string text;
  for (const Piece& piece : word.pieces) {
    switch (piece.kind) {
      case Piece::Kind::text:
        text += piece.text;
        break;
      case Piece::Kind::variable:
        text += "{" + piece.text + (piece.has_otherwise ? "|" + piece.otherwise : "") + "}";
        break;
      case Piece::Kind::arithmetic:
        text += "((" + piece.text + "))";
        break;
      case Piece::Kind::unresolved:
        text += "<" + piece.text + ">";
        break;
    }
  }
  if (!word.is_array) return text;
  std::vector<std::string> elements;
  for (const Word& element : word.elements) elements.push_back(text_of(element));
  return text + "[" + join(elements, ",") + "]";
}

std::string line_of(const Statement& statement) {
  using Kind = Statement::Kind;
  std::vector<std::string> parts;
  switch (statement.kind) {
    case Kind::command:
      parts.emplace_back(statement.maybe ? "maybe" : "run");
      break;
    case Kind::open_branch:
      parts.emplace_back("branch");
      break;
    case Kind::close_branch:
      parts.emplace_back("end");
      break;
    case Kind::open_subshell:
      parts.emplace_back("(");
      break;
    case Kind::close_subshell:
      parts.emplace_back(")");
      break;
    case Kind::open_function:
      parts.emplace_back("function");
      break;
    case Kind::close_function:
      parts.emplace_back("end function");
      break;
  }
  for (const Word& word : statement.words) parts.push_back(text_of(word));
  return join(parts, " ");
}

struct Row {
  std::string_view name;
  std::string_view text;
  std::string_view expected;  // statements, one after "; "
};

const std::vector<Row> kRows = {
    {"words", "a  b\tc\n", "run a b c"},
    {"no line end", "a", "run a"},
    {"nothing", "", ""},
    {"quotes", "a 'b $c' \"d $e\" \\$f g\\ h", "run a b $c d {e} $f g h"},
    {"escapes in double quotes", R"(a "\$b \" \x \\")", R"(run a $b " \x \)"},
    {"ANSI quotes", R"(a $'b\'c' $"d")", "run a b'c $d"},
    {"parameters", "$a ${b} ${c:-d e} ${f-$g} ${h:=i} ${j%k} ${#l} $1 $? $ a$",
     "run {a} {b} {c|d e} {f|$g} {h|i} <${j%k}> <${#l}> {1} <$?> $ a$"},
    {"lists", "\"$@\" ${a[@]} ${b[0]}", "run {@} {a[@]} <${b[0]}>"},
    {"substitutions", "$(a \"b)\" $(c)) `d e` $((1+(2))) <(f g)",
     "run <$(a \"b)\" $(c))> <`d e`> ((1+(2))) <<(f g)>"},
    {"arrays", "A=(b \"c d\"\n e) B+=(f)", "run A=[b,c d,e] B+=[f]"},
    {"operators", "a; b & c | d\ne && f || g; h",
     "run a; run b; run c; run d; run e; run f; maybe g; run h"},
    {"a test decides", "[ a ] && b\n[[ c && d ]] && e\ntest f && g && h\n! grep i j && k",
     "run [ a ]; maybe b; run [[; maybe e; run test f; maybe g; maybe h; run grep i j; maybe k"},
    {"operators at line ends", "a ||\n\n b\nc", "run a; maybe b; run c"},
    {"if", "if a; then b; elif c; then d; else e; fi; f",
     "branch; run a; run b; run c; run d; run e; end; run f"},
    {"loops", "for i in 1 2; do a; done\nfor ((i=0; i<2; i++)); do b; done\nwhile c; do d; done",
     "branch; run a; end; branch; run b; end; branch; run c; run d; end"},
    {"case", "case $x in\n a) b;;\n c|d) e;;\n *) f\nesac\ng",
     "branch; run b; run c; run e; run f; end; run g"},
    {"subshell", "(a; b) && c", "(; run a; run b; ); run c"},
    {"groups", "{ a; }; b || { c; d; }; e", "run a; run b; branch; maybe c; run d; end; run e"},
    {"functions", "f() { a; }\nfunction g {\n b\n}\nfunction h() { { c; }; }",
     "function f; run a; end function; function g; run b; end function; function h; run c; end "
     "function"},
    {"a word like a keyword", "echo if then fi done", "run echo if then fi done"},
    {"comments", "a # b\n# c\nd#e", "run a; run d#e"},
    {"redirections", "a > b 2>&1 <c >>d &>e 3<f g 2>/dev/null", "run a g"},
    {"digits are words", "a 1 22 b2", "run a 1 22 b2"},
    {"here-document", "a <<E b\n c\nE\nd <<-'F F'\n\t$(x\n\tF F\ne <<<\"g\" h",
     "run a b; run d; run e h"},
    {"here-document without end", "a <<E\nb\nc", "run a"},
    {"continued", "a \\\n b c\\\nd", "run a b cd"},
    {"arithmetic command", "((a++))\nb", "run ((; run b"},
    {"broken", "a ) } ;; fi done esac 'b", "run a; end; end; end; run b"},
    {"unclosed", "a \"b $(c", "run a b <$(c>"},
};

TEST_CASE("the shape of shell text") {
  for (const Row& row : kRows) {
    CAPTURE(std::string(row.name));
    std::vector<std::string> lines;
    for (const Statement& statement : parse_shell(row.text)) lines.push_back(line_of(statement));
    CHECK(join(lines, "; ") == row.expected);
  }
}

TEST_CASE("statements know their lines") {
  const auto statements = parse_shell("a \\\n b\n\n# c\nd 'e\nf'\ng");
  REQUIRE(statements.size() == 3);
  CHECK(statements[0].line == 1);
  CHECK(statements[1].line == 5);
  CHECK(statements[2].line == 7);
}

}  // namespace
}  // namespace distdoctor::rules
