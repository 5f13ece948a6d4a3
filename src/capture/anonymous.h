// A captured machine that may be shown to others: host names, domains, users, addresses, hardware
// addresses, GUIDs, UUIDs, serial numbers, and the words of command lines and of people's folders
// have stand-ins, in texts and file names too; equal stays equal.
#pragma once

#include "capture/scramble.h"
#include "machine/captured.h"

#include <string_view>

namespace distdoctor::capture {

// Captures of several nodes fit together when they were made with the same word, which is to be
// kept secret: who has it can try names. What checks judge stays: names of links, devices, chains,
// libraries and programs, versions, numbers, times, and the lines of the kernel that checks know.
// A name that the machine lists nowhere (stand_ins.h) and that stands alone in a text stays, too.
machine::CapturedMachine anonymous(machine::CapturedMachine captured, std::string_view word);

}  // namespace distdoctor::capture
