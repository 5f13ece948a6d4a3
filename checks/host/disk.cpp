// Where logs and temporary files go there is room, and it may be written.
#include "seen.h"

#include <algorithm>
#include <map>

namespace distdoctor::checks {
namespace {

using namespace host;  // NOLINT(google-build-using-namespace): what these checks share

constexpr int kNoPermission = 13;                         // EACCES
constexpr std::int64_t kNoRoom = std::int64_t{16} << 20;  // less than a log with NCCL_DEBUG=INFO

// What one folder is for, in the order in which it was seen.
struct Folder {
  const Disk* disk = nullptr;
  std::string purposes = {};
  bool only_dumps = true;  // what is written there is for reading after a failure
};

// torch, NCCL and Python go on without these; a log or a dump is lost.
bool is_a_dump(const std::string& purpose) {
  return purpose.starts_with("NCCL_") || purpose.starts_with("TORCH") || purpose == "core dumps";
}

std::map<std::string, Folder> folders_of(const World& world) {
  std::map<std::string, Folder> folders;
  for (const Disk& disk : world.disks) {
    if (disk.error != 0 && disk.error != kNoPermission) continue;
    Folder& folder = folders[disk.path];
    folder.disk = &disk;
    folder.purposes += (folder.purposes.empty() ? "" : ", ") + disk.purpose;
    folder.only_dumps = folder.only_dumps && is_a_dump(disk.purpose);
  }
  return folders;
}

// Many file systems keep some blocks back for root, and the figure leaves those out.
bool left_to_root(const NodeFacts& node, const Disk& disk) {
  const bool root = node.identity.known() && node.identity->uid == 0;
  return root && !disk.read_only && disk.files_free != 0;
}

Finding about(const NodeFacts& node, const Folder& folder, const char* code, std::string what) {
  const bool notice = folder.only_dumps || left_to_root(node, *folder.disk);
  const Severity severity = notice ? Severity::notice : Severity::degraded;
  return {.code = code,
          .severity = capped_by_context(severity, node.context),
          .certainty = Certainty::likely,
          .symptom = Symptom::crash,
          .subjects = {.nodes = {node.host}},
          .summary =
              fmt::format("{} on {} ({}) {}", folder.disk->path, node.host, folder.purposes, what)};
}

void judge_full(const NodeFacts& node, const Folder& folder, Judge& judge) {
  const Disk& disk = *folder.disk;
  const bool no_files = disk.files_free == 0;
  const std::string path = shell_quote(disk.path);
  Finding finding = about(node, folder, "host-disk-full",
                          no_files ? "can take no more files: its file system has no inode left"
                                   : fmt::format("has {} left", size_text(disk.free)));
  finding.evidence = {
      no_files ? seen(node, "free inodes of " + disk.path, "0", "some", "df -i " + path)
               : seen(node, "room in " + disk.path,
                      fmt::format("{} of {}", size_text(disk.free), size_text(disk.size)),
                      size_text(kNoRoom) + " or more", "df -h " + path)};
  finding.fix = {by_hand(
      node, fmt::format("see what fills it (`{} {} | sort -n | tail`) and remove what nobody "
                        "needs, or let the job write elsewhere",
                        no_files ? "du -x --inodes" : "du -xm", path))};
  judge.report(std::move(finding));
}

void judge_read_only(const NodeFacts& node, const Folder& folder, Judge& judge) {
  const std::string path = shell_quote(folder.disk->path);
  Finding finding = about(node, folder, "host-disk-read-only", "may only be read");
  finding.evidence = {seen(node, folder.disk->path, "read-only", "writable",
                           "findmnt -T " + path + "; touch " + path + "/x")};
  finding.fix = {
      by_hand(node,
              "mount something writable there (docker --tmpfs /tmp, an emptyDir), or set "
              "TMPDIR and the names of log files to a place that may be written; a disk "
              "that the kernel made read-only has failed: `dmesg -T | grep -i "
              "'remount'`")};
  judge.report(std::move(finding));
}

std::string who(const NodeFacts& node) {
  if (!node.identity.known()) return "us";
  return fmt::format("uid {}", node.identity->uid);
}

void judge_forbidden(const NodeFacts& node, const Folder& folder, Judge& judge) {
  const std::string path = shell_quote(folder.disk->path);
  Finding finding = about(node, folder, "host-disk-read-only",
                          fmt::format("may not be written by {}", who(node)));
  finding.evidence = {seen(node, folder.disk->path, "not writable for " + who(node), "writable",
                           "ls -ld " + path + "; id")};
  const bool shared = folder.disk->path == "/tmp" || folder.disk->path == "/dev/shm";
  if (shared) {
    finding.fix = {{.node = node.host,
                    .kind = Fix::Kind::shell,
                    .command = "chmod 1777 " + path,
                    .text = "as root: everybody writes there, and nobody takes away what is "
                            "another's"}};
  } else {
    finding.fix = {by_hand(node,
                           "let the job's user write there, or set TMPDIR and the names of log "
                           "files to a place where it may")};
  }
  judge.report(std::move(finding));
}

// An image is mounted read-only on purpose, and a program may be started in it.
bool meant_for_writing(const Folder& folder) {
  return folder.purposes.find("working folder") == std::string::npos;
}

void judge_folder(const NodeFacts& node, const Folder& folder, Judge& judge) {
  const Disk& disk = *folder.disk;
  if (disk.read_only) return judge_read_only(node, folder, judge);
  if (disk.error != kNoPermission) return judge_full(node, folder, judge);
  if (folder.purposes != "core dumps") judge_forbidden(node, folder, judge);
}

bool may_not_be_written(const Disk& disk) {
  return disk.read_only || disk.error == kNoPermission;
}

bool is_full(const Disk& disk) {
  return (disk.size > kNoRoom && disk.free < kNoRoom) || disk.files_free == 0;
}

void judge_node(const NodeFacts& node, const World& world, Judge& judge) {
  for (const auto& [path, folder] : folders_of(world)) {
    const bool forbidden = may_not_be_written(*folder.disk);
    const bool bad = forbidden ? meant_for_writing(folder) : is_full(*folder.disk);
    if (bad) judge_folder(node, folder, judge);
  }
}

void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    const World* world = judge.see(node, "world", node.world);
    if (world != nullptr) judge_node(node, *world, judge);
  }
}

