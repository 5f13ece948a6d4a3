// `distdoctor_tests agent`: a real agent whose collectors are told by DISTDOCTOR_ODD to misbehave,
// since tests start agents as distdoctor does: by running their own program once more.
#pragma once

namespace distdoctor::testing {

int run_odd_agent();

}  // namespace distdoctor::testing
