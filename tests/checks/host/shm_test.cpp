#include "support/check_cases.h"

#include <cstdint>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr std::int64_t kMiB = 1 << 20;
constexpr const char* kLook = "; df -B1 /dev/shm; findmnt /dev/shm; ls -la /dev/shm";

void resize(World& w, std::int64_t size, std::int64_t free) {
  World::change(w.node(1).shm, [&](SharedMemory& shm) {
    shm.size = size;
    shm.free = free;
  });
}

void set_version(World& w, const std::string& version) {
  World::change(w.node(1).nccl_library, [&](NcclLibrary& nccl) { nccl.version = version; });
}

Verdict about(const std::string& code, Severity severity, const std::string& says) {
  return {.code = code,
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = says,
          .blamed = {"node1"}};
}

Verdict small(Severity severity,
              const std::string& says,
              const std::string& has,
              const std::string& wants,
              const std::string& fix = "node1: mount -o remount,size=1G /dev/shm") {
  Verdict verdict = about("host-shm-small", severity, says);
  verdict.evidence = {"node1 /dev/shm size: " + has + ", not at least " + wants + kLook};
  verdict.fixes = {fix};
  return verdict;
}

Verdict full(Severity severity,
             const std::string& has,
             const std::string& wants,
             const std::string& size) {
  Verdict verdict = about("host-shm-full", severity, "has " + has + " left");
  verdict.evidence = {"node1 /dev/shm free: " + has + ", not at least " + wants + kLook};
  verdict.fixes = {"node1: mount -o remount,size=" + size + " /dev/shm"};
  return verdict;
}

Verdict read_only(const std::string& fix) {
  Verdict verdict = about("host-shm-read-only", blocker, "mounted read-only");
  verdict.evidence = {std::string("node1 /dev/shm: read-only, not writable") + kLook};
  verdict.fixes = {fix};
  return verdict;
}

Verdict stale(Severity severity,
              const std::string& says,
              const std::string& seen,
              const std::string& rm) {
  Verdict verdict = about("host-shm-stale", severity, says);
  verdict.evidence = {"node1 /dev/shm/nccl-*: " + seen +
                      ", not none; ls -la /dev/shm; grep -l /dev/shm/nccl- /proc/[0-9]*/maps"};
  verdict.fixes = {"node1: " + rm};
  return verdict;
}

void add_segment(World& w, const std::string& name, double age_s, std::vector<int> mapped_by = {}) {
  World::change(w.node(1).shm, [&](SharedMemory& shm) {
    shm.nccl_segments.push_back(
        {.name = name, .bytes = 10 * kMiB, .age_s = age_s, .uid = 1000, .mapped_by = mapped_by});
  });
}

