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

// Only `names` of the answer, beside those that are there: the second look, when settings named
// somebody new.
void take_names(const Observed<Answer>& answer, NodeFacts& node);

// Only what of the answer is about libraries: the second look, when the job's own are elsewhere.
void take_software(const Observed<Answer>& answer, NodeFacts& node);

// Every name that the job needs resolved, each once, literals left out.
std::vector<std::string> names_to_resolve(const JobSpec& job);
// Names of peers by which others may know them: of many peers only the first few, since each node
// starts a child for each name.
std::vector<std::string> peers_to_resolve(const JobSpec& job);

}  // namespace distdoctor::exam
