#include "fleet/here.h"

#include "base/hostlist.h"
#include "base/text.h"
#include "machine/child.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace distdoctor::fleet {
namespace {

Address address_of(const sockaddr& name) {
  Address address;
  if (name.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &name, sizeof v4);
    std::memcpy(address.bytes.data(), &v4.sin_addr, 4);
  } else {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &name, sizeof v6);
    address.v6 = true;
    std::memcpy(address.bytes.data(), &v6.sin6_addr, 16);
  }
  return address;
}

std::vector<Address> resolved(std::string_view host, Deadline deadline) {
  if (const auto address = Address::parse(host)) return {*address};
  const auto output =
      machine::run_child({.argv = {"getent", "ahosts", std::string(host)}}, deadline);
  std::vector<Address> addresses;
  if (!output) return addresses;
  for (const auto line : split_lines(output->out)) {
    const auto words = split_words(line);
    const auto address = words.empty() ? std::nullopt : Address::parse(words.front());
    if (address) addresses.push_back(*address);
  }
  return addresses;
}

bool same_place(const Address& a, const Address& b) {
  return a.v6 == b.v6 && a.bytes == b.bytes;
}

// "root@node0" asks for root, who may not be us: then node0 is as far as any other node.
bool somebody_else(std::string_view peer) {
  const auto user = peer.substr(0, std::min(peer.find('@'), peer.size()));
  if (user == peer) return false;
  if (user == "root") return ::geteuid() != 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody writes our environment
  const char* const ours = std::getenv("USER");
  return ours == nullptr || user != ours;
}

std::string_view short_name(std::string_view host) {
  return host.substr(0, std::min(host.find('.'), host.size()));
}

// Whoever writes an address, or localhost, means it.
bool chosen_address(std::string_view host) {
  return host == "localhost" || Address::parse(host).has_value();
}

struct Leads {
  std::optional<Address> ours = {};  // the name leads here, to this address
  bool away = false;                 // to other machines, and not here
};

struct Search {
  std::vector<Address> own;
  Deadline deadline;

  [[nodiscard]] Leads follow(std::string_view host) const {
    const auto addresses = resolved(host, deadline);
    const auto found = std::ranges::find_if(addresses, [&](const Address& address) {
      return address.loopback() || std::ranges::any_of(own, [&](const Address& ours) {
               return same_place(ours, address);
             });
    });
    if (found != addresses.end()) return {.ours = *found};
    return {.away = !addresses.empty()};
  }

  [[nodiscard]] bool another_is_at_our_address(std::string_view host,
                                               const std::vector<std::string>& peers) const {
    return std::ranges::any_of(peers, [&](const std::string& peer) {
      const auto other = host_of_peer(peer);
      if (other == host || somebody_else(peer)) return false;
      const Leads leads = follow(other);
      return leads.ours && !leads.ours->loopback();
    });
  }

  // The peer that has our hostname, unless its name leads away.
  [[nodiscard]] std::optional<std::string> named_as_we_are(
      const std::vector<std::string>& peers) const {
    const std::string name = own_hostname();
    const auto twin = std::ranges::find_if(peers, [&](const std::string& peer) {
      return short_name(host_of_peer(peer)) == short_name(name) && !somebody_else(peer);
    });
    if (twin == peers.end() || follow(host_of_peer(*twin)).away) return std::nullopt;
    return std::string(host_of_peer(*twin));
  }
};

}  // namespace

std::string own_hostname() {
  utsname name{};
  ::uname(&name);
  return name.nodename;
}

std::vector<Address> own_addresses() {
  std::vector<Address> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, &::freeifaddrs);
  for (const ifaddrs* row = list.get(); row != nullptr; row = row->ifa_next) {
    const sockaddr* name = row->ifa_addr;
    if (name == nullptr || (name->sa_family != AF_INET && name->sa_family != AF_INET6)) continue;
    addresses.push_back(address_of(*name));
  }
  return addresses;
}

Place place_of(std::string_view peer,
               const std::vector<std::string>& peers,
               bool name_only,
               Deadline deadline) {
  if (somebody_else(peer)) return {};
  const auto host = host_of_peer(peer);
  const bool named = host == own_hostname();
  if (name_only) return {.here = named};
  const Search search{own_addresses(), deadline};
  const Leads leads = search.follow(host);
  if (named) return {.here = !leads.away || !search.another_is_at_our_address(host, peers)};
  if (!leads.ours || chosen_address(host) || short_name(host) == short_name(own_hostname())) {
    return {.here = leads.ours.has_value()};
  }
  const auto twin = search.named_as_we_are(peers);
  if (!twin) return {.here = true};
  return {.misled = leads.ours->text() + ", of " + *twin};
}

}  // namespace distdoctor::fleet
