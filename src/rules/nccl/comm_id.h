// The address in NCCL_COMM_ID, `host:port` or `[v6]:port` (NCCL misc/socket.cc
// ncclSocketGetAddrFromString).
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/facts/names.h>
#include <distdoctor/observed.h>

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

struct CommId {
  Address address = {};    // the zone is the interface's name, as written
  std::string error = {};  // NCCL's own words; then there is no address
  bool operator==(const CommId&) const = default;
};

// The name that has to be resolved before the id can be read; "" for a literal or a malformed one.
std::string comm_id_host(std::string_view text);
// Unknown: the host is a name that was not resolved on this node.
Observed<CommId> read_comm_id(std::string_view text, const std::vector<Resolution>& names);

}  // namespace distdoctor::rules
