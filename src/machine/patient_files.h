// Reads of files that may wait for ever, each with a bound.
#pragma once

#include "base/error.h"
#include "machine/file_tree.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace distdoctor::machine {

// /proc/PID/cmdline, environ and maps wait for that process's mmap lock, and a process inside a
// wedged driver may hold it for ever; so does statvfs(2) for a file server. So a thread of its own
// reads; one that does not come back is given up (ETIMEDOUT) and another one started, with a tenth
// of the patience. After 32 of them, which is more than a node has GPUs, nothing is read any more.
// Not thread-safe: each user has its own.
class PatientFiles {
 public:
  explicit PatientFiles(std::shared_ptr<const FileTree> files,
                        std::chrono::milliseconds patience = std::chrono::seconds{1});
  ~PatientFiles();
  PatientFiles(const PatientFiles&) = delete;
  PatientFiles& operator=(const PatientFiles&) = delete;
  PatientFiles(PatientFiles&&) = delete;
  PatientFiles& operator=(PatientFiles&&) = delete;

  // As FileTree::read_head.
  Result<std::string> read_head(const std::string& path, std::size_t limit);
  // As FileTree::file_system, which a file server that is gone never answers.
  Result<FileSystem> file_system(const std::string& path);

 private:
  using Question = std::function<void(const FileTree&)>;
  struct Desk;  // where the question lies
  bool answered(Question question);
  template <class T, class Read>
  Result<T> ask(const std::string& attempt, Read read);
  void dismiss();

  std::shared_ptr<const FileTree> files_;
  std::chrono::milliseconds patience_;
  std::shared_ptr<Desk> desk_;
  int given_up_ = 0;
};

}  // namespace distdoctor::machine
