// The TCP sockets of one network namespace, as rows.
#pragma once

#include "machine/captured.h"

#include <vector>

namespace distdoctor::machine {

struct Sockets {
  std::vector<SocketRow> rows = {};
  bool truncated = false;  // connections were left out
};

}  // namespace distdoctor::machine
