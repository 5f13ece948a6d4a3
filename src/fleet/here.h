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

// By name alone with `name_only`; else also by what the name resolves to here, asked of getent in
// a child: a resolver that hangs costs the deadline and means "no". "user@host" is here only where
// that user is us.
bool is_here(std::string_view peer, bool name_only, Deadline deadline);

}  // namespace distdoctor::fleet
