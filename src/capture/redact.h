// What of a machine's files may be kept in a recording.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace distdoctor::capture {

// Allow-listed names only, their values masked (base/secrets.h), and the marks of containers and of
// an ssh login, without what they say.
std::map<std::string, std::string> allowed_variables(
    const std::map<std::string, std::string>& environment);

// The text of a file as it may be kept. Of /proc/PID/environ the allow-listed variables, of cmdline
// the masked arguments, of maps the lines with a path, of a library its version text, of any other
// file beyond 1 MiB nothing: no fact is in such a file.
std::string redacted(std::string_view path, std::string_view text);

// Of a part of a file: of a library its version text, else nothing.
std::string redacted_part(std::string_view path, std::string_view part);

}  // namespace distdoctor::capture
