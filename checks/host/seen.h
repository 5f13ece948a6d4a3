// What the checks of this folder share: rows of evidence with their context, sizes, words.
#pragma once

#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

namespace distdoctor::checks::host {

inline Evidence seen(const NodeFacts& node,
                     std::string fact,
                     std::string observed,
                     std::string expected,
                     std::string command) {
  return {.node = node.host,
          .fact = std::move(fact),
          .observed = std::move(observed),
          .expected = std::move(expected),
          .context = std::string(slug(node.context)),
          .command = std::move(command)};
}

inline Fix by_hand(const NodeFacts& node, std::string text) {
  return {.node = node.host, .kind = Fix::Kind::manual, .text = std::move(text)};
}

inline std::string container_of(const NodeFacts& node) {
  return node.identity.known() ? node.identity->container : "";
}

// For a summary of what an ssh login shows.
inline std::string from_here(const NodeFacts& node) {
  return is_the_jobs_context(node.context) ? "" : " (as seen from here; the job's own may differ)";
}

inline std::string size_text(std::int64_t bytes) {
  constexpr double kMiB = 1 << 20;
  constexpr double kGiB = 1 << 30;
  const auto size = static_cast<double>(bytes);
  return size < kGiB ? fmt::format("{:.0f} MiB", size / kMiB)
                     : fmt::format("{:.1f} GiB", size / kGiB);
}

}  // namespace distdoctor::checks::host
