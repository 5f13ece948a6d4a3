// What `vendor VERB [ARGUMENTS]` can do. A verb prints its answer and returns the exit status.
#pragma once

#include <span>
#include <string_view>

namespace distdoctor::vendor {

using Arguments = std::span<const char* const>;  // after the verb

struct Verb {
  std::string_view name;
  int (*run)(Arguments arguments);
};

int about(Arguments arguments);           // {"version": "0.1.0"}
int nccl_allreduce(Arguments arguments);  // one rank, told on stdin: workers/rank/run.h
int nvml_facts(Arguments arguments);      // Nvml of facts/nvml.h
int rdma(Arguments arguments);            // RdmaRequest lines in, RdmaAnswer lines out: rdma.cpp
int verbs(Arguments arguments);           // Verbs of facts/verbs.h

}  // namespace distdoctor::vendor
