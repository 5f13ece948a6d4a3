// What may leave a process, and what must not: an allow list of variable names, and masks for
// passwords and tokens in the values and command lines that do leave.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

// Names that tell how a job is launched and which transport it takes: MASTER_*, RANK, WORLD_SIZE,
// NCCL_*, GLOO_*, TORCH_*, the placement variables of Slurm and MPI, ... Everything else stays,
// and so does any name that sounds like a secret, whatever its prefix (SLURM_JWT).
bool may_leave_a_process(std::string_view name);

// A flag or variable whose value nobody else should read: HF_TOKEN, --api-key, db_password, ...
// The word decides, not the letters: "--tokenizer" and "NCCL_IB_PKEY" are none.
bool names_a_secret(std::string_view name);

// A value or any other text with its secrets replaced by "***": passwords of URLs
// ("http://ann:***@proxy:3128"), what follows "token=" and its kind, and strings that have the
// shape of a well-known service's token. Needed for proxies above all.
std::string mask_value(std::string_view text);

// A command line, each argument masked as above, and the argument after "--token" and its kind.
std::vector<std::string> mask_secrets(const std::vector<std::string>& argv);

}  // namespace distdoctor
