// Which address Gloo takes as torch calls it (gloo transport/tcp/device.cc CreateDevice; torch
// csrc/distributed/c10d/init.cpp and ProcessGroupGloo.cpp createDefaultDevice; 1.13 tried).
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/facts/predicted.h>
#include <distdoctor/job.h>
#include <distdoctor/observed.h>

namespace distdoctor::rules {

// GLOO_SOCKET_IFNAME (of two characters at least) is a comma list of exact names, one device each;
// the state of the link does not matter. Else the first address that the own hostname resolves to
// and that can be bound here, 127.0.1.1 included; else loopback. Unknown where the links, or the
// resolution of the own hostname, were not seen.
Observed<GlooChoice> gloo_choice(const NodeFacts& node, const Settings& settings);

}  // namespace distdoctor::rules
