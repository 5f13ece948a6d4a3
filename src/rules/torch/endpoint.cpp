#include "rules/torch/endpoint.h"

#include "base/text.h"
#include "rules/resolve.h"

#include <algorithm>
#include <vector>

namespace distdoctor::rules {

namespace {

// ^[\w\.:-]+$
bool plausible_host(std::string_view host) {
  constexpr std::string_view kOthers = "_.:-";
  return !host.empty() && std::ranges::all_of(host, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

bool bracketed(std::string_view text) {
  return text.size() > 1 && text.front() == '[' && text.back() == ']';
}

bool shares_any(const std::vector<Address>& one, const std::vector<Address>& other) {
  return std::ranges::any_of(
      one, [&](const Address& a) { return std::ranges::find(other, a) != other.end(); });
}

// Asked only where the host is neither the own name nor one of its addresses.
Observed<bool> matches_by_name(const NodeFacts& node,
                               const std::string& host,
                               const std::vector<Address>& own) {
  const auto theirs = resolve(host, node);
  if (!theirs.known()) return theirs.why();
  if (!shares_any(*theirs, own)) return false;
  return Unknown{.kind = Why::unsupported,
                 .text = host +
                         " has an address of this node: torch 2 takes it for the own name, "
                         "torch 1 does not"};
}

}  // namespace

std::optional<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
  text = trim(text);
  if (text.empty()) return Endpoint{.host = "localhost", .port = default_port};
  const auto colon = bracketed(text) ? std::string_view::npos : text.rfind(':');
  std::string_view host = text.substr(0, colon);
  std::uint16_t port = default_port;
  if (colon != std::string_view::npos) {
    const auto digits = text.substr(colon + 1);
    const auto given = parse_int<std::uint16_t>(digits);
    if (!given || digits.size() > 5) return std::nullopt;
    port = *given;
  }
  if (bracketed(host)) host = host.substr(1, host.size() - 2);
  if (!plausible_host(host)) return std::nullopt;
  return Endpoint{.host = std::string(host), .port = port};
}

Observed<bool> claims_endpoint(const NodeFacts& node, const std::string& host) {
  const auto literal = Address::parse(host);
  if (host == "localhost" || (literal && literal->loopback())) return true;
  if (!node.identity.known()) return node.identity.why();
  if (host == node.identity->hostname) return true;
  const auto own = resolve(node.identity->hostname, node);
  if (!own.known()) return own.why();
  if (own->empty()) return false;  // torchrun ends with socket.gaierror
  if (!literal) return matches_by_name(node, host, *own);
  return std::ranges::find(*own, *literal) != own->end();
}

}  // namespace distdoctor::rules
