#include "codec/read.h"

#include "base/text.h"

#include <fmt/format.h>

namespace distdoctor::codec {

Result<void> Reader::result(std::string_view attempt) const {
  if (!failed()) return {};
  return failure(attempt, reason_, printable(shortened(place_, 200)));
}

bool Reader::expect(Value json, Kind kind) {
  if (json.kind() == kind) return true;
  fail(fmt::format("{} where {} belongs", name_of(json.kind()), name_of(kind)));
  return false;
}

void Reader::unknown_name(std::string_view name, std::string_view first, std::string_view last) {
  fail(fmt::format("'{}' is none of the known names ({} ... {})", printable(shortened(name, 40)),
                   first, last));
}

void Reader::read(Value json, std::string& x) {
  if (expect(json, Kind::string)) x = json.string();
}

void Reader::read(Value json, Address& x) {
  if (!expect(json, Kind::string)) return;
  const auto address = Address::parse(json.string());
  if (!address) {
    return fail(fmt::format("'{}' is no address", printable(shortened(json.string(), 60))));
  }
  x = *address;
}

void Reader::read(Value json, bool& x) {
  if (expect(json, Kind::boolean)) x = json.boolean();
}

void Reader::read(Value json, double& x) {
  const Kind kind = json.kind();
  if (kind != Kind::integer && kind != Kind::natural && !expect(json, Kind::real)) return;
  x = json.real();
}

std::optional<std::int64_t> Reader::whole(Value json, std::int64_t lowest, std::uint64_t highest) {
  if (json.kind() != Kind::integer) {
    const auto number = natural(json, highest);
    return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
  }
  if (json.integer() < lowest) {
    fail(fmt::format("{} is out of range ({} to {})", json.integer(), lowest, highest));
    return std::nullopt;
  }
  return json.integer();
}

std::optional<std::uint64_t> Reader::natural(Value json, std::uint64_t highest) {
  if (json.kind() == Kind::natural && json.natural() <= highest) return json.natural();
  if (json.kind() == Kind::natural) {
    fail(fmt::format("{} is out of range (at most {})", json.natural(), highest));
  } else if (json.kind() == Kind::integer) {
    fail(fmt::format("{} is out of range (0 to {})", json.integer(), highest));
  } else if (json.kind() == Kind::real) {
    fail(fmt::format("{} is no whole number", json.real()));
  } else {
    expect(json, Kind::natural);
  }
  return std::nullopt;
}

}  // namespace distdoctor::codec
