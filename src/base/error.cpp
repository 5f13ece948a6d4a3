#include "base/error.h"

#include "base/text.h"

#include <fmt/format.h>

#include <cstring>

namespace distdoctor {
namespace {

Why why(int errno_value) {
  switch (errno_value) {
    case EACCES:
    case EPERM:
      return Why::denied;
    case ETIMEDOUT:
      return Why::timed_out;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
      return Why::unsupported;
    default:
      return Why::failed;
  }
}

}  // namespace

std::string Error::render() const {
  const std::string at = place.empty() ? "" : fmt::format(" ({})", place);
  return printable(fmt::format("{}: {}{}", attempt, reason, at));
}

Error errno_error(std::string_view verb, std::string_view object, int errno_value) {
  const char* text = ::strerrordesc_np(errno_value);  // strerror is not thread-safe
  return {.attempt = fmt::format("{} {}", verb, object),
          .reason = text != nullptr ? text : fmt::format("errno {}", errno_value),
          .errno_value = errno_value};
}

std::unexpected<Error> failure(std::string_view attempt,
                               std::string_view reason,
                               std::string_view place) {
  return std::unexpected(Error{
      .attempt = std::string(attempt), .reason = std::string(reason), .place = std::string(place)});
}

Unknown unknown_because(const Error& error) {
  return {why(error.errno_value), error.render()};
}

}  // namespace distdoctor
