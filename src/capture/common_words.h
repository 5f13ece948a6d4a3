// Words that name nobody: whoever hides names leaves them.
#pragma once

#include <string_view>

namespace distdoctor::capture {

// Programs, launchers and their options, folders and files of every system, accounts that a cloud's
// images have, numbers. In lower case, letters and digits only.
bool is_common(std::string_view word);

}  // namespace distdoctor::capture
