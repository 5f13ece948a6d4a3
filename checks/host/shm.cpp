// /dev/shm has room for what NCCL puts there before the first collective.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

namespace distdoctor::checks {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr double kOldEnoughS = 600;  // a starting job unlinks its segments within seconds

// --- how much NCCL needs ---

struct Pool {
  int minor;           // from NCCL 2.<minor>
  std::int64_t bytes;  // of the proxy pool of one process (sizeof of proxy.h's pool, by version)
};
constexpr std::array<Pool, 8> kPools = {{{0, 4'194'656},
                                         {20, 5'767'520},
                                         {21, 7'340'384},
                                         {23, 10'486'112},
                                         {24, 14'156'128},
                                         {25, 31'850'880},
                                         {26, 33'030'528},
                                         {28, 34'210'176}}};

// 28 of "2.28.9".
std::optional<int> minor_of(std::string_view version) {
  if (!version.starts_with("2.")) return std::nullopt;
  version.remove_prefix(2);
  int minor = 0;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), minor);
  if (error != std::errc() || end == version.data()) return std::nullopt;
  return minor;
}

// An unknown version may be the most modest one.
std::int64_t pool_of(const NodeFacts& node) {
  const auto minor =
      node.nccl_library.known() ? minor_of(node.nccl_library->version) : std::nullopt;
  std::int64_t bytes = kPools.front().bytes;
  for (const Pool& pool : kPools) {
    if (minor && *minor >= pool.minor) bytes = pool.bytes;
  }
  return bytes;
}

// On one node alone NCCL 2.22 and later may do without pools.
bool uses_pools(const Case& c, const NodeFacts& node) {
  if (c.cluster.nodes.size() > 1) return true;
  const auto minor =
      node.nccl_library.known() ? minor_of(node.nccl_library->version) : std::nullopt;
  return minor && *minor <= 21;
}

// The least that must fit; unknown ranks: one pool.
std::int64_t need_of(const Case& c, const NodeFacts& node) {
  if (!uses_pools(c, node)) return 0;
  return pool_of(node) * std::clamp(c.cluster.job.ranks_per_node.value_or(1), 1, 1024);
}

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string what_for(const Case& c, const NodeFacts& node) {
  const auto& ranks = c.cluster.job.ranks_per_node;
  const std::string version = node.nccl_library.known() && !node.nccl_library->version.empty()
                                  ? " of NCCL " + node.nccl_library->version
                                  : "";
  if (ranks.value_or(1) == 1) return "one process" + version + " needs";
  return fmt::format("{} processes{} need", *ranks, version);
}

// --- findings ---

Severity capped(const Case& c, const NodeFacts& node, Severity severity) {
  if (c.cluster.job.nccl != Use::yes) severity = std::min(severity, Severity::notice);
  return capped_by_context(severity, node.context);
}

Finding about(const Case& c, const NodeFacts& node, const char* code, std::string summary) {
  return {.code = code,
          .severity = capped(c, node, Severity::blocker),
          .certainty = Certainty::likely,
          .symptom = Symptom::crash,
          .subjects = {.nodes = {node.host}},
          .summary = std::move(summary)};
}

void add_evidence(const NodeFacts& node,
                  const char* fact,
                  std::string observed,
                  std::string expected,
                  Finding& finding) {
  finding.evidence.push_back({.node = node.host,
                              .fact = fact,
                              .observed = std::move(observed),
                              .expected = std::move(expected),
                              .context = std::string(slug(node.context)),
                              .command = "df -B1 /dev/shm; findmnt /dev/shm; ls -la /dev/shm"});
}

// Whole GiB with room for the need twice over.
std::int64_t good_size(std::int64_t need) {
  return std::max(std::int64_t{1}, (2 * need + kGiB - 1) / kGiB);
}

// Else it is a folder of the file system around it, which no remount of /dev/shm changes.
bool own_mount(const NodeFacts& node) {
  return !node.shm->filesystem.empty();
}

