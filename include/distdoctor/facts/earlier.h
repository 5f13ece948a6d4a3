// Counters that only grow, as an earlier look at the same boot of a node saved them: `check
// --since`.
#pragma once

#include <distdoctor/enum_names.h>

#include <cstdint>
#include <map>
#include <string>

namespace distdoctor {

struct EarlierCounters {
  double ago_s = 0;  // before this look
  // Times that a link went down: of RDMA ports by "mlx5_0/1", of network interfaces by name.
  std::map<std::string, std::int64_t> link_downed = {};
  std::map<std::string, std::int64_t> carrier_downs = {};
  bool operator==(const EarlierCounters&) const = default;
};

template <class V, Is<EarlierCounters> T>
void fields(V& v, T& x) {
  v("ago_s", x.ago_s);
  v("link_downed", x.link_downed);
  v("carrier_downs", x.carrier_downs);
}

}  // namespace distdoctor
