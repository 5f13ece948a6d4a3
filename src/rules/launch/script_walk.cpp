#include "rules/launch/script_walk.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace distdoctor::rules {
namespace {

constexpr int kMostCalls = 200;
constexpr std::array<std::string_view, 5> kDeclare = {"export", "declare", "typeset", "readonly",
                                                      "local"};

// NAME of "NAME=...", "NAME+=..."; "" for any other word.
std::string_view assigned_name(const Word& word) {
  if (word.pieces.empty()) return {};
  const Piece& first = word.pieces.front();
  if (first.kind != Piece::Kind::text || first.quoted) return {};
  const std::string_view text = first.text;
  const std::size_t end =
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  if (end == 0 || end == std::string_view::npos || (text[0] >= '0' && text[0] <= '9')) return {};
  const std::string_view rest = text.substr(end);
  return rest.starts_with('=') || rest.starts_with("+=") ? text.substr(0, end) : std::string_view();
}

// The word behind "NAME=".
Word value_word(const Word& word, std::string_view name) {
  Word value = word;
  std::string& first = value.pieces.front().text;
  first.erase(0, name.size() + (first[name.size()] == '+' ? 2 : 1));
  return value;
}

bool is_declaration(std::string_view name) {
  return std::ranges::find(kDeclare, name) != kDeclare.end();
}

}  // namespace

std::string ScriptWalk::where() const {
  return path_.empty() ? place_.where : path_ + ":" + std::to_string(line_);
}

void ScriptWalk::run(std::string_view text) {
  batch_lines(text);
  walk(parse_shell(text));
  if (!reader_.harvested() && !path_.empty() && place_.depth <= 3) reader_.harvest(scope_);
}

// #SBATCH lines count up to the first command (man sbatch), and on sbatch's own command line later.
void ScriptWalk::batch_lines(std::string_view text) {
  Allocation allocation;
  bool batch = false;
  for (const std::string_view line : split_lines(text)) {
    const auto options = after_prefix(line, "#SBATCH");
    if (!options) {
      if (!trim(line).empty() && !line.starts_with('#')) break;
      continue;
    }
    batch = true;
    std::vector<std::string> argv = {"sbatch"};
    for (const std::string_view word : split_words(*options)) argv.emplace_back(word);
    read_allocation(read_flags(argv, kSlurmFlags), allocation);
  }
  if (!batch || place_.under_srun) return;
  place_.in_batch = true;
  Allocation& said = place_.allocation;
  if (!said.nodes) said.nodes = allocation.nodes;
  if (!said.tasks) said.tasks = allocation.tasks;
  if (!said.tasks_per_node) said.tasks_per_node = allocation.tasks_per_node;
  slurm_variables();
}

// What Slurm sets for the script itself; it is Slurm's, so no setting of the job comes of it.
void ScriptWalk::slurm_variables() {
  const auto set = [&](const char* name, const std::optional<int>& count) {
    if (count) scope_.variables[name] = {.value = std::to_string(*count)};
  };
  set("SLURM_NNODES", place_.allocation.nodes);
  set("SLURM_JOB_NUM_NODES", place_.allocation.nodes);
  set("SLURM_NTASKS", place_.allocation.tasks);
  set("SLURM_NTASKS_PER_NODE", place_.allocation.tasks_per_node);
}

void ScriptWalk::walk(const std::vector<Statement>& statements) {
  for (std::size_t at = 0; at < statements.size() && !ended_; ++at) {
    const Statement& statement = statements[at];
    line_ = statement.line;
    if (statement.kind == Statement::Kind::open_function) {
      at = function(statements, at);
    } else if (statement.kind == Statement::Kind::command) {
      uncertain_ = uncertain(statement);
      simple(statement);
    } else {
      bounds(statement);
    }
  }
}

// Keeps the body for its calls, and goes on behind it.
std::size_t ScriptWalk::function(const std::vector<Statement>& statements, std::size_t at) {
  Body body{.path = path_};
  int open = 1;
  std::size_t next = at + 1;
  for (; next < statements.size(); ++next) {
    const auto kind = statements[next].kind;
    open += kind == Statement::Kind::open_function ? 1 : 0;
    open -= kind == Statement::Kind::close_function ? 1 : 0;
    if (open == 0) break;
    body.statements.push_back(statements[next]);
  }
  functions_[std::string(statements[at].words.front().plain())] = std::move(body);
  return next;
}

