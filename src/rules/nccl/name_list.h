// NCCL's lists of names, `[^][=]name[:port],...`: NCCL_SOCKET_IFNAME, NCCL_IB_HCA,
// NCCL_OOB_NET_IFNAME (NCCL misc/utils.cc parseStringList, matchIfList; 2.8 to 2.30 alike).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

constexpr std::size_t kMostInterfaceNames = 16;  // MAX_IFS; of NCCL_IB_HCA it reads 32
constexpr int kAnyPort = -1;

struct NameElement {
  std::string name = {};  // at most 63 bytes; the rest is cut
  int port = kAnyPort;
  bool operator==(const NameElement&) const = default;
};

struct NameList {
  bool exclude = false;  // '^', only as the very first character
  bool exact = false;    // '=', only first or directly after '^'; else names are prefixes
  std::vector<NameElement> elements = {};
  bool operator==(const NameList&) const = default;

  // A list without elements matches everything, so its negation matches nothing.
  [[nodiscard]] bool takes(std::string_view name, int port = kAnyPort) const;
};

// The elements alone, with no meaning of '^' and '='.
std::vector<NameElement> parse_name_elements(std::string_view text, std::size_t most);
// Any text is a list: nothing is trimmed, empty elements are dropped, what follows the `most`-th
// element is dropped too.
NameList parse_name_list(std::string_view text, std::size_t most = kMostInterfaceNames);

}  // namespace distdoctor::rules
