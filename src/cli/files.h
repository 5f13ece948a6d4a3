// Files that the command line names, and standard output. They may be pipes and FIFOs whose other
// end sleeps, so that each wait has a deadline; a dead network file system may hold us longer.
#pragma once

#include "base/deadline.h"
#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace distdoctor::cli {

// A regular file or pipe of at most `limit` bytes. A FIFO that nobody has opened for writing is
// waited for, as cat(1) does.
Result<std::string> read_file(const std::string& path, std::size_t limit, Deadline by);

// Written beside it, synced and renamed, so that nobody sees half a file and a full disk or quota
// is an error here. What is no regular file is written in place.
Result<void> write_file(const std::string& path, std::string_view text, Deadline by);

// Prints what a command has to say. Returns `exit_code`, or kExitUsage after a complaint when it
// could not be written; a reader that has gone (`| head`) is no error.
int print(std::string_view text, int exit_code);

}  // namespace distdoctor::cli
