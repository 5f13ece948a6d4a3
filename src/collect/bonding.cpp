#include "collect/bonding.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::size_t kMostMembers = 256;

using Row = std::pair<std::string_view, std::string_view>;

constexpr std::array<Row, 7> kModes = {{{"load balancing (round-robin)", "balance-rr"},
                                        {"fault-tolerance (active-backup)", "active-backup"},
                                        {"load balancing (xor)", "balance-xor"},
                                        {"fault-tolerance (broadcast)", "broadcast"},
                                        {"IEEE 802.3ad Dynamic link aggregation", "802.3ad"},
                                        {"transmit load balancing", "balance-tlb"},
                                        {"adaptive load balancing", "balance-alb"}}};

// "layer2" of "layer2 (0)"; active-backup has "(fail_over_mac active)" behind its name, too.
std::string_view before_bracket(std::string_view text) {
  return trim(text.substr(0, text.find(" (")));
}

std::optional<Row> named_value(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return Row{trim(line.substr(0, colon)), trim(line.substr(colon + 1))};
}

void see_of_bond(const Row& row, Bond& bond) {
  const auto& [name, value] = row;
  if (name == "Bonding Mode") bond.mode = bond_mode(value);
  if (name == "Transmit Hash Policy") bond.hash_policy = before_bracket(value);
  if (name == "Currently Active Slave" && value != "None") bond.active = value;
  if (name == "Aggregator ID") bond.aggregator = parse_int<int>(value).value_or(0);
}

void see_of_member(const Row& row, BondMember& member) {
  const auto& [name, value] = row;
  if (name == "MII Status") member.up = value == "up";
  if (name == "Link Failure Count") member.failures = parse_int<int>(value).value_or(0);
  if (name == "Aggregator ID") member.aggregator = parse_int<int>(value).value_or(0);
  if (name != "Speed") return;
  const auto mbps = before_suffix(value, " Mbps");
  if (mbps) member.speed_mbps = parse_int_within<int>(*mbps, 1, 10'000'000);
}

}  // namespace

std::string_view bond_mode(std::string_view kernels_words) {
  for (const auto& [words, mode] : kModes) {
    if (kernels_words.starts_with(words)) return mode;
  }
  return kernels_words;
}

std::optional<Bond> parse_bond(std::string_view text) {
  Bond bond;
  for (const auto line : split_lines(text)) {
    const auto row = named_value(line);
    if (!row) continue;
    if (row->first == "Slave Interface") {
      if (bond.members.size() == kMostMembers) break;
      bond.members.push_back({.name = std::string(row->second)});
    } else if (bond.members.empty()) {
      see_of_bond(*row, bond);
    } else {
      see_of_member(*row, bond.members.back());
    }
  }
  return bond.mode.empty() ? std::nullopt : std::optional(std::move(bond));
}

}  // namespace distdoctor::collect
