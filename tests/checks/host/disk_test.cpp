#include "support/check_cases.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

void disk(World& w, Disk disk) {
  w.node(1).world = distdoctor::World{.disks = {std::move(disk)}};
}
Disk full(const char* purpose, const char* path) {
  return {.purpose = purpose, .path = path, .size = 100 * kGiB, .free = 1 << 20};
}

Verdict told(const char* code, Severity severity, const char* says, const std::string& evidence) {
  return {.code = code,
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = says,
          .blamed = {"node1"},
          .evidence = {"node1 " + evidence},
          .fixes = {"node1: (manual)"}};
}
Verdict forbidden(const char* says, const std::string& evidence, const std::string& fix) {
  Verdict verdict = told("host-disk-read-only", degraded, says, evidence);
  verdict.fixes = {fix};
  return verdict;
}
const std::string kRoom = "1 MiB of 100.0 GiB, not 16 MiB or more; df -h ";

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: room",
     [](World& w) {
       disk(w, {.purpose = "TMPDIR", .path = "/tmp", .size = kGiB, .free = kGiB, .files_free = 9});
     }},
    {"no room for temporary files",
     [](World& w) { disk(w, full("TMPDIR", "/scratch/a b")); },
     {told("host-disk-full",
           degraded,
           "/scratch/a b on node1 (TMPDIR) has 1 MiB left",
           "room in /scratch/a b: " + kRoom + "'/scratch/a b'")}},
    {"no inode",
     [](World& w) {
       disk(w, {.purpose = "working folder",
                .path = "/job",
                .size = kGiB,
                .free = kGiB,
                .files_free = 0});
     },
     {told("host-disk-full",
           degraded,
           "its file system has no inode left",
           "free inodes of /job: 0, not some; df -i /job")}},
    {"a debug file would be lost: a notice",
     [](World& w) { disk(w, full("NCCL_DEBUG_FILE", "/logs")); },
     {told("host-disk-full",
           notice,
           "/logs on node1 (NCCL_DEBUG_FILE) has 1 MiB left",
           "room in /logs: " + kRoom + "/logs")}},
    {"one folder for two things",
     [](World& w) {
       w.node(1).world = distdoctor::World{
           .disks = {full("temporary files", "/tmp"), full("core dumps", "/tmp")}};
     },
     {told("host-disk-full",
           degraded,
           "/tmp on node1 (temporary files, core dumps) has",
           "room in /tmp: " + kRoom + "/tmp")}},
    {"root may have what is kept back: a notice",
     [](World& w) {
       disk(w, full("TMPDIR", "/tmp"));
       World::change(w.node(1).identity, [](Identity& me) { me.uid = 0; });
     },
     {told("host-disk-full",
           notice,
           "/tmp on node1 (TMPDIR) has",
           "room in /tmp: " + kRoom + "/tmp")}},
    {"an ssh login is not the job's world",
     [](World& w) {
       disk(w, full("TMPDIR", "/tmp"));
       w.node(1).context = Context::ssh;
     },
     {told("host-disk-full",
           notice,
           "/tmp on node1 (TMPDIR) has",
           "room in /tmp: " + kRoom + "/tmp")}},
    {"read-only",
     [](World& w) {
       disk(w, {.purpose = "TMPDIR", .path = "/tmp", .size = kGiB, .read_only = true});
     },
     {told("host-disk-read-only",
           degraded,
           "/tmp on node1 (TMPDIR) may only be read",
           "/tmp: read-only, not writable; findmnt -T /tmp; touch /tmp/x")}},
    {"a /dev/shm that this user may not write",
     [](World& w) {
       disk(w, {.purpose = "shared memory", .path = "/dev/shm", .size = kGiB, .error = 13});
     },
     {forbidden("/dev/shm on node1 (shared memory) may not be written by uid 1000",
                "/dev/shm: not writable for uid 1000, not writable; ls -ld "
                "/dev/shm; id",
                "node1: chmod 1777 /dev/shm")}},
    {"a folder of logs that this user may not write",
     [](World& w) { disk(w, {.purpose = "NCCL_DEBUG_FILE", .path = "/logs", .error = 13}); },
     {told("host-disk-read-only",
           notice,
           "/logs on node1 (NCCL_DEBUG_FILE) may not be written by uid 1000",
           "/logs: not writable for uid 1000, not writable; ls -ld /logs; "
           "id")}},
    {"near miss: where the kernel would put cores, and the folder where it was started",
     [](World& w) {
       w.node(1).world =
           distdoctor::World{.disks = {{.purpose = "core dumps", .path = "/var/crash", .error = 13},
                                       {.purpose = "working folder", .path = "/app", .error = 13}}};
     }},
    {"near miss: a program started in its image",
     [](World& w) {
       disk(w, {.purpose = "working folder", .path = "/app", .size = kGiB, .read_only = true});
     }},
    {"near miss: a small one on purpose",
     [](World& w) {
       disk(w, {.purpose = "TMPDIR", .path = "/tmp", .size = 4 << 20, .free = 4 << 20});
     }},
    {"near miss: it counts no blocks",
     [](World& w) { disk(w, {.purpose = "TMPDIR", .path = "/tmp"}); }},
    {"near miss: a file server that is silent",
     [](World& w) { disk(w, {.purpose = "working folder", .path = "/home", .error = 110}); }},
    {"unseen is a gap",
     [](World& w) { w.node(1).world = Unknown{.kind = Why::timed_out, .text = "late"}; },
     {},
     {"node1 world"}},
};

TEST_CASE("host/disk") {
  run_cases("host/disk", cases);
}

}  // namespace
}  // namespace distdoctor::testing