Fix enlarge(const NodeFacts& node, std::int64_t need) {
  const std::string container = node.identity.known() ? node.identity->container : "";
  const std::int64_t size = good_size(need);
  Fix fix{.node = node.host, .kind = Fix::Kind::manual, .text = ""};
  if (container == "kubernetes") {
    fix.text = fmt::format(
        "mount an emptyDir with `medium: Memory` and `sizeLimit: {}Gi` at /dev/shm", size);
  } else if (!container.empty()) {
    fix.text = fmt::format("start the container with --shm-size={}g, or with --ipc=host", size);
  } else if (!own_mount(node)) {
    fix.kind = Fix::Kind::shell;
    fix.command = fmt::format("mount -t tmpfs -o mode=1777,size={}G tmpfs /dev/shm", size);
    fix.text =
        "as root, with no job on the node: it covers what lies in /dev/shm, a plain folder here. "
        "For good: a line in /etc/fstab";
  } else {
    fix.kind = Fix::Kind::shell;
    fix.command = fmt::format("mount -o remount,size={}G /dev/shm", size);
    fix.text = "as root, until the next boot; for good: the line of /dev/shm in /etc/fstab";
  }
  return fix;
}

// Nodes of which the same is to be said share a finding.
class Groups {
 public:
  // Its summary is what comes behind "/dev/shm of NODES ".
  void add(Finding finding) {
    const auto same = std::ranges::find_if(all_, [&](const Finding& known) {
      return known.code == finding.code && known.severity == finding.severity &&
             known.summary == finding.summary;
    });
    if (same == all_.end()) return all_.push_back(std::move(finding));
    append(finding.subjects.nodes, same->subjects.nodes);
    append(finding.evidence, same->evidence);
    append(finding.fix, same->fix);
  }
  void report(Judge& judge) {
    for (Finding& finding : all_) {
      finding.summary = fmt::format("/dev/shm of {} {}", fmt::join(finding.subjects.nodes, ", "),
                                    finding.summary);
      judge.report(std::move(finding));
    }
  }

 private:
  template <class T>
  static void append(const std::vector<T>& more, std::vector<T>& all) {
    all.insert(all.end(), more.begin(), more.end());
  }

  std::vector<Finding> all_;
};

void judge_read_only(const Case& c, const NodeFacts& node, Groups& groups) {
  Finding finding = about(c, node, "host-shm-read-only", "is mounted read-only");
  add_evidence(node, "/dev/shm", "read-only", "writable", finding);
  const bool container = node.identity.known() && !node.identity->container.empty();
  if (container) {
    finding.fix = {
        {.node = node.host,
         .kind = Fix::Kind::manual,
         .text = "start the container with a writable /dev/shm (--tmpfs or --ipc=host)"}};
  } else {
    const bool own = own_mount(node);
    finding.fix = {
        {.node = node.host,
         .kind = Fix::Kind::shell,
         .command =
             own ? "mount -o remount,rw /dev/shm" : "mount -t tmpfs -o mode=1777 tmpfs /dev/shm",
         .text = own ? "as root"
                     : "as root, with no job on the node: it covers what lies in /dev/shm"}};
  }
  groups.add(std::move(finding));
}

void judge_small(const Case& c, const NodeFacts& node, std::int64_t need, Groups& groups) {
  Finding finding = about(c, node, "host-shm-small",
                          fmt::format("holds {}, but {} at least {}", mebibytes(node.shm->size),
                                      what_for(c, node), mebibytes(need)));
  add_evidence(node, "/dev/shm size", mebibytes(node.shm->size),
               fmt::format("at least {}, better {} GiB", mebibytes(need), good_size(need)),
               finding);
  finding.fix = {enlarge(node, need)};
  groups.add(std::move(finding));
}

// A job that runs has taken its pools already, so that little is left.
bool may_be_the_jobs_own(const NodeFacts& node) {
  return !node.processes.known() ||
         std::ranges::any_of(*node.processes, [](const TrainingProcess& process) {
           return process.role == ProcessRole::worker && !process.orphan;
         });
}

