#include "rules/nccl/comm_id.h"

#include "base/hostlist.h"
#include "rules/nccl/name_list.h"
#include "rules/resolve.h"

#include <utility>

namespace distdoctor::rules {

namespace {

CommId no_comm_id(std::string_view words) {
  return {.error = std::string(words)};
}

// NCCL does not look whether inet_pton likes the text, and goes on with "::".
CommId bracketed(std::string_view text) {
  const auto end = text.find(']');
  if (end == std::string_view::npos) return no_comm_id("No valid [IPv6]:port pair found");
  const std::string_view inside = text.substr(1, end - 1);
  const auto percent = inside.rfind('%');
  auto address = Address::parse(inside.substr(0, percent));
  if (!address || !address->v6) address = Address{.v6 = true};
  if (percent != std::string_view::npos) address->zone = inside.substr(percent + 1);
  return {.address = *std::move(address)};
}

// What stands before the first colon: NCCL reads one element of its list grammar.
std::string plain_host(std::string_view text) {
  const auto elements = parse_name_elements(text, 1);
  return elements.empty() ? "" : elements.front().name;
}

}  // namespace

std::string comm_id_host(std::string_view text) {
  if (text.size() <= 1 || text.front() == '[') return "";
  std::string host = plain_host(text);
  return Address::parse(host) || !bad_host_name(host).empty() ? "" : host;
}

Observed<CommId> read_comm_id(std::string_view text, const std::vector<Resolution>& names) {
  if (text.size() <= 1) return no_comm_id("string is null");
  if (text.front() == '[') return bracketed(text);
  const std::string host = plain_host(text);
  if (host.empty()) return no_comm_id("No valid <IPv4_or_hostname>:<port> pair found");
  // What no node can be called is no name to any resolver.
  const auto found = bad_host_name(host).empty() ? resolve(host, names) : std::vector<Address>{};
  if (!found.known()) return found.why();
  if (found->empty()) {
    return no_comm_id("error encountered when getting address info : Name or service not known");
  }
  Address first = found->front();
  first.zone.clear();  // NCCL sets the scope id to 0
  return CommId{.address = std::move(first)};
}

}  // namespace distdoctor::rules
