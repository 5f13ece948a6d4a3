// Errors are values: what was attempted, on what, and what came back. Exceptions mean bugs.
#pragma once

#include <distdoctor/observed.h>

#include <cerrno>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace distdoctor {

struct Error {
  std::string attempt;     // what was tried, on what: "open /proc/7/environ"
  std::string reason;      // what came back: "Permission denied"
  int errno_value = 0;     // when the kernel said no; 0 otherwise
  std::string place = {};  // where in an input: "line 3, column 7"; empty elsewhere

  // One line without control characters: "open /proc/7/environ: Permission denied".
  [[nodiscard]] std::string render() const;
  bool operator==(const Error&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;

// "open", "/proc/7/environ" and the errno of the call that has just failed.
Error errno_error(std::string_view verb, std::string_view object, int errno_value = errno);

// return failure("parse hostlist", "empty");
std::unexpected<Error> failure(std::string_view attempt,
                               std::string_view reason,
                               std::string_view place = {});

// The same as a fact that could not be read: EACCES and EPERM are `denied`, ETIMEDOUT is
// `timed_out`, ENOSYS, EOPNOTSUPP and their kind are `unsupported`, the rest is `failed`.
Unknown unknown_because(const Error& error);

template <class T>
Observed<T> observed(Result<T> result) {
  if (!result) return unknown_because(result.error());
  return *std::move(result);
}

}  // namespace distdoctor

// Hands a failure to the caller. As a whole statement inside braces, in two forms:
//   DD_TRY(auto file, open_file(path));   // declares or assigns what the Result held
//   DD_TRY(write_all(fd, text));          // only looks at it
// No statement expression: those lose the temporaries of the expression around them on return.
#define DD_TRY(first, ...)                                                         \
  DD_TRY_PASTE_(DD_TRY_, __VA_OPT__(ASSIGN_))(DD_TRY_PASTE_(dd_result_, __LINE__), \
                                              first __VA_OPT__(, ) __VA_ARGS__)
#define DD_TRY_(result, ...) \
  auto result = __VA_ARGS__; \
  if (!result) return std::unexpected(std::move(result).error())
#define DD_TRY_ASSIGN_(result, target, ...) \
  DD_TRY_(result, __VA_ARGS__);             \
  target = *std::move(result)
#define DD_TRY_PASTE_(a, b) DD_TRY_PASTE_AGAIN_(a, b)
#define DD_TRY_PASTE_AGAIN_(a, b) a##b
