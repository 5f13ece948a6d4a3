// Facts from a helper of ours (src/workers): one object of JSON on its stdout.
#pragma once

#include <distdoctor/observed.h>

#include "base/deadline.h"
#include "base/error.h"
#include "base/text.h"
#include "codec/read.h"
#include "machine/machine.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::collect {

inline constexpr std::size_t kMostHelperOutput = std::size_t{8} << 20;

// What the helper said, or why there is none: it is not here, it does not start with this libc, it
// died, it was too slow, or it told no JSON.
inline Result<std::string> run_helper(const machine::Machine& machine,
                                      const std::vector<std::string>& argv,
                                      Deadline deadline) {
  DD_TRY(machine::ChildOutput output,
         machine.run({.argv = argv, .ours = true, .most_output = kMostHelperOutput}, deadline));
  if (output.exit_code == 0) return std::move(output.out);
  const auto words = shortened(printable(trim(output.err)), 200);
  const auto fate = output.exit_code > 128 ? fmt::format("signal {}", output.exit_code - 128)
                                           : fmt::format("exit {}", output.exit_code);
  return failure("run " + join(argv, " "), words.empty() ? fate : fate + ": " + words);
}

template <class T>
Observed<T> ask_helper(const machine::Machine& machine,
                       const std::vector<std::string>& argv,
                       Deadline deadline) {
  const auto output = run_helper(machine, argv, deadline);
  if (!output) return unknown_because(output.error());
  T facts;
  const auto read =
      codec::read_json(*output, facts, "read what " + join(argv, " ") + " says", kMostHelperOutput);
  if (!read) return unknown_because(read.error());
  return facts;
}

}  // namespace distdoctor::collect
