// Follows a shell script from its first line to its last: what it sets, and what it starts.
#pragma once

#include "rules/launch/command_reader.h"
#include "rules/launch/shell_scope.h"
#include "rules/launch/shell_text.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

// What stands in a branch may run or not: a variable that is set there is unresolved from then on,
// and a launch there is noted and not read.
class ScriptWalk {
 public:
  ScriptWalk(CommandReader& reader, std::string path, Place place, Scope scope)
      : reader_(reader),
        path_(std::move(path)),
        place_(std::move(place)),
        scope_(std::move(scope)) {}

  void run(std::string_view text);

 private:
  struct Body {
    std::vector<Statement> statements = {};
    std::string path = {};
  };

  void walk(const std::vector<Statement>& statements);
  std::size_t function(const std::vector<Statement>& statements, std::size_t at);
  void bounds(const Statement& statement);
  void simple(const Statement& statement);
  std::size_t assignments(const Statement& statement, Scope& scope, bool exported) const;
  void assign(const Word& word, Scope& scope, bool exported) const;
  bool builtin(std::string_view name, const Statement& statement, std::size_t at);
  void declare(std::string_view name, const Statement& statement, std::size_t at);
  void source(const std::vector<std::string>& argv);
  void export_variable(const std::string& name, std::string value);
  void put_before(const std::string& name, const std::string& folder);
  bool activate(const std::vector<std::string>& argv);
  bool loads_environment(const std::vector<std::string>& argv);
  void call(const Body& body, std::vector<std::string> arguments);
  void batch_lines(std::string_view text);
  void slurm_variables();
  [[nodiscard]] bool uncertain(const Statement& statement) const {
    return branches_ > 0 || statement.maybe;
  }
  [[nodiscard]] std::string where() const;

  CommandReader& reader_;
  std::string path_;
  Place place_;
  Scope scope_;
  std::vector<Scope> outer_;  // of open subshells
  std::map<std::string, Body, std::less<>> functions_;
  int branches_ = 0;
  int calls_ = 0;
  int line_ = 0;
  bool uncertain_ = false;  // the statement at hand
  bool ended_ = false;      // exit, exec or return was met
};

}  // namespace distdoctor::rules
