// Links as a test row writes them: "lo=127.0.0.1/8,::1/128 eth0=10.0.0.1/24 ib0!=10.1.0.1/16".
// '!' has no carrier; '~' is administratively down. An address may have a label:
// "10.0.0.2/24@eth0:1".
#pragma once

#include <distdoctor/facts/network.h>
#include <distdoctor/job.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::testing {

inline std::vector<std::string> cut(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

inline LinkAddress link_address(const std::string& text, const std::string& link) {
  const auto parts = cut(text, '@');
  const auto halves = cut(parts.at(0), '/');
  LinkAddress row{.address = Address::parse(halves.at(0)).value(),
                  .prefix = std::stoi(halves.at(1))};
  if (!row.address.v6) row.label = parts.size() > 1 ? parts[1] : link;
  return row;
}

inline Link link_from(const std::string& word, int index) {
  const auto equals = word.find('=');
  std::string name = word.substr(0, equals);
  const bool no_carrier = name.ends_with('!');
  const bool down = name.ends_with('~');
  if (no_carrier || down) name.pop_back();
  Link link{.name = name, .index = index, .kind = LinkKind::ethernet, .mtu = 1500};
  if (name == "lo") link.kind = LinkKind::loopback;
  link.up = !down;
  link.running = link.carrier = !down && !no_carrier;
  link.operstate = link.running ? "up" : "down";
  if (equals != std::string::npos) {
    for (const std::string& address : cut(word.substr(equals + 1), ',')) {
      link.addresses.push_back(link_address(address, name));
    }
  }
  return link;
}

inline std::vector<Link> links_from(const std::string& text) {
  std::vector<Link> links;
  for (const std::string& word : cut(text, ' ')) {
    links.push_back(link_from(word, static_cast<int>(links.size()) + 1));
  }
  return links;
}

// "A=b" as a command line gives it.
inline Settings settings_from(const std::vector<std::string>& words) {
  Settings settings;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) throw std::logic_error("no '=' in " + word);
    settings[word.substr(0, equals)] = {.value = word.substr(equals + 1),
                                        .origin = {.source = Source::command_line}};
  }
  return settings;
}

}  // namespace distdoctor::testing
