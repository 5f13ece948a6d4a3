// Whether a peer is this machine, so that no launcher is needed.
#pragma once

#include <distdoctor/address.h>

#include "base/deadline.h"

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::fleet {

std::string own_hostname();  // uname(2) nodename
std::vector<Address> own_addresses();

struct Place {
  bool here = false;
  std::string misled = {};  // its name leads here though another peer is this machine: where to
};

// By name alone with `name_only`; else also by what the name resolves to here, asked of getent in
// a child: a resolver that hangs costs the deadline and means "no". "user@host" is here only where
// that user is us. `peers`: all of them, itself too. Of two machines with one hostname the one
// whose address is ours is here.
Place place_of(std::string_view peer,
               const std::vector<std::string>& peers,
               bool name_only,
               Deadline deadline);

}  // namespace distdoctor::fleet
