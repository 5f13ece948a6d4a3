#include "support/check_cases.h"
#include "support/hcas.h"

#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void set_container(World& w, const std::string& container) {
  World::change(w.node(1).identity, [&](Identity& identity) { identity.container = container; });
}
void take_nodes(World& w, bool there) {
  change_rdma(w, 1, [&](Rdma& rdma) {
    for (RdmaDevice& device : rdma.devices) {
      device.uverbs_there = there;
      device.uverbs_usable = false;
    }
  });
}
void in_docker(World& w) {
  give_infiniband(w);
  take_nodes(w, false);
  set_container(w, "docker");
}
void others_without(World& w) {
  for (const std::size_t i : {0U, 2U, 3U}) {
    change_rdma(w, i, [](Rdma& rdma) { rdma.devices.clear(); });
  }
}
void without_provider(World& w) {
  give_infiniband(w);
  change_rdma(w, 1, [](Rdma& rdma) { rdma.providers = {"rxe"}; });
}

Verdict unusable(Severity severity,
                 Certainty certainty,
                 const std::string& why,
                 const std::string& fix,
                 const std::string& devices = "mlx5_0, mlx5_1") {
  return {.code = "rdma-no-userland-device",
          .severity = severity,
          .certainty = certainty,
          .symptom = severity == blocker ? Symptom::hang : Symptom::slow,
          .says = "node1 has " + devices + ", which programs there cannot use: " + why,
          .blamed = {"node1"},
          .evidence = {"node1 rdma." + devices.substr(0, devices.find(',')) + ": " + why +
                       ", not to be opened by libibverbs; ls -l /dev/infiniband; ibv_devinfo -d " +
                       devices.substr(0, devices.find(','))},
          .fixes = {"node1: " + fix}};
}

// What libibverbs did with mlx5_0 and mlx5_1 of node1.
void asked(World& w, const std::string& error, int code = 0) {
  Verbs verbs{.library = "/usr/lib/libibverbs.so.1"};
  for (const char* name : {"mlx5_0", "mlx5_1"}) {
    verbs.devices.push_back({.name = name, .error = error, .error_code = code});
  }
  w.node(1).verbs = verbs;
}
void exclusive(World& w) {
  change_rdma(w, 1, [](Rdma& rdma) { rdma.namespace_mode = "exclusive"; });
}
Verdict tried(const std::string& words, const std::string& fix, const std::string& why = "") {
  Verdict verdict = unusable(blocker, proved, "libibverbs says " + words + why, fix);
  verdict.evidence = {"node1 verbs.mlx5_0: " + words + ", not to be opened; ibv_devinfo -d mlx5_0"};
  return verdict;
}

const std::string kRefused = "/dev/infiniband/uverbs0 is there, but may not be opened";
const std::string kAbsent = "/dev/infiniband/uverbs0 is not there";

