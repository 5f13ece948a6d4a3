#include "support/check_cases.h"

#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void name(World& w, std::size_t node, const std::string& hostname, const std::string& boot_id) {
  World::change(w.node(node).identity, [&](Identity& identity) {
    identity.hostname = hostname;
    identity.boot_id = boot_id;
  });
}

// Other cards than the builder's, which gives all nodes the same.
void own_cards(World& w) {
  for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) {
    for (const char* link : {"eth0", "eth1"}) {
      w.change_link(i, link, [&](Link& changed) { changed.mac += std::to_string(i); });
    }
  }
}

// Of one machine, whose kernel has one boot_id.
void contain(World& w, std::size_t node, const char* uts) {
  name(w, node, "gpu", "b");
  World::change(w.node(node).identity, [](Identity& identity) { identity.container = "docker"; });
  w.node(node).world = distdoctor::World{
      .namespaces = {{"uts", uts}, {"mnt", "mnt:[" + std::to_string(node) + "]"}}};
}

Verdict twins(Severity severity,
              std::string says,
              const std::string& boot0,
              const std::string& boot1) {
  const std::string rest =
      ", not a hostname of its own; hostname; cat "
      "/proc/sys/kernel/random/boot_id";
  return {.code = "env-same-hostname",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::hang,
          .says = std::move(says),
          .blamed = {"node0", "node1"},
          .evidence = {"node0 hostname, boot_id: gpu, " + boot0 + rest,
                       "node1 hostname, boot_id: gpu, " + boot1 + rest},
          .fixes = {"node0: hostname node0", "node1: hostname node1"}};
}

Verdict one_machine() {
  Verdict verdict =
      twins(blocker, "node0 and node1 are one machine, with the hostname gpu", "b", "b");
  verdict.fixes = {"*: (manual)"};
  return verdict;
}

Verdict host_id(Severity severity) {
  const std::string rest =
      " NCCL_HOSTID: one, not unset, or another on each node; printenv "
      "NCCL_HOSTID; grep NCCL_HOSTID ~/.nccl.conf /etc/nccl.conf";
  return {.code = "env-same-hostname",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = "NCCL_HOSTID=one on 4 nodes",
          .blamed = {"node0", "node1", "node2", "node3"},
          .evidence = {"node0" + rest, "node1" + rest, "node2" + rest, "node3" + rest},
          .fixes = {"*: NCCL_HOSTID unset"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"one hostname, another boot_id, and Gloo goes by the name",
     [](World& w) {
       own_cards(w);
       w.cluster.job.gloo = Use::yes;
       name(w, 0, "gpu", "a");
       name(w, 1, "gpu", "b");
     },
     {twins(degraded, "node0 and node1 have the hostname gpu", "a", "b")}},
    {"the same, and torchrun's c10d does",
     [](World& w) {
       own_cards(w);
       w.cluster.predicted.master->endpoint = true;
       name(w, 0, "gpu", "a");
       name(w, 1, "gpu", "b");
     },
     {twins(degraded, "node0 and node1 have the hostname gpu", "a", "b")}},
    {"the same, and nobody goes by it",
     [](World& w) {
       own_cards(w);
       name(w, 0, "gpu", "a");
       name(w, 1, "gpu", "b");
     },
     {twins(notice, "node0 and node1 have the hostname gpu", "a", "b")}},
    {"two boot_ids that nobody could read are not one",
     [](World& w) {
       own_cards(w);
       name(w, 0, "gpu", "");
       name(w, 1, "gpu", "");
     },
     {twins(notice, "node0 and node1 have the hostname gpu", "", "")},
     {"node0 identity.boot_id", "node1 identity.boot_id"}},
    {"one hostname and boot_id",
     [](World& w) {
       own_cards(w);
       name(w, 0, "gpu", "b");
       name(w, 1, "gpu", "b");
     },
     {twins(blocker, "NCCL takes them for one host", "b", "b")}},
    {"the same where nobody knows whether NCCL is used",
     [](World& w) {
       own_cards(w);
       w.cluster.job.nccl = Use::maybe;
       name(w, 0, "gpu", "b");
       name(w, 1, "gpu", "b");
     },
     {twins(notice, "have the hostname gpu", "b", "b")}},
    {"the same in a Gloo job",
     [](World& w) {
       own_cards(w);
       w.cluster.job.nccl = Use::no;
       w.cluster.job.gloo = Use::yes;
       name(w, 0, "gpu", "b");
       name(w, 1, "gpu", "b");
     },
     {twins(degraded, "have the hostname gpu", "b", "b")}},
    {"two names of one machine",
     [](World& w) {
       own_cards(w);
       name(w, 0, "gpu", "b");
       name(w, 1, "gpu", "b");
       w.node(1).links = w.node(0).links;
     },
     {one_machine()}},
    {"near miss: containers of one host have one boot_id and names of their own",
     [](World& w) {
       name(w, 0, "a", "b");
       name(w, 1, "c", "b");
     }},
    {"near miss: containers of one host that share its hostname, as NCCL needs it",
     [](World& w) {
       own_cards(w);
       contain(w, 0, "uts:[1]");
       contain(w, 1, "uts:[1]");
     }},
    {"containers of one host that were named alike",
     [](World& w) {
       own_cards(w);
       contain(w, 0, "uts:[1]");
       contain(w, 1, "uts:[2]");
     },
     {twins(notice, "node0 and node1 have the hostname gpu", "b", "b")}},
    {"near miss: one NCCL_HOSTID for containers of one host",
     [](World& w) {
       for (std::size_t i : {0U, 1U}) {
         contain(w, i, "uts:[1]");
         w.prediction(i).settings["NCCL_HOSTID"] = {"box", {.source = Source::process}};
       }
     }},
    {"near miss: NCCL_HOSTID tells them apart",
     [](World& w) {
       own_cards(w);
       for (std::size_t i : {0U, 1U}) {
         name(w, i, "gpu", "b");
         w.prediction(i).settings["NCCL_HOSTID"] = {std::to_string(i), {.source = Source::process}};
       }
     }},
    {"one NCCL_HOSTID for all", [](World& w) { w.set("NCCL_HOSTID", "one"); }, {host_id(blocker)}},
    {"one NCCL_HOSTID, and nobody knows whether NCCL is used",
     [](World& w) {
       w.set("NCCL_HOSTID", "one");
       w.cluster.job.nccl = Use::maybe;
     },
     {host_id(notice)}},
    {"near miss: NCCL_HOSTID of a login shell",
     [](World& w) { w.set("NCCL_HOSTID", "one", Source::environment); }},
    {"an unseen node is a gap",
     [](World& w) { w.node(1).identity = Unknown{.text = "no answer"}; },
     {},
     {"node1 identity"}},
};

TEST_CASE("env/same_hostname") {
  run_cases("env/same_hostname", cases);
}

}  // namespace
}  // namespace distdoctor::testing
