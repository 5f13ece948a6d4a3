// --dry-run: the test traffic that would be sent, a line each.
#pragma once

#include "probe/plan.h"

#include <ostream>

namespace distdoctor::exam {

void show_plan(const probe::ProbePlan& plan, std::ostream& out);

}  // namespace distdoctor::exam