void ScriptWalk::bounds(const Statement& statement) {
  switch (statement.kind) {
    case Statement::Kind::open_branch:
      ++branches_;
      break;
    case Statement::Kind::close_branch:
      branches_ = std::max(0, branches_ - 1);
      break;
    case Statement::Kind::open_subshell:
      if (outer_.size() < 64) outer_.push_back(scope_);
      break;
    case Statement::Kind::close_subshell:
      if (outer_.empty()) break;
      scope_ = std::move(outer_.back());
      outer_.pop_back();
      break;
    default:
      break;
  }
}

void ScriptWalk::assign(const Word& word, Scope& scope, bool exported) const {
  const std::string name(assigned_name(word));
  const bool append = word.pieces.front().text[name.size()] == '+';
  const Word value = value_word(word, name);
  const auto old = scope.variables.find(name);
  const Variable before = old == scope.variables.end() ? Variable{} : old->second;
  Variable variable{.exported = exported || before.exported || scope.export_all, .where = where()};
  if (word.is_array) {
    variable.is_array = true;
    variable.items = scope.expand_all(word.elements);
    if (append)
      variable.items.insert(variable.items.begin(), before.items.begin(), before.items.end());
    variable.value = variable.items.empty() ? "" : variable.items.front();
  } else {
    variable.fallback = scope.is_fallback(value, name);
    variable.value = (append ? before.value : "") + scope.expand_value(value);
  }
  if (uncertain_ && variable.value != before.value) {
    const std::string written = as_written(variable.value);
    variable.value = kOuterMark + written + kEndMark;
    variable.items = {variable.value};
  }
  scope.variables[name] = std::move(variable);
}

// Leading NAME=value words; the index of the first other one.
std::size_t ScriptWalk::assignments(const Statement& statement, Scope& scope, bool exported) const {
  std::size_t at = 0;
  while (at < statement.words.size() && !assigned_name(statement.words[at]).empty()) {
    assign(statement.words[at++], scope, exported);
  }
  return at;
}

void ScriptWalk::simple(const Statement& statement) {
  std::size_t command = 0;
  while (command < statement.words.size() && !assigned_name(statement.words[command]).empty()) {
    ++command;
  }
  if (command == statement.words.size()) {
    assignments(statement, scope_, false);
    return;
  }
  const std::string_view name = statement.words[command].plain();
  if (builtin(name, statement, command)) return;
  const std::vector<Word> words(statement.words.begin() + static_cast<std::ptrdiff_t>(command),
                                statement.words.end());
  std::vector<std::string> argv = scope_.expand_all(words);
  if (argv.empty()) return;
  if (const auto body = functions_.find(name); body != functions_.end()) {
    call(body->second, {argv.begin() + 1, argv.end()});
    return;
  }
  if (loads_environment(argv)) return;
  if (uncertain_) {
    reader_.branch(argv.front(), where());
    return;
  }
  Scope environment = scope_;
  assignments(statement, environment, true);
  Place place = place_;
  place.where = where();
  environment.leave_only_exported();
  reader_.command(argv, std::move(place), std::move(environment));
  ended_ = argv.front() == "exec" && argv.size() > 1;
}

bool ScriptWalk::builtin(std::string_view name, const Statement& statement, std::size_t at) {
  if (is_declaration(name)) {
    declare(name, statement, at + 1);
    return true;
  }
  const auto argv = [&] {
    return scope_.expand_all(
        {statement.words.begin() + static_cast<std::ptrdiff_t>(at) + 1, statement.words.end()});
  };
  if (name == "source" || name == ".") {
    source(argv());
  } else if (name == "unset") {
    for (const std::string& variable : argv()) scope_.variables.erase(variable);
  } else if (name == "set") {
    for (const std::string& flag : argv()) {
      if (flag == "-a" || flag == "allexport") scope_.export_all = true;
      if (flag == "+a") scope_.export_all = false;
    }
  } else if (name == "shift") {
    auto& arguments = scope_.arguments;
    if (!arguments.empty()) arguments.erase(arguments.begin());
  } else if (name == "exit" || name == "return") {
    ended_ = ended_ || (!uncertain_ && outer_.empty());
  } else if (name == "eval") {
    if (!uncertain_) walk(parse_shell(join(argv(), " ")));
  } else if (name == "read" || name == "mapfile" || name == "readarray") {
    for (const std::string& variable : argv()) {
      scope_.variables[variable] = {.value = kOuterMark + ("$" + variable) + kEndMark};
    }
  } else {
    return false;
  }
  return true;
}

