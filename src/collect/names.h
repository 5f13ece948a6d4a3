// Names through getent(1): our own program is static and cannot call the machine's resolver.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/observed.h>

#include "base/error.h"
#include "machine/child.h"

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

// "10.0.0.1       STREAM node0": each address once, in their order.
std::vector<Address> parse_ahosts(std::string_view text);
// Exit code 2 means that the source does not know the name. A missing getent, or one that does not
// know `ahosts` or `-s` (musl's), is unsupported.
Observed<std::vector<Address>> read_getent(const Result<machine::ChildOutput>& output);
// The addresses that a hosts(5) text gives to the name, each once, in its order.
std::vector<Address> parse_hosts(std::string_view text, std::string_view name);

}  // namespace distdoctor::collect
