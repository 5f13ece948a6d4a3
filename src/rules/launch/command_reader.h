// Reads one command line or script and what it starts in turn, and keeps the bounds of it all.
#pragma once

#include "rules/launch/command_line.h"
#include "rules/launch/launchers.h"
#include "rules/launch/shell_scope.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::rules {

// Where a command stands: in which line of what, below which launcher.
struct Place {
  std::string where = {};
  int depth = 0;
  bool in_batch = false;
  bool under_srun = false;
  Allocation allocation = {};
};

using Words = std::vector<std::string>;

class CommandReader {
 public:
  explicit CommandReader(const ScriptReader& read) : read_(read) {}

  // `environment`: what the command inherits and may change for its children.
  void command(const Words& argv, Place place, Scope environment);
  // A script in a file of its own, or the text behind `bash -c`.
  void script(std::string_view text, const std::string& path, Place place, Scope scope);
  std::optional<std::string> file(const std::string& path);

  void note(const std::string& text);
  // A command that may run or not: noted when it is a launcher.
  void branch(std::string_view program, const std::string& where);
  // What a launched program gets to see: each listed name that is exported.
  void harvest(const Scope& environment);
  [[nodiscard]] bool harvested() const { return harvested_; }
  CommandReading take() { return std::move(reading_); }

 private:
  bool wrapper(std::string_view program, const Words& argv, Place& place, Scope& environment);
  void env(const Words& argv, Place& place, Scope& environment);
  void run_rest(const Words& argv, std::size_t from, Place place, Scope environment);
  void bash(const Words& argv, Place place, Scope environment);
  void python(const Words& argv, Place place, Scope environment);
  bool launcher(std::string_view program, const Words& argv, Place place, Scope environment);
  void torchrun(const Words& argv, LauncherKind kind, const Place& place, Scope environment);
  void accelerate(const Words& argv, const Place& place, Scope environment);
  void deepspeed(const Words& argv, const Place& place, const Scope& environment);
  void srun(const Words& argv, Place place, Scope environment);
  void mpirun(const Words& argv, Place place, Scope environment);
  void sbatch(const Words& argv, Place place, Scope environment);
  void script_file(const Words& argv, std::size_t at, Place place, Scope environment);
  void add(Launch launch, const Place& place);
  void forget(const std::string& name);
  void say(const std::string& name, std::string_view value, const Place& place, bool fallback);
  void master(const Launch& launch, const Place& place);

  const ScriptReader& read_;
  CommandReading reading_;
  int files_ = 0;
  int commands_ = 0;
  bool harvested_ = false;
};

}  // namespace distdoctor::rules
