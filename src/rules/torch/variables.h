// Names of the variables that PyTorch's and Gloo's own code reads.
#pragma once

#include <distdoctor/facts/predicted.h>
#include <distdoctor/job.h>

#include <optional>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

// The variable of PyTorch (MASTER_, TORCH_NCCL_, ...) or Gloo that was meant by a name that neither
// reads; none where it is no slip of the pen.
std::optional<std::string_view> meant_by_torch(std::string_view name);

// The misspelt ones. One whose right name is set beside it may be somebody's own.
std::vector<VariableReading> misspelt_for_torch(const Settings& settings);

}  // namespace distdoctor::rules