void ScriptWalk::declare(std::string_view name, const Statement& statement, std::size_t at) {
  bool exported = name == "export";
  bool removes = false;
  for (; at < statement.words.size(); ++at) {
    const Word& word = statement.words[at];
    const std::string_view plain = word.plain();
    if (plain.starts_with('-')) {
      exported = exported || plain.contains('x');
      removes = name == "export" && plain.contains('n');
    } else if (!assigned_name(word).empty()) {
      assign(word, scope_, exported);
    } else if (exported && !plain.empty()) {
      const auto found = scope_.variables.find(plain);
      if (found != scope_.variables.end()) found->second.exported = !removes;
    }
  }
}

void ScriptWalk::export_variable(const std::string& name, std::string value) {
  if (uncertain_) value = kOuterMark + as_written(value) + kEndMark;
  scope_.variables[name] = {.value = std::move(value), .exported = true, .where = where()};
}

// What stands behind it in the shell's own words, as `export NAME=written` would.
void ScriptWalk::put_before(const std::string& name, const std::string& folder) {
  export_variable(name, folder + ":" + scope_.expand_value(parse_quoted("$" + name)));
}

// `source DIR/bin/activate` and `conda activate DIR`; the name of an environment is conda's to
// find.
bool ScriptWalk::activate(const std::vector<std::string>& argv) {
  const auto prefix = before_suffix(argv.front(), "/bin/activate");
  if (!prefix) return argv.front() == "activate" || argv.front().ends_with("/activate");
  export_variable("VIRTUAL_ENV", std::string(*prefix));
  put_before("PATH", std::string(*prefix) + "/bin");
  return true;
}

// Environment modules, Spack and conda change more than can be seen here.
bool ScriptWalk::loads_environment(const std::vector<std::string>& argv) {
  const std::string written = as_written(join(argv, " "));
  const std::string unknown = kOuterMark + ("$(" + written + ")") + kEndMark;
  const std::string verb = argv.size() > 1 ? argv[1] : std::string();
  if (argv.front() == "conda" || argv.front() == "mamba" || argv.front() == "micromamba") {
    if (verb != "activate") return false;
    const bool folder = argv.size() > 2 && argv[2].contains('/');
    export_variable("CONDA_PREFIX", folder ? argv[2] : unknown);
    put_before("PATH", folder ? argv[2] + "/bin" : unknown);
    return true;
  }
  const bool module = argv.front() == "module" || argv.front() == "spack";
  const bool loads = verb == "load" || verb == "add" || verb == "use" || verb == "restore" ||
                     verb == "swap" || verb == "switch";
  if (!(module && loads) && argv.front() != "ml") return false;
  for (const char* name : {"LD_LIBRARY_PATH", "PATH"}) put_before(name, unknown);
  return true;
}

// In the same shell: what it sets stays set.
void ScriptWalk::source(const std::vector<std::string>& argv) {
  if (argv.empty() || calls_ >= kMostCalls) return;
  const auto path = resolved(argv.front());
  if (activate(argv) || !path) return;
  auto text = reader_.file(*path);
  if (!text) return;
  ++calls_;
  const std::string before = std::exchange(path_, *path);
  const int line = line_;
  branches_ += uncertain_ ? 1 : 0;
  const bool branch = uncertain_;
  const int open = branches_;
  walk(parse_shell(*text));
  branches_ = open - (branch ? 1 : 0);
  path_ = before;
  line_ = line;
  ended_ = false;
}

void ScriptWalk::call(const Body& body, std::vector<std::string> arguments) {
  if (++calls_ >= kMostCalls || ++place_.depth > 12) return;
  const auto before = std::exchange(scope_.arguments, std::move(arguments));
  const std::string path = std::exchange(path_, body.path);
  const int open = branches_;
  const std::vector<Statement> statements = body.statements;  // a body may define itself anew
  branches_ += uncertain_ ? 1 : 0;
  walk(statements);
  branches_ = open;
  path_ = path;
  scope_.arguments = before;
  ended_ = false;  // `return` ends the function alone; `exit` in one is taken for that too
  --place_.depth;
}

}  // namespace distdoctor::rules