void judge_full(const Case& c, const NodeFacts& node, std::int64_t need, Groups& groups) {
  if (may_be_the_jobs_own(node)) return;
  Finding finding = about(c, node, "host-shm-full",
                          fmt::format("has {} left, but {} at least {}", mebibytes(node.shm->free),
                                      what_for(c, node), mebibytes(need)));
  add_evidence(node, "/dev/shm free", mebibytes(node.shm->free),
               fmt::format("at least {}", mebibytes(need)), finding);
  Fix more = enlarge(node, need + node.shm->size - node.shm->free);
  finding.fix = {std::move(more)};
  groups.add(std::move(finding));
}

// A site's own floor.
void judge_policy(const Case& c, const NodeFacts& node, Groups& groups) {
  const auto& [floor, origin] = c.expect.min_shm_bytes;
  if (origin == "default" || node.shm->size >= floor) return;
  Finding finding = about(
      c, node, "host-shm-small",
      fmt::format("holds {}, below {} ({})", mebibytes(node.shm->size), mebibytes(floor), origin));
  finding.severity = capped(c, node, Severity::degraded);
  add_evidence(node, "/dev/shm size", mebibytes(node.shm->size),
               fmt::format("at least {}", mebibytes(floor)), finding);
  finding.fix = {enlarge(node, floor / 2)};
  groups.add(std::move(finding));
}

// --- segments that nobody uses any more ---

std::vector<ShmSegment> old_segments(const SharedMemory& shm) {
  std::vector<ShmSegment> old;
  std::ranges::copy_if(shm.nccl_segments, std::back_inserter(old), [](const ShmSegment& segment) {
    return segment.mapped_by.empty() && segment.age_s > kOldEnoughS &&
           segment.name.starts_with("nccl-");
  });
  return old;
}

void judge_stale(const Case& c, const NodeFacts& node, Judge& judge) {
  const std::vector<ShmSegment> old = old_segments(*node.shm);
  if (old.empty()) return;
  if (!node.shm->all_processes_visible) {
    static const Observed<bool> unseen =
        Unknown{.kind = Why::denied,
                .text = "not all processes are visible: who maps a segment is unknown"};
    judge.see(node, "shm.segments.owners", unseen);
    return;
  }
  std::int64_t bytes = 0;
  std::string command = "rm --";
  for (const ShmSegment& segment : old) {
    bytes += segment.bytes;
    command += " " + shell_quote("/dev/shm/" + segment.name);
  }
  Finding finding = about(c, node, "host-shm-stale",
                          fmt::format("{} NCCL segments that no process maps take {} of /dev/shm "
                                      "on {}",
                                      old.size(), mebibytes(bytes), node.host));
  const bool in_the_way = node.shm->size > 0 && node.shm->free < need_of(c, node);
  finding.severity = capped(c, node, in_the_way ? Severity::degraded : Severity::notice);
  add_evidence(node, "/dev/shm/nccl-*",
               fmt::format("{} unmapped, {}", old.size(), mebibytes(bytes)), "none", finding);
  finding.evidence.back().command = "ls -la /dev/shm; grep -l /dev/shm/nccl- /proc/[0-9]*/maps";
  finding.fix = {{.node = node.host,
                  .kind = Fix::Kind::shell,
                  .command = std::move(command),
                  .text = "as their owner or as root; a killed job left them behind"}};
  judge.report(std::move(finding));
}

void judge_room(const Case& c, const NodeFacts& node, Groups& groups) {
  if (node.shm->size == 0 && !node.shm->read_only) return;  // without a limit: never small or full
  const std::int64_t need = need_of(c, node);
  if (node.shm->read_only) {
    judge_read_only(c, node, groups);
  } else if (node.shm->size < need) {
    judge_small(c, node, need, groups);
  } else if (node.shm->free < need) {
    judge_full(c, node, need, groups);
  } else {
    judge_policy(c, node, groups);
  }
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;  // Gloo sends everything through sockets
  Groups groups;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (judge.see(node, "shm", node.shm) == nullptr) continue;
    judge_stale(c, node, judge);
    judge_room(c, node, groups);
  }
  groups.report(judge);
}

