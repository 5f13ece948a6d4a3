// $((...)) of a shell: whole numbers, names, brackets and the five operations.
#include "base/text.h"
#include "rules/launch/shell_scope.h"

#include <algorithm>

namespace distdoctor::rules {
namespace {

constexpr long long kLargest = 1'000'000'000'000;
constexpr int kDeepest = 16;
using Number = std::optional<long long>;
using NameValue = std::function<Number(std::string_view)>;

class Calculator {
 public:
  Calculator(std::string_view text, const NameValue& value) : text_(text), value_(value) {}

  Number run() {
    const Number result = sum();
    return peek() == '\0' ? result : std::nullopt;
  }

 private:
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Number sum() {
    Number left = product();
    while (left && (peek() == '+' || peek() == '-')) {
      const char sign = text_[at_++];
      const Number right = product();
      left = right ? bounded(sign == '+' ? *left + *right : *left - *right) : std::nullopt;
    }
    return left;
  }

  Number product() {
    Number left = factor();
    while (left && (peek() == '*' || peek() == '/' || peek() == '%')) {
      const char sign = text_[at_++];
      const Number right = factor();
      left = right ? apply(sign, *left, *right) : std::nullopt;
    }
    return left;
  }

  static Number apply(char sign, long long left, long long right) {
    if (sign == '*') {
      long long result = 0;
      return __builtin_mul_overflow(left, right, &result) ? std::nullopt : bounded(result);
    }
    if (right == 0) return std::nullopt;
    return sign == '/' ? left / right : left % right;
  }

  static Number bounded(long long result) {
    return result >= -kLargest && result <= kLargest ? Number(result) : std::nullopt;
  }

  Number factor() {
    if (peek() == '(') {
      if (++depth_ > kDeepest) return std::nullopt;
      ++at_;
      const Number inside = sum();
      if (peek() != ')') return std::nullopt;
      ++at_;
      --depth_;
      return inside;
    }
    return word();
  }

  // 12, NAME, $NAME, ${NAME}
  Number word() {
    std::string_view rest = text_.substr(std::min(at_, text_.size()));
    const auto end = rest.find_first_of(" +-*/%()");
    rest = rest.substr(0, end);
    at_ += rest.size();
    if (const auto number = parse_int<long long>(rest)) {
      // A leading zero would make it octal to the shell.
      return rest.size() > 1 && rest.front() == '0' ? std::nullopt : bounded(*number);
    }
    if (rest.starts_with('$')) rest.remove_prefix(1);
    if (rest.starts_with('{') && rest.ends_with('}')) rest = rest.substr(1, rest.size() - 2);
    return rest.empty() ? std::nullopt : value_(rest);
  }

  std::string_view text_;
  const NameValue& value_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<long long> evaluate_arithmetic(std::string_view text, const NameValue& value) {
  return Calculator(text, value).run();
}

}  // namespace distdoctor::rules
