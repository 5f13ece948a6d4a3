#include "checks/net/route_worlds.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void connections(World& w, std::int64_t count, std::int64_t most) {
  World::change(w.node(0).kernel, [&](KernelNet& kernel) {
    kernel.conntrack_count = count;
    kernel.conntrack_max = most;
  });
}
void neighbours(World& w, std::int64_t count, std::int64_t most) {
  World::change(w.node(0).kernel, [&](KernelNet& kernel) {
    kernel.neighbours = count;
    kernel.neighbours_max = most;
  });
}

// node0's partners: by what they announce and from where they dialled.
std::string more_room(const std::vector<std::string>& peers) {
  std::string text =
      "sysctl -w net.netfilter.nf_conntrack_max=262144\n"
      "if [ \"$(sysctl -n net.netfilter.nf_conntrack_max)\" -lt 262144 ]; then  # a container\n"
      "  nft add table inet untracked\n"
      "  nft add chain inet untracked in '{ type filter hook prerouting priority -300; }'\n"
      "  nft add chain inet untracked out '{ type filter hook output priority -300; }'\n"
      "  nft add rule inet untracked in iif lo notrack\n"
      "  nft add rule inet untracked out oif lo notrack\n";
  for (const std::string& peer : peers) {
    text += "  nft add rule inet untracked in ip saddr " + peer +
            " notrack\n  nft add rule inet untracked out ip daddr " + peer + " notrack\n";
  }
  return text + "fi";
}

Verdict conntrack(Severity severity,
                  Certainty certainty,
                  const char* says,
                  const std::string& seen) {
  return {.code = "net-conntrack-full",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = {"node0"},
          .evidence = {"node0 net.netfilter.nf_conntrack_count: " + seen +
                       ", not room for new connections; sysctl "
                       "net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max"},
          .fixes = {"node0: " + more_room({"10.20.0.11", "10.20.0.12", "10.20.0.13", "10.10.0.11",
                                           "10.10.0.12", "10.10.0.13"})}};
}
Verdict neighbour(Severity severity,
                  Certainty certainty,
                  const char* says,
                  const std::string& seen) {
  return {.code = "net-neighbour-table-full",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = {"node0"},
          .evidence = {"node0 net.ipv4.neigh.gc_thresh3: " + seen +
                       ", not room for every host of the subnet; ip -s neigh "
                       "| wc -l; sysctl net.ipv4.neigh.default.gc_thresh3"},
          .fixes = {"node0: sysctl -w net.ipv4.neigh.default.gc_thresh3=8192 "
                    "net.ipv4.neigh.default.gc_thresh2=4096"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"no room for connections, and dials are not answered",
     [](World& w) {
       connections(w, 65536, 65536);
       unanswered(w, 1, 0);
     },
     {conntrack(blocker,
                proved,
                "the connection tracking table of node0 is full (65536 of 65536): new connections "
                "are dropped",
                "65536 of 65536")}},
    {"no room, and nothing fails yet",
     [](World& w) { connections(w, 65000, 65536); },
     {conntrack(notice, likely, "is full (65000 of 65536)", "65000 of 65536")}},
    {"no room, and nobody was reached: names lead to the peers",
     [](World& w) {
       connections(w, 65536, 65536);
       w.cluster.pairs.clear();
       w.cluster.predicted = {};
     },
     {[] {
       Verdict made = conntrack(notice, likely, "is full (65536 of 65536)", "65536 of 65536");
       made.fixes = {"node0: " + more_room({"10.10.0.11", "10.10.0.12", "10.10.0.13"})};
       return made;
     }()}},
    {"no room for neighbours",
     [](World& w) {
       neighbours(w, 1024, 1024);
       each_dial(w, 0, 1, [](Dial& dial) { fail(dial, Outcome::host_unreachable, false, false); });
     },
     {neighbour(blocker,
                proved,
                "the neighbour table of node0 is full (1024 of 1024): it cannot find",
                "1024 of 1024")}},
    {"the kernel says so at a dial",
     [](World& w) { at_once(w, 0, 1, Outcome::local_error, {"ENOBUFS", ""}); },
     {neighbour(blocker, proved, "is full (no room within 1024)", "no room within 1024")}},
    {"no room for neighbours, and nothing fails yet",
     [](World& w) { neighbours(w, 1020, 1024); },
     {neighbour(notice, likely, "is full (1020 of 1024)", "1020 of 1024")}},
    {"what was not read is a gap",
     [](World& w) { w.node(2).kernel = Unknown{.kind = Why::denied}; },
     {},
     {"node2 net.kernel"}},

    {"near miss: small tables with room, and one that nobody uses",
     [](World& w) {
       connections(w, 1, 64);
       neighbours(w, 0, 50);
       World::change(w.node(1).kernel, [](KernelNet& kernel) {
         kernel.conntrack_count = 0;
         kernel.conntrack_max = 0;
       });
       unanswered(w, 1, 0);
     }},
    {"near miss: some room",
     [](World& w) {
       connections(w, 60000, 65536);
       neighbours(w, 900, 1024);
       unanswered(w, 1, 0);
     }},
};

TEST_CASE("net/table_full") {
  run_cases("net/table_full", cases);
}

}  // namespace
}  // namespace distdoctor::testing