// --- the catalogue ---

constexpr std::string_view kConfirm =
    "`df -h /dev/shm; ls -la /dev/shm` in the job's own container or step; NCCL_DEBUG=WARN prints "
    "`Error while creating shared memory segment /dev/shm/nccl-... (size N)`.";
constexpr std::string_view kVerify = "`df -h /dev/shm` shows 1 GiB or more available in the job.";
constexpr Page kSmallPage{
    .meaning =
        "NCCL allocates a pool in /dev/shm for each process as soon as it talks to another "
        "node: 4 MiB up to NCCL 2.19, 33 MiB from 2.28 on. Docker's default of 64 MiB holds "
        "one of the latter. The figure is a lower bound: segments between GPUs without "
        "peer-to-peer access and data loaders come on top.",
    .confirm = kConfirm,
    .fix =
        "Docker: `--shm-size=1g` or `--ipc=host`. Kubernetes: an emptyDir with `medium: Memory` "
        "at /dev/shm. A host: `mount -o remount,size=1G /dev/shm`.",
    .verify = kVerify};
constexpr Page kFullPage{
    .meaning =
        "/dev/shm is large enough, but something else fills it, so that NCCL's pools no "
        "longer fit.",
    .confirm = kConfirm,
    .fix =
        "`du -ah /dev/shm | sort -h | tail` shows what fills it. Remove what a dead job left "
        "there, or enlarge the mount.",
    .verify = kVerify};
constexpr Page kReadOnlyPage{
    .meaning =
        "NCCL cannot create its segments: `failed to create shared memory file ..., error "
        "Read-only file system (30)`.",
    .confirm = "`touch /dev/shm/x` in the job fails.",
    .fix = "`mount -o remount,rw /dev/shm`, or a container with a writable /dev/shm.",
    .verify = "`touch /dev/shm/x && rm /dev/shm/x` succeeds in the job."};
constexpr Page kStalePage{
    .meaning =
        "NCCL unlinks its segments as soon as all peers have attached. Files nccl-* that "
        "are old and that no process maps are what a killed job left; they take the room "
        "of the next one.",
    .confirm = "`ls -la /dev/shm`, and as root `grep -l /dev/shm/nccl- /proc/[0-9]*/maps`: nobody.",
    .fix = "`rm /dev/shm/nccl-NAME`, once no process maps it.",
    .verify = "`ls /dev/shm` shows no nccl-* while no job runs."};
constexpr std::string_view kFullCause[] = {"host-shm-full"};
constexpr std::string_view kNoRoom[] = {"collective-shm-full", "collective-shm-broken"};

constexpr Code kCodes[] = {{.id = "host-shm-small",
                            .fault_class = FaultClass::shm_small,
                            .worst = Severity::blocker,
                            .title = "/dev/shm is too small for NCCL",
                            .causes = kNoRoom,
                            .page = kSmallPage},
                           {.id = "host-shm-full",
                            .fault_class = FaultClass::shm_small,
                            .worst = Severity::blocker,
                            .title = "/dev/shm has no room left for NCCL",
                            .causes = kNoRoom,
                            .page = kFullPage},
                           {.id = "host-shm-read-only",
                            .fault_class = FaultClass::shm_small,
                            .worst = Severity::blocker,
                            .title = "/dev/shm is read-only",
                            .causes = kNoRoom,
                            .page = kReadOnlyPage},
                           {.id = "host-shm-stale",
                            .fault_class = FaultClass::shm_small,
                            .worst = Severity::degraded,
                            .title = "A dead job left segments in /dev/shm",
                            .causes = kFullCause,
                            .page = kStalePage}};

}  // namespace

extern const Check host_shm{.title = "/dev/shm has room for NCCL", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
