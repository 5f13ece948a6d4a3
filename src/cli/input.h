// What the command line names is read here, by a deadline: host lists, --env values and files,
// facts.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/job.h>

#include "base/deadline.h"
#include "base/error.h"

#include <string>
#include <vector>

namespace distdoctor::cli {

// A hostlist, @FILE, or an empty text: then $SLURM_JOB_NODELIST, and outside a job no peer at all.
Result<std::vector<std::string>> read_peers(const std::string& text, Deadline by);

// NAME=VALUE, or a file of such lines (# comments, optional "export ").
Result<Settings> read_env_option(const std::string& text, Deadline by);

// HOST:PORT, HOST, [V6]:PORT as MASTER_ADDR and MASTER_PORT.
Result<Settings> read_master_option(const std::string& text);

// Our own environment, allow-listed names only.
Settings own_environment();

// One or several recordings as one cluster.
Result<ClusterFacts> read_facts(const std::vector<std::string>& paths, Deadline by);

}  // namespace distdoctor::cli
