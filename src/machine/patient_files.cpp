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
  std::optional<std::string> path = {};
  std::size_t limit = 0;
  std::optional<Result<std::string>> answer = {};
  bool closed = false;

  // The reader's whole life. It owns the tree and the desk, since it may outlive who asked.
  static void serve(const std::shared_ptr<Desk>& desk,
                    const std::shared_ptr<const FileTree>& files) {
    std::unique_lock lock(desk->mutex);
    while (true) {
      desk->changed.wait(lock, [&] { return desk->closed || desk->path; });
      if (desk->closed) return;
      const auto path = std::exchange(desk->path, std::nullopt).value_or("");
      const auto limit = desk->limit;
      lock.unlock();
      auto text = files->read_head(path, limit);
      lock.lock();
      desk->answer = std::move(text);
      desk->changed.notify_all();
    }
  }

  // None: the patience is at its end.
  std::optional<Result<std::string>> ask(const std::string& wanted,
                                         std::size_t most,
                                         std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex);
    path = wanted;
    limit = most;
    answer.reset();
    changed.notify_all();
    if (!changed.wait_for(lock, patience, [this] { return answer.has_value(); })) {
      return std::nullopt;
    }
    return std::exchange(answer, std::nullopt);
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

Result<std::string> PatientFiles::read_head(const std::string& path, std::size_t limit) {
  const auto late = [&] {
    return std::unexpected(
        Error{.attempt = "read " + path, .reason = "no answer in time", .errno_value = ETIMEDOUT});
  };
  if (given_up_ == kMostGivenUp) return late();
  if (!desk_) {
    desk_ = std::make_shared<Desk>();
    std::thread([desk = desk_, files = files_] { Desk::serve(desk, files); }).detach();
  }
  auto answer = desk_->ask(path, limit, patience_);
  if (answer) return *std::move(answer);
  dismiss();
  desk_.reset();
  if (given_up_++ == 0) patience_ /= 10;
  return late();
}

}  // namespace distdoctor::machine