constexpr Page kFullPage{
    .meaning =
        "The file system has no room, or no inode, for what the job writes there. torchrun makes "
        "its log folder in TMPDIR, Python its temporary files, a checkpoint goes to the working "
        "folder: `No space left on device`. NCCL's and torch's own debug files are lost without a "
        "word.",
    .confirm = "`df -h PATH; df -i PATH` in the job's own world.",
    .fix = "Remove what fills it, or set TMPDIR, NCCL_DEBUG_FILE and the like to another place.",
    .verify = "`df -h PATH` shows room again."};
constexpr Page kReadOnlyPage{
    .meaning =
        "Logs or temporary files are to go where nothing may be written: a container with a "
        "read-only root and no /tmp of its own, a disk that the kernel made read-only after an "
        "error, or a folder that this user has no permission for, as a /tmp or /dev/shm that lost "
        "its mode 1777. Without /dev/shm NCCL and data loaders have no memory to share.",
    .confirm = "`findmnt -T PATH` shows `ro`, or `ls -ld PATH` another mode; `touch PATH/x` fails.",
    .fix =
        "A writable mount there, `chmod 1777` for /tmp and /dev/shm, or another TMPDIR, "
        "NCCL_DEBUG_FILE and the like.",
    .verify = "`touch PATH/x && rm PATH/x` succeeds in the job."};
constexpr Code kCodes[] = {{.id = "host-disk-full",
                            .fault_class = FaultClass::rank_missing,
                            .worst = Severity::degraded,
                            .title = "A disk that the job writes to is full",
                            .causes = {},
                            .page = kFullPage},
                           {.id = "host-disk-read-only",
                            .fault_class = FaultClass::rank_missing,
                            .worst = Severity::degraded,
                            .title = "Where the job writes may only be read",
                            .causes = {},
                            .page = kReadOnlyPage}};

}  // namespace

extern const Check host_disk{
    .title = "There is room where logs and temporary files go", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
