#include "collect/qos.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr int kPriorities = 8;

// One file for each priority, "1" or "0"; all of them, or none is known.
std::optional<int> read_bits(const machine::FileTree& files, const std::string& folder) {
  int bits = 0;
  for (int priority = 0; priority < kPriorities; ++priority) {
    const auto on =
        parse_int_within<int>(files.word(folder + "/" + std::to_string(priority)), 0, 1);
    if (!on) return std::nullopt;
    bits |= *on << priority;
  }
  return bits;
}

}  // namespace

std::string parse_trust(std::string_view text) {
  const auto words = split_words(text);
  const auto has = [&words](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  if (has("dscp") == has("pcp")) return "";
  return has("dscp") ? "dscp" : "pcp";
}

std::optional<int> parse_traffic_class(std::string_view text) {
  for (const auto line : split_lines(text)) {
    const auto number = after_prefix(trim(line), "Global tclass=");
    if (number) return parse_int_within<int>(trim(*number), 0, 255);
  }
  return std::nullopt;
}

Observed<LinkQos> read_qos(const machine::Machine& machine,
                           const std::string& link,
                           std::optional<Unknown>& late) {
  const auto& files = machine.files();
  const auto folder = "/sys/class/net/" + link;
  LinkQos qos;
  if (!late) {
    auto told = machine.qos(link);
    if (told) {
      qos = *std::move(told);
    } else if (told.error().errno_value == ETIMEDOUT) {
      late = unknown_because(told.error());
    }
  }
  const auto trust = parse_trust(files.read(folder + "/qos/trust").value_or(""));
  if (!trust.empty()) qos.trust = trust;
  qos.ecn_tells = read_bits(files, folder + "/ecn/roce_np/enable");
  qos.ecn_slows = read_bits(files, folder + "/ecn/roce_rp/enable");
  if (qos != LinkQos{}) return qos;
  return late.value_or(Unknown{Why::unsupported, "the driver of " + link + " tells none"});
}

}  // namespace distdoctor::collect
