#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// Two of the four nodes are containers of one machine, each with a GPU.
void contain(World& w, std::size_t i) {
  NodeFacts& node = w.node(i);
  World::change(node.identity, [](Identity& me) {
    me.container = "docker";
    me.boot_id = "boot-x";
  });
  node.devices = Devices{.gpus = {"/dev/nvidia0"}};
  const std::string own = std::to_string(i);
  node.world = distdoctor::World{
      .namespaces = {{"mnt", "mnt:[402653300" + own + "]"}, {"uts", "uts:[402653400" + own + "]"}},
      .shm_device = "0:5" + own};
}
void two(World& w) {
  contain(w, 1);
  contain(w, 2);
}
void share(World& w, const char* name) {
  World::change(w.node(2).world, [&](distdoctor::World& world) {
    world.namespaces[name] = w.node(1).world->namespaces.at(name);
  });
}

void share_shm(World& w) {
  World::change(w.node(2).world,
                [&](distdoctor::World& world) { world.shm_device = w.node(1).world->shm_device; });
}
void share_name(World& w) {
  share(w, "uts");
  World::change(w.node(2).identity, [](Identity& me) { me.hostname = "node1"; });
}

std::string row(const char* node, const char* hostname, const char* shm) {
  return std::string(node) + " its host, to NCCL: hostname " + hostname +
         ", boot_id boot-x, /dev/shm on device " + shm +
         ", not one for all on this machine; hostname; cat /proc/sys/kernel/random/boot_id; stat "
         "-c %d /dev/shm";
}
Verdict apart(Severity severity, const char* second_name) {
  return {.code = "host-containers-apart",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::slow,
          .says = "node1, node2 are containers of one machine that NCCL takes for several",
          .blamed = {"node1", "node2"},
          .evidence = {row("node1", "node1", "0:51"), row("node2", second_name, "0:52")},
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a hostname and a /dev/shm each", two, {apart(degraded, "node2")}},
    {"one hostname, but two /dev/shm",
     [](World& w) {
       two(w);
       share_name(w);
     },
     {apart(degraded, "node1")}},
    {"two that are joined, and a third: whoever comes first",
     [](World& w) {
       two(w);
       share_name(w);
       share_shm(w);
       contain(w, 3);
     },
     {[] {
       Verdict verdict = apart(degraded, "node1");
       verdict.says = "node1, node2, node3 are containers of one machine that NCCL takes for";
       verdict.blamed.emplace_back("node3");
       verdict.evidence = {row("node1", "node1", "0:51"), row("node2", "node1", "0:51"),
                           row("node3", "node3", "0:53")};
       return verdict;
     }()}},
    {"NCCL_HOSTID makes them one host, but not one /dev/shm",
     [](World& w) {
       two(w);
       w.set("NCCL_HOSTID", "box1");
     },
     {[] {
       Verdict verdict = apart(degraded, "node2");
       for (const char* node : {"1", "2"}) {
         verdict.evidence.push_back(std::string("node") + node +
                                    " its host, to NCCL: NCCL_HOSTID box1, /dev/shm on device 0:5" +
                                    node +
                                    ", not one for all on this machine; hostname; cat "
                                    "/proc/sys/kernel/random/boot_id; stat -c %d /dev/shm");
       }
       verdict.evidence.erase(verdict.evidence.begin(), verdict.evidence.begin() + 2);
       return verdict;
     }()}},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       two(w);
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {apart(notice, "node2")}},
    {"near miss: joined",
     [](World& w) {
       two(w);
       share_name(w);
       share_shm(w);
     }},
    {"near miss: one name, and no mount that tells of /dev/shm",
     [](World& w) {
       two(w);
       share_name(w);
       World::change(w.node(2).world, [](distdoctor::World& world) { world.shm_device.clear(); });
     }},
    {"near miss: copies of one virtual machine",
     [](World& w) {
       two(w);
       for (const char* name : {"mnt", "uts"}) share(w, name);
       share_shm(w);
     }},
    {"near miss: NCCL_HOSTID joins them",
     [](World& w) {
       two(w);
       share_shm(w);
       w.set("NCCL_HOSTID", "box1");
     }},
    {"near miss: a NCCL_HOSTID each, which is meant",
     [](World& w) {
       two(w);
       for (const std::size_t i : {1U, 2U}) {
         w.prediction(i).settings["NCCL_HOSTID"] = {.value = std::to_string(i)};
       }
     }},
    {"near miss: no GPUs",
     [](World& w) {
       two(w);
       w.node(2).devices = Devices{};
     }},
    {"near miss: no containers",
     [](World& w) {
       two(w);
       World::change(w.node(2).identity, [](Identity& me) { me.container = ""; });
     }},
    {"near miss: two machines",
     [](World& w) {
       two(w);
       World::change(w.node(2).identity, [](Identity& me) { me.boot_id = "boot-y"; });
     }},
    {"near miss: no NCCL",
     [](World& w) {
       two(w);
       w.cluster.job.nccl = Use::no;
     }},
    {"unseen is a gap",
     [](World& w) { w.node(1).world = Unknown{.kind = Why::timed_out, .text = "late"}; },
     {},
     {"node1 world"}},
};

TEST_CASE("host/containers_apart") {
  run_cases("host/containers_apart", cases);
}

}  // namespace
}  // namespace distdoctor::testing
