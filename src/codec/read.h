// JSON to structs, by the `fields` beside each struct, as codec.h says: strict in what a member may
// be, deaf to keys that it does not know, and an absent key leaves its member as it was.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/enum_names.h>
#include <distdoctor/observed.h>

#include "base/error.h"
#include "codec/json.h"

#include <concepts>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::codec {

// Stops at the first trouble and remembers where that was.
class Reader {
 public:
  template <class T>
  void value(Value json, T& x) {
    if (!failed()) read(json, x);
  }

  [[nodiscard]] bool failed() const { return !reason_.empty(); }
  // The trouble as an Error, its place below `root` ("nodes[0].links[2].mtu").
  [[nodiscard]] Result<void> result(std::string_view attempt) const;

 private:
  // Visits the members of one struct.
  class Members {
   public:
    Members(Reader& reader, Value object) : reader_(reader), object_(object) {}
    template <class T>
    void operator()(std::string_view name, T& member) {
      const auto found = reader_.failed() ? std::nullopt : object_.find(name);
      if (found) reader_.below(name, [&] { reader_.value(*found, member); });
    }

   private:
    Reader& reader_;
    Value object_;
  };

  template <class Step>
  void below(std::string_view name, Step step) {
    const std::size_t length = place_.size();
    if (!place_.empty()) place_ += '.';
    place_ += name;
    step();
    if (!failed()) place_.resize(length);
  }
  template <class Step>
  void below(std::size_t index, Step step) {
    const std::size_t length = place_.size();
    place_ += '[' + std::to_string(index) + ']';
    step();
    if (!failed()) place_.resize(length);
  }

  void fail(std::string reason) { reason_ = std::move(reason); }
  // Whether it is of that kind; else that is the trouble.
  bool expect(Value json, Kind kind);
  void unknown_name(std::string_view name, std::string_view first, std::string_view last);

  void read(Value json, std::string& x);
  void read(Value json, Address& x);
  void read(Value json, bool& x);
  void read(Value json, double& x);
  std::optional<std::int64_t> whole(Value json, std::int64_t lowest, std::uint64_t highest);
  std::optional<std::uint64_t> natural(Value json, std::uint64_t highest);

  template <std::signed_integral T>
  void read(Value json, T& x) {
    using Limits = std::numeric_limits<T>;
    const auto number = whole(json, Limits::min(), static_cast<std::uint64_t>(Limits::max()));
    if (number) x = static_cast<T>(*number);
  }
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  void read(Value json, T& x) {
    if (const auto number = natural(json, std::numeric_limits<T>::max())) {
      x = static_cast<T>(*number);
    }
  }
  template <NamedEnum T>
  void read(Value json, T& x) {
    if (!expect(json, Kind::string)) return;
    const auto found = enum_from_slug<T>(json.string());
    if (found) {
      x = *found;
    } else {
      unknown_name(json.string(), *std::begin(EnumNames<T>::values),
                   *std::rbegin(EnumNames<T>::values));
    }
  }
  template <class T>
  void read(Value json, std::optional<T>& x) {
    x.reset();
    if (json.kind() != Kind::null) value(json, x.emplace());
  }
  template <class T>
  void read(Value json, Observed<T>& x) {
    if (json.kind() == Kind::null) return;  // it was an optional to an older version
    const auto why = json.size() == 1 ? json.find("unknown") : std::nullopt;
    if (why && why->find("kind")) {
      Unknown unknown;
      below("unknown", [&] { value(*why, unknown); });
      x = unknown;
    } else {
      T fact{};
      value(json, fact);
      x = std::move(fact);
    }
  }
  template <class T>
  void read(Value json, std::vector<T>& x) {
    x.clear();
    if (!expect(json, Kind::array)) return;
    x.reserve(json.size());
    for (std::size_t i = 0; i < json.size() && !failed(); ++i) {
      below(i, [&] { value(json.at(i), x.emplace_back()); });
    }
  }
  template <class A, class B>
  void read(Value json, std::pair<A, B>& x) {
    if (!expect(json, Kind::array)) return;
    if (json.size() != 2) return fail("two items are expected here");
    below(0, [&] { value(json.at(0), x.first); });
    below(1, [&] { value(json.at(1), x.second); });
  }
  template <class T>
  void read(Value json, std::map<std::string, T>& x) {
    x.clear();
    if (!expect(json, Kind::object)) return;
    for (const auto& [name, entry] : json.members()) {
      below(name, [&] { value(entry, x[std::string(name)]); });
    }
  }
  template <class T>
    requires requires(Members& members, T& x) { fields(members, x); }
  void read(Value json, T& x) {
    if (!expect(json, Kind::object)) return;
    Members members(*this, json);
    fields(members, x);
  }

  std::string place_;
  std::string reason_;
};

template <class T>
Result<void> read_value(Value json, T& into, std::string_view attempt) {
  Reader reader;
  reader.value(json, into);
  return reader.result(attempt);
}

template <class T>
Result<void> read_json(std::string_view text,
                       T& into,
                       std::string_view attempt,
                       std::size_t max_bytes = std::size_t{1} << 20) {
  DD_TRY(const Document document, Document::parse(text, max_bytes));
  return read_value(document.root(), into, attempt);
}

}  // namespace distdoctor::codec
