// Structs to JSON text, by the `fields` beside each struct. It writes as it walks, no tree between.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/enum_names.h>
#include <distdoctor/observed.h>

#include "codec/json.h"

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::codec {

// A member that is left out when it has nothing, instead of being null.
template <class T>
struct Sometimes {
  std::optional<T> value = {};
};

// A text that never varies.
struct Constant {
  std::string_view text;
};

// A visitor too: inside an object, writer("name", member) writes one member.
class Writer {
 public:
  void begin(char bracket) {
    comma();
    out_ += bracket;
    first_ = true;
  }
  void end(char bracket) {
    out_ += bracket;
    first_ = false;
  }
  void key(std::string_view name) {
    comma();
    out_ += quoted(name);
    out_ += ':';
    first_ = true;  // no comma between a key and its value
  }
  // What is JSON already.
  void raw(std::string_view json) {
    comma();
    out_ += json;
  }
  template <class T>
  void operator()(std::string_view name, const T& member) {
    key(name);
    value(member);
  }

  template <class T>
  void operator()(std::string_view name, const Sometimes<T>& member) {
    if (member.value) (*this)(name, *member.value);
  }

  void value(Constant constant) { raw(quoted(constant.text)); }
  void value(const std::string& text) { raw(quoted(text)); }
  void value(std::string_view text) { raw(quoted(text)); }
  void value(const Address& address) { raw(quoted(address.text())); }
  void value(std::same_as<bool> auto flag) { raw(flag ? "true" : "false"); }
  void value(double amount) { raw(number(amount)); }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  void value(T count) {
    raw(std::to_string(count));
  }
  template <NamedEnum T>
  void value(T name) {
    raw(quoted(slug(name)));
  }
  template <class T>
  void value(const std::optional<T>& maybe) {
    maybe ? value(*maybe) : raw("null");
  }
  template <class T>
  void value(const Observed<T>& fact) {
    if (fact.known()) return value(*fact);
    begin('{');
    (*this)("unknown", fact.why());
    end('}');
  }
  template <class T>
  void value(const std::vector<T>& items) {
    begin('[');
    for (const T& item : items) value(item);
    end(']');
  }
  template <class A, class B>
  void value(const std::pair<A, B>& both) {
    begin('[');
    value(both.first);
    value(both.second);
    end(']');
  }
  template <class T>
  void value(const std::map<std::string, T>& entries) {
    begin('{');
    for (const auto& [name, entry] : entries) (*this)(name, entry);
    end('}');
  }
  template <class T>
    requires requires(Writer& writer, const T& x) { fields(writer, x); }
  void value(const T& x) {
    begin('{');
    fields(*this, x);
    end('}');
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void comma() {
    if (!first_) out_ += ',';
    first_ = false;
  }

  std::string out_;
  bool first_ = true;
};

template <class T>
std::string write_json(const T& x) {
  Writer writer;
  writer.value(x);
  return writer.take();
}

}  // namespace distdoctor::codec
