// A captured machine that may be shown to others: host names, domains, users, addresses, hardware
// addresses, GUIDs and UUIDs have stand-ins, in texts and file names too; equal stays equal.
#pragma once

#include "machine/captured.h"

#include <string_view>

namespace distdoctor::capture {

// Captures of several nodes fit together when they were made with the same word. Names of links,
// devices and programs stay, as do numbers and times. It knows the names that the machine itself
// lists (its own, /etc/hosts, resolv.conf, /etc/passwd, node lists, what was looked up): one that
// stands in a free text alone stays.
machine::CapturedMachine anonymous(machine::CapturedMachine captured, std::string_view word);

}  // namespace distdoctor::capture
