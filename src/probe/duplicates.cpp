// Who else answers for an address on the same wire: ARP probes (RFC 5227) and their replies.
#include "probe/endpoint.h"
#include "probe/probe.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/if_ether.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::probe {
namespace {

using std::chrono::milliseconds;
using Mac = std::array<std::uint8_t, ETH_ALEN>;

constexpr int kRounds = 3;
constexpr milliseconds kBetween{150};
constexpr std::size_t kMostChoices = 256;

std::string text_of(const Mac& mac) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : mac) {
    if (!text.empty()) text += ':';
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xfU];
  }
  return text;
}

// The interface of "eth0:1" is eth0.
std::string link_of(const std::string& label) {
  return label.substr(0, label.find(':'));
}

struct OwnAddresses {
  std::set<std::pair<std::string, Address>> all;
  std::set<Mac> macs;
};

OwnAddresses own_addresses() {
  OwnAddresses own;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return own;
  for (const ifaddrs* row = list; row != nullptr; row = row->ifa_next) {
    if (row->ifa_addr == nullptr) continue;
    if (row->ifa_addr->sa_family == AF_INET) {
      Endpoint end;
      std::memcpy(end.room(), row->ifa_addr, sizeof(sockaddr_in));
      own.all.emplace(link_of(row->ifa_name), end.address());
    } else if (row->ifa_addr->sa_family == AF_PACKET) {
      sockaddr_ll link{};
      std::memcpy(&link, row->ifa_addr, sizeof link);
      Mac mac{};
      if (link.sll_halen == mac.size()) {
        std::copy_n(std::begin(link.sll_addr), mac.size(), mac.begin());
        own.macs.insert(mac);
      }
    }
  }
  ::freeifaddrs(list);
  return own;
}

// Ethernet with ARP, up: elsewhere there is nobody to ask.
bool speaks_arp(const Fd& fd, const std::string& interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IF_NAMESIZE - 1);
  if (::ioctl(fd.get(), SIOCGIFFLAGS, &request) != 0) return false;
  const auto flags = static_cast<unsigned short>(request.ifr_flags);
  if ((flags & (IFF_NOARP | IFF_LOOPBACK)) != 0 || (flags & IFF_UP) == 0) return false;
  return ::ioctl(fd.get(), SIOCGIFHWADDR, &request) == 0 &&
         request.ifr_hwaddr.sa_family == ARPHRD_ETHER;
}

Mac mac_of(const Fd& fd, const std::string& interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IF_NAMESIZE - 1);
  Mac mac{};
  if (::ioctl(fd.get(), SIOCGIFHWADDR, &request) == 0) {
    std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
  }
  return mac;
}

// An ARP request from nobody (sender address 0), so that no cache learns anything from it.
void send_probe(const Fd& fd, const Choice& choice) {
  const std::string interface = link_of(choice.interface);
  ether_arp probe{};
  probe.ea_hdr = {.ar_hrd = htons(ARPHRD_ETHER),
                  .ar_pro = htons(ETHERTYPE_IP),
                  .ar_hln = ETH_ALEN,
                  .ar_pln = 4,
                  .ar_op = htons(ARPOP_REQUEST)};
  const Mac mac = mac_of(fd, interface);
  std::ranges::copy(mac, std::begin(probe.arp_sha));
  std::copy_n(choice.address.bytes.begin(), 4, std::begin(probe.arp_tpa));
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(ETHERTYPE_ARP);
  to.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  to.sll_halen = ETH_ALEN;
  std::fill_n(std::begin(to.sll_addr), ETH_ALEN, std::uint8_t{0xff});
  static_cast<void>(::sendto(fd.get(), &probe, sizeof probe, 0,
                             static_cast<const sockaddr*>(static_cast<const void*>(&to)),
                             sizeof to));
}

using Replies = std::map<std::pair<std::string, Address>, std::set<Mac>>;

void take_reply(const Fd& fd, Replies& replies) {
  ether_arp arp{};
  sockaddr_ll from{};
  socklen_t size = sizeof from;
  const ssize_t got = ::recvfrom(fd.get(), &arp, sizeof arp, 0,
                                 static_cast<sockaddr*>(static_cast<void*>(&from)), &size);
  if (std::cmp_less(got, sizeof arp) || from.sll_pkttype == PACKET_OUTGOING) return;
  if (ntohs(arp.ea_hdr.ar_op) != ARPOP_REPLY || arp.ea_hdr.ar_hln != ETH_ALEN) return;
  std::array<char, IF_NAMESIZE> name{};
  if (::if_indextoname(static_cast<unsigned>(from.sll_ifindex), name.data()) == nullptr) return;
  Address address;
  std::copy_n(std::begin(arp.arp_spa), 4, address.bytes.begin());
  Mac mac{};
  std::copy_n(std::begin(arp.arp_sha), mac.size(), mac.begin());
  replies[{name.data(), address}].insert(mac);
}

Replies gather(const Fd& fd, const std::vector<Choice>& choices, Deadline deadline) {
  Replies replies;
  for (int round = 0; round < kRounds && !deadline.expired(); ++round) {
    for (const Choice& choice : choices) send_probe(fd, choice);
    const Deadline until = deadline.capped(kBetween);
    pollfd waiting{.fd = fd.get(), .events = POLLIN, .revents = 0};
    while (!until.expired() && ::poll(&waiting, 1, until.remaining_ms()) > 0) {
      take_reply(fd, replies);
    }
  }
  return replies;
}

}  // namespace

DuplicateAnswer find_duplicates(const DuplicateRequest& request, Deadline deadline) {
  const Fd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETHERTYPE_ARP)));
  if (!fd.valid()) return {unknown_because(errno_error("ask by ARP", "AF_PACKET"))};
  std::vector<Choice> choices;
  for (const Choice& choice : request.choices) {
    if (choice.address.v6 || choices.size() >= kMostChoices) continue;
    if (speaks_arp(fd, link_of(choice.interface))) choices.push_back(choice);
  }
  const OwnAddresses own = own_addresses();
  const Replies replies = gather(fd, choices, deadline);
  std::vector<DuplicateAddress> found;
  for (const Choice& choice : choices) {
    const std::pair key(link_of(choice.interface), choice.address);
    const auto answered = replies.find(key);
    if (answered == replies.end()) continue;
    const bool ours = own.all.contains(key);
    if (!ours && answered->second.size() < 2) continue;
    for (const Mac& mac : answered->second) {
      if (ours && own.macs.contains(mac)) continue;  // another port of this very node
      found.push_back({.node = {},
                       .interface = choice.interface,
                       .address = choice.address,
                       .other_mac = text_of(mac)});
    }
  }
  return {std::move(found)};
}

}  // namespace distdoctor::probe