const std::vector<CheckCase> cases = {
    {"healthy: no RDMA", [](World&) {}},
    {"near miss: no port is up",
     [](World& w) {
       give_infiniband(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         for (const char* name : {"mlx5_0", "mlx5_1"}) {
           change_hca(w, i, name, [](RdmaDevice&, RdmaPort& port) { port.state = "DOWN"; });
         }
       }
     },
     {},
     {},
     "NCCL would use none of them"},
    {"healthy: opened",
     [](World& w) {
       give_infiniband(w);
       asked(w, "");
     }},
    {"near miss: a provider that we did not find, and libibverbs did",
     [](World& w) {
       without_provider(w);
       asked(w, "");
     }},
    {"nothing to be seen from afar, and a device cgroup: no chmod helps",
     [](World& w) {
       give_infiniband(w);
       asked(w, "ibv_open_device: EPERM", EPERM);
     },
     {tried("ibv_open_device: EPERM", "(manual)", ": a device control group (cgroup) forbids it")}},
    {"EPERM where devices belong to one network namespace each",
     [](World& w) {
       give_infiniband(w);
       exclusive(w);
       asked(w, "ibv_open_device: EPERM", EPERM);
     },
     {tried("ibv_open_device: EPERM",
            "(manual)",
            ": a device control group (cgroup) forbids it, or the device belongs to another "
            "network namespace (RDMA's mode is exclusive)")}},
    {"the file's mode",
     [](World& w) {
       give_infiniband(w);
       asked(w, "ibv_open_device: EACCES", EACCES);
     },
     {tried("ibv_open_device: EACCES",
            "chmod 0666 /dev/infiniband/uverbs0",
            ": its file mode or a security module forbids it")}},
    {"the RDMA control group, in a container too",
     [](World& w) {
       give_infiniband(w);
       set_container(w, "docker");
       asked(w, "ibv_open_device: EAGAIN", EAGAIN);
     },
     {tried("ibv_open_device: EAGAIN",
            "(manual)",
            ": the RDMA control group (cgroup) has no handle left")}},
    {"sysfs of the host, and libibverbs lists nothing: another network namespace",
     [](World& w) {
       give_infiniband(w);
       exclusive(w);
       World::change(w.node(1).identity,
                     [](Identity& identity) { identity.os = "Ubuntu 22.04.4 LTS"; });
       w.node(1).verbs = Verbs{.library = "/usr/lib/libibverbs.so.1"};
     },
     {tried("libibverbs does not list it", "(manual)", ": it is in another network namespace")}},
    {"the same where namespaces share the devices: no provider",
     [](World& w) {
       give_infiniband(w);
       w.node(1).verbs = Verbs{.library = "/usr/lib/libibverbs.so.1"};
     },
     {tried("libibverbs does not list it", "(manual)")}},
    {"libibverbs knows no driver for it",
     [](World& w) {
       give_infiniband(w);
       w.node(1).verbs =
           Verbs{.library = "/usr/lib/libibverbs.so.1", .warnings = {"no driver for uverbs0"}};
     },
     {tried("no driver for uverbs0", "(manual)")}},
    {"libibverbs does not load",
     [](World& w) {
       give_infiniband(w);
       w.node(1).verbs = Verbs{.error = "libnl-3.so.200: not found"};
     },
     {tried("libnl-3.so.200: not found", "(manual)")}},
    {"healthy: usable", give_infiniband},
    {"Docker without --device", in_docker, {unusable(blocker, proved, kAbsent, "(manual)")}},
    {"Kubernetes",
     [](World& w) {
       in_docker(w);
       set_container(w, "kubernetes");
     },
     {unusable(blocker, proved, kAbsent, "(manual)")}},
    {"a host whose module made no node",
     [](World& w) {
       give_infiniband(w);
       take_nodes(w, false);
     },
     {unusable(blocker,
               proved,
               kAbsent,
               "modprobe ib_uverbs && udevadm trigger --subsystem-match=infiniband_verbs")}},
    {"the module is not loaded at all",
     [](World& w) {
       give_infiniband(w);
       change_rdma(w, 1, [](Rdma& rdma) {
         rdma.devices.resize(1);
         rdma.devices[0].uverbs.clear();
         rdma.devices[0].uverbs_there = rdma.devices[0].uverbs_usable = false;
       });
     },
     {unusable(blocker,
               proved,
               "the module ib_uverbs has made no device node",
               "modprobe ib_uverbs && udevadm trigger --subsystem-match=infiniband_verbs",
               "mlx5_0")}},
    {"file mode",
     [](World& w) {
       give_infiniband(w);
       take_nodes(w, true);
     },
     {unusable(blocker, proved, kRefused, "chmod 0666 /dev/infiniband/uverbs0")}},
    {"a container that has the node, and may not open it",
     [](World& w) {
       in_docker(w);
       take_nodes(w, true);
     },
     {unusable(blocker, proved, kRefused, "(manual)")}},
    {"no libibverbs, on Ubuntu",
     [](World& w) {
       give_infiniband(w);
       World::change(w.node(1).identity,
                     [](Identity& identity) { identity.os = "Ubuntu 22.04.4 LTS"; });
       change_rdma(w, 1, [](Rdma& rdma) { rdma.libibverbs.clear(); });
     },
     {unusable(blocker,
               likely,
               "there is no libibverbs.so.1",
               "apt-get install -y libibverbs1 ibverbs-providers")}},
    {"no provider",
     without_provider,
     {unusable(blocker, likely, "libibverbs has no provider mlx5", "(manual)")}},
    {"near miss: a driver whose provider we do not know",
     [](World& w) {
       without_provider(w);
       change_rdma(w, 1, [](Rdma& rdma) {
         for (RdmaDevice& device : rdma.devices) device.driver = "newer_core";
       });
     }},
    {"one device of two",
     [](World& w) {
       give_infiniband(w);
       change_hca(w, 1, "mlx5_1",
                  [](RdmaDevice& device, RdmaPort&) { device.uverbs_usable = false; });
     },
     {unusable(degraded,
               proved,
               "/dev/infiniband/uverbs1 is there, but may not be opened",
               "chmod 0666 /dev/infiniband/uverbs1",
               "mlx5_1")}},
    {"an ssh login is not the job's world",
     [](World& w) {
       in_docker(w);
       others_without(w);
       w.node(1).context = Context::ssh;
     },
     {unusable(notice, proved, kAbsent, "(manual)")}},
    {"nobody else uses RDMA either: slow",
     [](World& w) {
       in_docker(w);
       others_without(w);
     },
     {unusable(degraded, proved, kAbsent, "(manual)")}},
    {"a cloud machine's 25 Gb/s port is a notice",
     [](World& w) {
       give_roce(w);
       others_without(w);
       for (const char* name : {"mlx5_0", "mlx5_1"}) {
         change_hca(w, 1, name, [](RdmaDevice&, RdmaPort& port) { port.rate_gbps = 25; });
       }
       take_nodes(w, false);
       set_container(w, "docker");
     },
     {unusable(notice, proved, kAbsent, "(manual)")}},
    {"one node alone needs no network",
     [](World& w) {
       in_docker(w);
       w.cluster.nodes.erase(w.cluster.nodes.begin());
       w.cluster.nodes.resize(1);
     },
     {unusable(notice, proved, kAbsent, "(manual)")}},
    {"near miss: the port is down",
     [](World& w) {
       in_docker(w);
       for (const char* name : {"mlx5_0", "mlx5_1"}) {
         change_hca(w, 1, name, [](RdmaDevice&, RdmaPort& port) { port.state = "DOWN"; });
       }
     }},
    {"near miss: NCCL_IB_HCA leaves it out",
     [](World& w) {
       in_docker(w);
       set_and_predict(w, "NCCL_IB_HCA", "^mlx5");
     },
     {},
     {},
     "NCCL would use none of them"},
    {"near miss: NCCL_IB_DISABLE",
     [](World& w) {
       in_docker(w);
       set_and_predict(w, "NCCL_IB_DISABLE", "1");
     },
     {},
     {},
     "NCCL would use none of them"},
    {"near miss: Gloo knows no RDMA",
     [](World& w) {
       in_docker(w);
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
    {"near miss: EFA has a library of its own",
     [](World& w) {
       in_docker(w);
       for (const char* name : {"mlx5_0", "mlx5_1"}) {
         change_hca(w, 1, name, [](RdmaDevice& device, RdmaPort& port) {
           device.driver = "efa";
           port.layer = RdmaLayer::other;
         });
       }
     }},
    {"unseen is a gap",
     [](World& w) { w.node(1).rdma = Unknown{.kind = Why::denied, .text = "/sys: EACCES"}; },
     {},
     {"node1 rdma"}},
};

TEST_CASE("rdma/userland_device") {
  run_cases("rdma/userland_device", cases);
}

}  // namespace
}  // namespace distdoctor::testing
