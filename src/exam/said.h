// What the user said about the job, read and put beside what we inherited.
#pragma once

#include "base/error.h"
#include "rules/launch/settings.h"

#include <string>
#include <vector>

namespace distdoctor::exam {

// `command` is what stands behind `--`; empty when nothing does. It is read, never run.
Result<rules::Said> read_said(const std::vector<std::string>& command,
                              Settings options,
                              Settings environment,
                              const rules::ScriptReader& read);

}  // namespace distdoctor::exam
