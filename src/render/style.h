// Symbols and colours. Colour is never the only sign.
#pragma once

#include <distdoctor/diagnosis.h>

#include "render/render.h"

#include <string>
#include <string_view>

namespace distdoctor::render {

class Style {
 public:
  explicit Style(const TextOptions& options) : options_(options) {}

  // ✓ ! ✗ ? and - for skipped; ok ! X ? - in ASCII.
  [[nodiscard]] std::string symbol(CheckResult result) const;
  [[nodiscard]] std::string bold(std::string_view text) const { return paint("1", text); }
  [[nodiscard]] std::string dim(std::string_view text) const { return paint("2", text); }
  [[nodiscard]] std::string heading(std::string_view text) const { return paint("1;4", text); }
  [[nodiscard]] std::string by_result(CheckResult result, std::string_view text) const;
  [[nodiscard]] int width() const { return options_.width; }
  [[nodiscard]] bool verbose() const { return options_.verbose; }

 private:
  [[nodiscard]] std::string paint(std::string_view code, std::string_view text) const;
  TextOptions options_;
};

CheckResult as_result(Severity severity);

// Words broken at `width` columns, each line after `indent` blanks. Counts code points, which is
// right for what we print.
std::string wrapped(std::string_view text, std::size_t indent, int width);

}  // namespace distdoctor::render
