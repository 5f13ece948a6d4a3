// What the stand-ins of an anonymous capture take for a word's character, in any locale.
#pragma once

namespace distdoctor::capture {

constexpr bool in_a_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace distdoctor::capture
