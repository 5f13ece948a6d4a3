// The door to files: everything is read below one root, and no read waits or grows without a bound.
#pragma once

#include "base/error.h"
#include "base/fd.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::machine {

inline constexpr std::size_t kMostFileBytes = std::size_t{4} << 20;  // what one read() takes
inline constexpr std::size_t kMostEntries = 100'000;                 // what one list() takes

struct FileInfo {
  std::int64_t size = 0;  // bytes
  double modified_s = 0;  // since the epoch
  int uid = 0;
  bool directory = false;
  bool operator==(const FileInfo&) const = default;
};

// statvfs(3) of the file system that holds a path.
struct FileSystem {
  std::int64_t size = 0;  // bytes; 0: it counts none (tmpfs without a limit, proc)
  std::int64_t free = 0;  // bytes, for an ordinary user
  bool read_only = false;
  std::int64_t free_for_root = 0;               // bytes; more, where some are kept back for root
  std::optional<std::int64_t> files_free = {};  // inodes; none: it does not count them
  bool operator==(const FileSystem&) const = default;
};

using Links = std::vector<std::pair<std::string, std::string>>;  // name, where it points to

// Paths are absolute, as the machine itself would write them: "/proc/7/environ". Symbolic links are
// followed inside the root. Errors name the path and the errno.
class FileTree {
 public:
  virtual ~FileTree() = default;

  // The first `limit` bytes. Regular files only: a FIFO or a device is an Error at once.
  [[nodiscard]] virtual Result<std::string> read_head(std::string_view path,
                                                      std::size_t limit) const = 0;
  // At most `limit` bytes from `offset` on; none beyond the end. Regular files only.
  [[nodiscard]] virtual Result<std::string> read_at(std::string_view path,
                                                    std::uint64_t offset,
                                                    std::size_t limit) const = 0;
  [[nodiscard]] virtual Result<std::vector<std::string>> list(std::string_view folder) const = 0;
  [[nodiscard]] virtual Result<std::string> read_link(std::string_view path) const = 0;
  // All symbolic links of a folder, such as /proc/7/fd; entries that vanish meanwhile are left out.
  [[nodiscard]] virtual Result<Links> links_in(std::string_view folder) const = 0;
  [[nodiscard]] virtual Result<FileInfo> info(std::string_view path) const = 0;
  [[nodiscard]] virtual Result<FileSystem> file_system(std::string_view path) const = 0;
  // Whether any process has the file open or mapped, also one that no /proc of ours shows: the
  // kernel grants a write lease (F_SETLEASE of fcntl(2)) on a file that nobody else has open. Needs
  // the file's owner or root. The lease is given back at once.
  [[nodiscard]] virtual Result<bool> in_use(std::string_view path) const = 0;

  // Whether access(2) lets us read and write it; a device is not opened for that.
  [[nodiscard]] virtual Result<void> may_use(std::string_view path) const = 0;
  // Opens it for reading and writing and closes it at once: what a device cgroup forbids shows only
  // so. Only for devices that do nothing when they are opened.
  [[nodiscard]] virtual Result<void> try_open(std::string_view path) const = 0;

  // The whole file; more than `limit` bytes are EFBIG.
  [[nodiscard]] Result<std::string> read(std::string_view path,
                                         std::size_t limit = kMostFileBytes) const;
  // As list(); nothing where it cannot be read.
  [[nodiscard]] std::vector<std::string> names(std::string_view folder) const;
  // Without the blanks around it; "" where it cannot be read.
  [[nodiscard]] std::string word(std::string_view path) const;
};

// The tree below a folder, "/" for this machine's own. Nothing escapes it: openat2(2) with
// RESOLVE_IN_ROOT. Kernels before 5.6 and old container filters lack that; then "/" is read by
// plain paths, and another root is refused.
class RootTree : public FileTree {
 public:
  static Result<std::unique_ptr<RootTree>> open(const std::string& root);

  [[nodiscard]] Result<std::string> read_head(std::string_view path,
                                              std::size_t limit) const override;
  [[nodiscard]] Result<std::string> read_at(std::string_view path,
                                            std::uint64_t offset,
                                            std::size_t limit) const override;
  [[nodiscard]] Result<std::vector<std::string>> list(std::string_view folder) const override;
  [[nodiscard]] Result<std::string> read_link(std::string_view path) const override;
  [[nodiscard]] Result<Links> links_in(std::string_view folder) const override;
  [[nodiscard]] Result<FileInfo> info(std::string_view path) const override;
  [[nodiscard]] Result<FileSystem> file_system(std::string_view path) const override;
  [[nodiscard]] Result<bool> in_use(std::string_view path) const override;
  [[nodiscard]] Result<void> may_use(std::string_view path) const override;
  [[nodiscard]] Result<void> try_open(std::string_view path) const override;

 private:
  RootTree(Fd root, bool whole) : root_(std::move(root)), whole_(whole) {}
  [[nodiscard]] Result<Fd> open_path(std::string_view path, int flags) const;

  Fd root_;
  bool whole_;  // the root is "/"
};

}  // namespace distdoctor::machine
