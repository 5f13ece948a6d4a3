#include "checks/net/path_worlds.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void close(World& w, std::size_t from, std::size_t to, const Failing& how) {
  fail_data(w, from, to, how);
  try_outside(w, from, to, how);
}

Verdict dropped(Certainty certainty, const char* says, const std::string& seen) {
  return {
      .code = "net-one-way-dropped",
      .severity = blocker,
      .certainty = certainty,
      .symptom = Symptom::hang,
      .says = says,
      .blamed = {"node1"},
      .evidence = {dialled(0, 1, "timed out on 8 of 8 ephemeral ports (32768 to 60999)" + seen)},
      .fixes = {open_data(1, {0})}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"node1 drops all that node0 opens",
     [](World& w) { close(w, 0, 1, {}); },
     {dropped(
         proved,
         "node1 can connect to node0, but all that node0 opens to node1 is dropped by node1 itself",
         "; the first packet arrived there")}},
    {"nobody could watch", [](World& w) { close(w, 0, 1, {.seen = Seen::unwatched}); }, {[] {
       Verdict made = dropped(likely, "by a filter on node1, or on the way there", "");
       made.blamed = {"node1", "node0"};
       made.fixes.push_back("node1: (manual)");
       return made;
     }()}},
    {"lost between", [](World& w) { close(w, 0, 1, {.seen = Seen::left}); }, {[] {
       Verdict made = dropped(likely, "is dropped between node0 and node1",
                              "; the first packet did not arrive there");
       made.blamed = {"node1", "node0"};
       made.fixes = {"node1: (manual)"};
       return made;
     }()}},

    {"near miss: a port outside the range passes",
     [](World& w) {
       fail_data(w, 0, 1, {});
       try_outside(w, 0, 1, {});
     }},
    {"near miss: both directions",
     [](World& w) {
       close(w, 0, 1, {});
       close(w, 1, 0, {});
     }},
    {"near miss: MASTER_PORT at that address is dropped as well",
     [](World& w) {
       close(w, 1, 0, {});
       Dial master = good_dial(Purpose::master, fast(0), 29500, fast(1));
       fail_at(master, Outcome::timed_out, Seen::arrived);
       w.pair(1, 0).dials.push_back(master);
     }},
    {"near miss: rejected", [](World& w) { close(w, 0, 1, {.outcome = Outcome::refused}); }},
};

TEST_CASE("net/one_way") {
  run_cases("net/one_way", cases);
}

}  // namespace
}  // namespace distdoctor::testing
