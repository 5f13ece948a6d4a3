// --config policy.toml: a site's own thresholds.
#pragma once

#include <distdoctor/policy.h>

#include "base/deadline.h"
#include "base/error.h"

#include <string>

namespace distdoctor::cli {

// Keys of [expect] as in policy.h: min_data_mtu, max_loss, max_clock_skew_ms, min_shm_bytes,
// gpus_per_node. An unknown key or a value of another type or range is an Error with its line.
Result<Expectations> read_policy(const std::string& path, Deadline by);

}  // namespace distdoctor::cli
