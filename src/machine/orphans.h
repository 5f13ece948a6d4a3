// What children of ours leave behind: a program that daemonizes outlives its session's end.
#pragma once

#include "base/deadline.h"

namespace distdoctor::machine {

// From now on an orphan below us becomes our child (prctl(2), PR_SET_CHILD_SUBREAPER; not passed
// on by fork). Not where we have children already: whoever started us made them, and theirs.
void adopt_orphans();

// Starts no child any more, and kills those that there are, the adopted ones and whatever they
// leave to us in turn; without adopt_orphans() none. Returns when none is left, or at the deadline.
// For a process that ends: a thread that waits for a child may find it gone.
void end_children(Deadline deadline);

}  // namespace distdoctor::machine
