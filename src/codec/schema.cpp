// JSON Schema (draft 2020-12) of what the writer writes, from the same `fields`.
#include "codec/codec.h"
#include "codec/shapes.h"
#include "codec/write.h"

#include <fmt/format.h>

#include <cxxabi.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <typeinfo>

namespace distdoctor::codec {
namespace {

// "SharedMemory" of distdoctor::SharedMemory.
std::string type_name(const std::type_info& type) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), &std::free);
  const std::string_view full = name.get();
  return std::string(full.substr(full.rfind(':') + 1));
}

class Schemas {
 public:
  template <class T>
  std::string whole(const T& sample, std::string_view title) {
    const std::string root = object(sample);
    Writer writer;
    writer.begin('{');
    writer("$schema", std::string_view("https://json-schema.org/draft/2020-12/schema"));
    writer("title", title);
    writer.key("allOf");
    writer.raw(fmt::format("[{}]", root));
    writer.key("$defs");
    writer.begin('{');
    for (const auto& [name, definition] : definitions_) {
      writer.key(name);
      writer.raw(definition);
    }
    writer.end('}');
    writer.end('}');
    return writer.take();
  }

 private:
  // Visits one struct.
  class Members {
   public:
    explicit Members(Schemas& schemas) : schemas_(schemas) { properties_.begin('{'); }
    template <class T>
    void operator()(std::string_view name, const T& member) {
      required_.emplace_back(name);
      property(name, schemas_.of(member));
    }
    template <class T>
    void operator()(std::string_view name, const Sometimes<T>& /*member*/) {
      property(name, schemas_.of(T{}));
    }
    std::string take() {
      properties_.end('}');
      return fmt::format(R"({{"type":"object","properties":{},"required":{}}})", properties_.take(),
                         write_json(required_));
    }

   private:
    void property(std::string_view name, const std::string& schema) {
      properties_.key(name);
      properties_.raw(schema);
    }
    Schemas& schemas_;
    Writer properties_;
    std::vector<std::string> required_;
  };

  template <class T>
  std::string object(const T& sample) {
    Members members(*this);
    fields(members, sample);
    return members.take();
  }

  std::string of(const std::string& /*x*/) { return R"({"type":"string"})"; }
  std::string of(std::string_view /*x*/) { return R"({"type":"string"})"; }
  std::string of(const Address& /*x*/) {
    return R"({"type":"string","description":"an IPv4 or IPv6 address"})";
  }
  std::string of(std::same_as<bool> auto /*x*/) { return R"({"type":"boolean"})"; }
  std::string of(double /*x*/) { return R"({"type":["number","null"]})"; }
  std::string of(Constant constant) { return fmt::format(R"({{"const":"{}"}})", constant.text); }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  std::string of(T /*x*/) {
    return fmt::format(R"({{"type":"integer","minimum":{},"maximum":{}}})",
                       std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  }
  template <NamedEnum T>
  std::string of(T /*x*/) {
    const std::vector<std::string> names(std::begin(EnumNames<T>::values),
                                         std::end(EnumNames<T>::values));
    return fmt::format(R"({{"enum":{}}})", write_json(names));
  }
  template <class T>
  std::string of(const std::optional<T>& /*x*/) {
    return fmt::format(R"({{"anyOf":[{},{{"type":"null"}}]}})", of(T{}));
  }
  template <class T>
  std::string of(const Observed<T>& /*x*/) {
    return fmt::format(
        R"({{"anyOf":[{},{{"type":"object","properties":{{"unknown":{}}},"required":["unknown"],)"
        R"("additionalProperties":false}}]}})",
        of(T{}), of(Unknown{}));
  }
  template <class T>
  std::string of(const std::vector<T>& /*x*/) {
    return fmt::format(R"({{"type":"array","items":{}}})", of(T{}));
  }
  template <class A, class B>
  std::string of(const std::pair<A, B>& /*x*/) {
    return fmt::format(R"({{"type":"array","prefixItems":[{},{}],"minItems":2,"maxItems":2}})",
                       of(A{}), of(B{}));
  }
  template <class T>
  std::string of(const std::map<std::string, T>& /*x*/) {
    return fmt::format(R"({{"type":"object","additionalProperties":{}}})", of(T{}));
  }
  template <class T>
    requires requires(Writer& writer, const T& x) { fields(writer, x); }
  std::string of(const T& sample) {
    const std::string name = type_name(typeid(T));
    const auto [place, fresh] = definitions_.try_emplace(name);
    if (fresh) definitions_[name] = object(sample);  // named first: a Cause holds Causes
    return fmt::format(R"({{"$ref":"#/$defs/{}"}})", name);
  }

  std::map<std::string, std::string> definitions_;
};

}  // namespace

std::string json_schema(std::string_view schema) {
  Schemas schemas;
  if (schema == kReportSchema) {
    return indented(schemas.whole(ReportShape{}, "what distdoctor -o json prints"));
  }
  if (schema == kFactsSchema) {
    const NodeFacts node;
    return indented(schemas.whole(NodeShape{.node = node}, "what distdoctor facts prints"));
  }
  const ClusterFacts cluster;
  return indented(schemas.whole(ClusterShape{.cluster = cluster}, "what distdoctor --save writes"));
}

}  // namespace distdoctor::codec
