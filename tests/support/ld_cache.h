// A cache of the loader, for captured machines.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {

inline void append_word(std::string& bytes, std::uint32_t word) {
  std::array<char, sizeof word> raw{};
  std::memcpy(raw.data(), &word, sizeof word);
  bytes.append(raw.data(), raw.size());
}

// A cache as ldconfig writes it: header, entries, texts.
inline std::string ld_cache(const std::vector<std::pair<std::string, std::string>>& libraries) {
  std::string texts;
  std::string entries;
  const auto start = static_cast<std::uint32_t>(48 + 24 * libraries.size());
  for (const auto& [name, path] : libraries) {
    append_word(entries, 0x0303);
    append_word(entries, start + static_cast<std::uint32_t>(texts.size()));
    texts += name + '\0';
    append_word(entries, start + static_cast<std::uint32_t>(texts.size()));
    texts += path + '\0';
    entries.append(12, '\0');
  }
  std::string cache = "glibc-ld.so.cache1.1";
  append_word(cache, static_cast<std::uint32_t>(libraries.size()));
  append_word(cache, static_cast<std::uint32_t>(texts.size()));
  cache.resize(48, '\0');
  return cache + entries + texts;
}

}  // namespace distdoctor::testing
