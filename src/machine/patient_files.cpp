#include "machine/patient_files.h"

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace distdoctor::machine {
namespace {

constexpr int kMostGivenUp = 32;

}  // namespace

struct PatientFiles::Desk {
  std::mutex mutex = {};
  std::condition_variable changed = {};
  Question question = {};
  bool answered = false;
  bool closed = false;

  // The reader's whole life. It owns the tree and the desk, since it may outlive who asked.
  static void serve(const std::shared_ptr<Desk>& desk,
                    const std::shared_ptr<const FileTree>& files) {
    std::unique_lock lock(desk->mutex);
    while (true) {
      desk->changed.wait(lock, [&] { return desk->closed || desk->question; });
      if (desk->closed) return;
      const auto question = std::exchange(desk->question, nullptr);
      lock.unlock();
      question(*files);
      lock.lock();
      desk->answered = true;
      desk->changed.notify_all();
    }
  }

  // False: the patience is at its end.
  bool ask(Question wanted, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex);
    question = std::move(wanted);
    answered = false;
    changed.notify_all();
    return changed.wait_for(lock, patience, [this] { return answered; });
  }
};

PatientFiles::PatientFiles(std::shared_ptr<const FileTree> files,
                           std::chrono::milliseconds patience)
    : files_(std::move(files)), patience_(patience) {}

PatientFiles::~PatientFiles() {
  dismiss();
}

void PatientFiles::dismiss() {
  if (!desk_) return;
  const std::scoped_lock lock(desk_->mutex);
  desk_->closed = true;
  desk_->changed.notify_all();
}

bool PatientFiles::answered(Question question) {
  if (given_up_ == kMostGivenUp) return false;
  if (!desk_) {
    desk_ = std::make_shared<Desk>();
    std::thread([desk = desk_, files = files_] { Desk::serve(desk, files); }).detach();
  }
  if (desk_->ask(std::move(question), patience_)) return true;
  dismiss();
  desk_.reset();
  if (given_up_++ == 0) patience_ /= 10;
  return false;
}

template <class T, class Read>
Result<T> PatientFiles::ask(const std::string& attempt, Read read) {
  // The reader that comes too late still has a place to write to.
  const auto answer = std::make_shared<std::optional<Result<T>>>();
  const bool came = answered([answer, read](const FileTree& files) { *answer = read(files); });
  if (const auto& given = *answer; came && given) return *given;
  return std::unexpected(
      Error{.attempt = attempt, .reason = "no answer in time", .errno_value = ETIMEDOUT});
}

Result<std::string> PatientFiles::read_head(const std::string& path, std::size_t limit) {
  return ask<std::string>("read " + path, [path, limit](const FileTree& files) {
    return files.read_head(path, limit);
  });
}

Result<FileSystem> PatientFiles::file_system(const std::string& path) {
  return ask<FileSystem>("statvfs " + path,
                         [path](const FileTree& files) { return files.file_system(path); });
}

}  // namespace distdoctor::machine
