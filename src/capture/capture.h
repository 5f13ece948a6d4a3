// A machine on paper: note what its doors answer, write that as one JSON text, and open it again as
// a machine. Fixtures of tests are such texts, written by hand.
#pragma once

#include "base/error.h"
#include "machine/captured.h"
#include "machine/machine.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace distdoctor::capture {

inline constexpr std::string_view kSchema = "distdoctor-machine/1";
inline constexpr std::size_t kMostBytes = std::size_t{64} << 20;

// Hands every question on and notes the answer. Thread-safe, as each machine is. What must not
// leave a process is gone from the notes: variables that are not allow-listed, masked arguments.
class Recorder {
 public:
  explicit Recorder(const machine::Machine& machine);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  Recorder(Recorder&&) = delete;
  Recorder& operator=(Recorder&&) = delete;

  [[nodiscard]] machine::Machine& machine();
  [[nodiscard]] machine::CapturedMachine notes() const;

 private:
  class Noting;
  std::unique_ptr<Noting> noting_;
};

std::string write(const machine::CapturedMachine& captured);
// `name` is for errors: the file's.
Result<machine::CapturedMachine> read(std::string_view text, std::string_view name);

// A file as `write` makes it; or a folder with such a file, machine.json, beside a tree root/ whose
// files come instead of those in the text.
Result<std::unique_ptr<machine::Machine>> open(const std::string& path);

}  // namespace distdoctor::capture
