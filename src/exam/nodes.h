// What the channels tell of the nodes, as facts.
#pragma once

#include <distdoctor/facts.h>

#include "fleet/fleet.h"

#include <string>
#include <vector>

namespace distdoctor::exam {

// One NodeFacts a peer, in order, with what its channel says; nothing is collected yet.
std::vector<NodeFacts> nodes_of(const std::vector<fleet::PeerState>& peers);

// Overwrites what the collectors read and keeps what the channel said.
void take_collected(const Observed<Answer>& answer, NodeFacts& node);

// Only `names` of the answer: the second look, when settings named somebody new.
void take_names(const Observed<Answer>& answer, NodeFacts& node);

// Every name that the job and its peers need resolved, each once, literals left out.
std::vector<std::string> names_to_resolve(const JobSpec& job);

}  // namespace distdoctor::exam