// Docker's default of 64 MiB.
void in_docker(World& w) {
  resize(w, 64 * kMiB, 64 * kMiB);
  World::change(w.node(1).identity, [](Identity& identity) { identity.container = "docker"; });
  w.cluster.job.ranks_per_node = 2;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"two processes of NCCL 2.28 in Docker's 64 MiB",
     in_docker,
     {small(blocker,
            "node1 holds 64.0 MiB, but 2 processes of NCCL 2.28.9 need at least 65.3 MiB",
            "64.0 MiB",
            "65.3 MiB, better 1 GiB",
            "node1: (manual)")}},
    {"the same on two nodes is one finding, and another on a third",
     [](World& w) {
       in_docker(w);
       w.node(2).shm = w.node(1).shm;
       w.node(2).identity = w.node(1).identity;
       w.node(3).shm = SharedMemory{.filesystem = "tmpfs", .size = 32 * kMiB, .free = 32 * kMiB};
     },
     {[] {
        Verdict both = small(blocker, "/dev/shm of node1, node2 holds 64.0 MiB, but 2 processes",
                             "64.0 MiB", "65.3 MiB, better 1 GiB", "node1: (manual)");
        both.blamed.emplace_back("node2");
        both.evidence.push_back(
            std::string("node2 /dev/shm size: 64.0 MiB, not at least 65.3 MiB, better 1 GiB") +
            kLook);
        both.fixes.emplace_back("node2: (manual)");
        return both;
      }(),
      [] {
        Verdict third = about("host-shm-small", blocker, "/dev/shm of node3 holds 32.0 MiB");
        third.blamed = {"node3"};
        third.evidence = {
            std::string("node3 /dev/shm size: 32.0 MiB, not at least 65.3 MiB, better 1 GiB") +
            kLook};
        third.fixes = {"node3: mount -o remount,size=1G /dev/shm"};
        return third;
      }()}},
    {"near miss: a tmpfs without a limit counts no blocks",
     [](World& w) {
       resize(w, 0, 0);
       w.cluster.job.ranks_per_node = 8;
     }},
    {"no mount of its own: a remount would fail",
     [](World& w) {
       resize(w, 16 * kMiB, 16 * kMiB);
       World::change(w.node(1).shm, [](SharedMemory& shm) { shm.filesystem = ""; });
     },
     {small(blocker,
            "but one process of NCCL 2.28.9 needs at least 32.6 MiB",
            "16.0 MiB",
            "32.6 MiB, better 1 GiB",
            "node1: mount -t tmpfs -o mode=1777,size=1G tmpfs /dev/shm")}},
    {"near miss: two processes of NCCL 2.27 fit",
     [](World& w) {
       in_docker(w);
       set_version(w, "2.27.3");
     }},
    {"near miss: one process fits",
     [](World& w) {
       in_docker(w);
       w.cluster.job.ranks_per_node = 1;
     }},
    {"near miss: how many processes is not known",
     [](World& w) {
       in_docker(w);
       w.cluster.job.ranks_per_node = std::nullopt;
     }},
    {"not even one pool fits, however many processes",
     [](World& w) { resize(w, 16 * kMiB, 16 * kMiB); },
     {small(blocker,
            "but one process of NCCL 2.28.9 needs at least 32.6 MiB",
            "16.0 MiB",
            "32.6 MiB, better 1 GiB")}},
    {"an old NCCL needs less: near miss",
     [](World& w) {
       resize(w, 16 * kMiB, 16 * kMiB);
       set_version(w, "2.23.4");
     }},
    {"an unknown version counts as the most modest: near miss",
     [](World& w) {
       resize(w, 16 * kMiB, 16 * kMiB);
       w.node(1).nccl_library = Unknown{.text = "no library"};
     }},
    {"an unknown version, and 32 processes",
     [](World& w) {
       resize(w, 64 * kMiB, 64 * kMiB);
       w.node(1).nccl_library = Unknown{.text = "no library"};
       w.cluster.job.ranks_per_node = 32;
     },
     {small(blocker,
            "but 32 processes need at least 128.0 MiB",
            "64.0 MiB",
            "128.0 MiB, better 1 GiB")}},
    {"many processes get a size to match",
     [](World& w) {
       resize(w, 64 * kMiB, 64 * kMiB);
       w.cluster.job.ranks_per_node = 64;
     },
     {small(blocker,
            "64 processes",
            "64.0 MiB",
            "2088.0 MiB, better 5 GiB",
            "node1: mount -o remount,size=5G /dev/shm")}},
    {"an ssh login is not the job's world",
     [](World& w) {
       resize(w, kMiB, kMiB);
       w.node(1).context = Context::ssh;
     },
     {small(notice, "node1 holds 1.0 MiB", "1.0 MiB", "32.6 MiB, better 1 GiB")}},
    {"nobody knows whether NCCL is used",
     [](World& w) {
       resize(w, kMiB, kMiB);
       w.cluster.job.nccl = Use::maybe;
     },
     {small(notice, "node1 holds 1.0 MiB", "1.0 MiB", "32.6 MiB, better 1 GiB")}},
    {"near miss: Gloo does without",
     [](World& w) {
       resize(w, kMiB, 0);
       w.cluster.job.nccl = Use::no;
     }},
    {"near miss: one node alone may do without pools",
     [](World& w) {
       resize(w, kMiB, kMiB);
       w.cluster.nodes.erase(w.cluster.nodes.begin());
       w.cluster.nodes.resize(1);
     }},
    {"Kubernetes is mended in the pod",
     [](World& w) {
       in_docker(w);
       World::change(w.node(1).identity,
                     [](Identity& identity) { identity.container = "kubernetes"; });
     },
     {small(blocker, "2 processes", "64.0 MiB", "65.3 MiB, better 1 GiB", "node1: (manual)")}},
    {"full of something else",
     [](World& w) { resize(w, 512 * kMiB, 8 * kMiB); },
     {full(blocker, "8.0 MiB", "32.6 MiB", "2G")}},
    {"near miss: full of the running job's own segments",
     [](World& w) {
       resize(w, 512 * kMiB, 8 * kMiB);
       w.node(1).processes = std::vector<TrainingProcess>{{.pid = 7, .role = ProcessRole::worker}};
     }},
    {"near miss: nobody saw whether a job runs",
     [](World& w) {
       resize(w, 512 * kMiB, 8 * kMiB);
       w.node(1).processes = Unknown{.kind = Why::denied, .text = "EACCES"};
     }},
    {"read-only",
     [](World& w) {
       World::change(w.node(1).shm, [](SharedMemory& shm) { shm.read_only = true; });
     },
     {read_only("node1: mount -o remount,rw /dev/shm")}},
    {"read-only in a container",
     [](World& w) {
       World::change(w.node(1).shm, [](SharedMemory& shm) { shm.read_only = true; });
       World::change(w.node(1).identity, [](Identity& identity) { identity.container = "podman"; });
     },
     {read_only("node1: (manual)")}},
    {"a policy asks for more",
     [](World& w) {
       resize(w, 256 * kMiB, 256 * kMiB);
       w.expect.min_shm_bytes = {.value = 512 * kMiB, .origin = "policy.toml:4"};
     },
     {small(degraded, "below 512.0 MiB (policy.toml:4)", "256.0 MiB", "512.0 MiB")}},
    {"near miss: the default is no policy", [](World& w) { resize(w, 64 * kMiB, 64 * kMiB); }},
    {"stale segments",
     [](World& w) {
       add_segment(w, "nccl-Ab12Cd", 7200);
       add_segment(w, "nccl-$(x)", 601);
     },
     {stale(notice,
            "2 NCCL segments that no process maps take 20.0 MiB",
            "2 unmapped, 20.0 MiB",
            "rm -- /dev/shm/nccl-Ab12Cd '/dev/shm/nccl-$(x)'")}},
    {"stale segments in the way",
     [](World& w) {
       resize(w, 40 * kMiB, 30 * kMiB);
       add_segment(w, "nccl-Ab12Cd", 7200);
     },
     {stale(degraded, "take 10.0 MiB", "1 unmapped, 10.0 MiB", "rm -- /dev/shm/nccl-Ab12Cd"),
      full(blocker, "30.0 MiB", "32.6 MiB", "1G")}},
    {"near miss: mapped, young, or not NCCL's",
     [](World& w) {
       add_segment(w, "nccl-Ab12Cd", 7200, {4711});
       add_segment(w, "nccl-Ef34Gh", 600);
       add_segment(w, "torch_123", 7200);
     }},
    {"who maps them is not visible",
     [](World& w) {
       add_segment(w, "nccl-Ab12Cd", 7200);
       World::change(w.node(1).shm, [](SharedMemory& shm) { shm.all_processes_visible = false; });
     },
     {},
     {"node1 shm.segments.owners"}},
    {"unseen is a gap",
     [](World& w) { w.node(1).shm = Unknown{.kind = Why::denied, .text = "statvfs: EACCES"}; },
     {},
     {"node1 shm"}},
};

TEST_CASE("host/shm") {
  run_cases("host/shm", cases);
}

}  // namespace
}  // namespace distdoctor::testing
