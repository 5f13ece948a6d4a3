// What the command line names is read here: host lists, --env values and files, scripts, facts.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/job.h>

#include "base/error.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::cli {

// A regular file or pipe of at most `limit` bytes; never blocks on a FIFO without a writer.
Result<std::string> read_file(const std::string& path, std::size_t limit);

// A hostlist, @FILE, or an empty text: then $SLURM_JOB_NODELIST, and outside a job no peer at all.
Result<std::vector<std::string>> read_peers(const std::string& text);

// NAME=VALUE, or a file of such lines (# comments, optional "export ").
Result<Settings> read_env_option(const std::string& text);

// HOST:PORT, HOST, [V6]:PORT as MASTER_ADDR and MASTER_PORT.
Result<Settings> read_master_option(const std::string& text);

// Our own environment, allow-listed names only.
Settings own_environment();

// One or several recordings as one cluster.
Result<ClusterFacts> read_facts(const std::vector<std::string>& paths);

// Written beside it and renamed, so that nobody sees half a file.
Result<void> write_file(const std::string& path, std::string_view text);

}  // namespace distdoctor::cli
