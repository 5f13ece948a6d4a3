#include "base/secrets.h"
#include "base/text.h"
#include "base/utf8.h"
#include "capture/capture.h"
#include "capture/redact.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace distdoctor::capture {
namespace {

using machine::CapturedMachine;

// The notes and their lock: doors are asked from many threads.
class Notes {
 public:
  template <class Change>
  void change(Change change) {
    const std::scoped_lock lock(mutex_);
    change(captured_);
  }
  [[nodiscard]] CapturedMachine copy() const {
    const std::scoped_lock lock(mutex_);
    return captured_;
  }

 private:
  mutable std::mutex mutex_;
  CapturedMachine captured_;
};

// A longer read of a file knows all that a shorter one does.
void keep(std::string bytes, machine::CapturedFile& file) {
  if (bytes.size() <= std::max(file.text.size(), file.hex.size() / 2)) return;
  const bool text = is_utf8(bytes);
  file.hex = text ? "" : to_hex(bytes);
  file.text = text ? std::move(bytes) : "";
}

// A site's own program, given by its path, may print whatever it knows.
machine::ChildOutput kept(const machine::Child& child, machine::ChildOutput output) {
  if (child.argv.empty() || !child.argv.front().starts_with('/')) return output;
  output.out = mask_value(output.out);
  output.err = mask_value(output.err);
  return output;
}

class NotingTree : public machine::FileTree {
 public:
  NotingTree(std::shared_ptr<const machine::FileTree> files, std::shared_ptr<Notes> notes)
      : files_(std::move(files)), notes_(std::move(notes)) {}

  [[nodiscard]] Result<std::string> read_head(std::string_view path,
                                              std::size_t limit) const override {
    auto text = files_->read_head(path, limit);
    note(path, text, [&](machine::CapturedFile& file) { keep(redacted(path, *text), file); });
    return text;
  }
  // A library in pieces is no file: of a part only the version of NCCL is kept.
  [[nodiscard]] Result<std::string> read_at(std::string_view path,
                                            std::uint64_t offset,
                                            std::size_t limit) const override {
    auto part = files_->read_at(path, offset, limit);
    note(path, part, [&](machine::CapturedFile& file) { keep(redacted_part(path, *part), file); });
    return part;
  }
  [[nodiscard]] Result<std::vector<std::string>> list(std::string_view folder) const override {
    auto names = files_->list(folder);
    if (!names)
      note(folder, names, [](machine::CapturedFile& /*file*/) {});
    else
      notes_->change([&](CapturedMachine& captured) {
        for (const auto& name : *names) captured.files[std::string(folder) + "/" + name];
      });
    return names;
  }
  [[nodiscard]] Result<std::string> read_link(std::string_view path) const override {
    auto target = files_->read_link(path);
    note(path, target, [&](machine::CapturedFile& file) { file.link = *target; });
    return target;
  }
  [[nodiscard]] Result<machine::Links> links_in(std::string_view folder) const override {
    auto links = files_->links_in(folder);
    if (!links)
      note(folder, links, [](machine::CapturedFile& /*file*/) {});
    else
      notes_->change([&](CapturedMachine& captured) {
        for (const auto& [name, target] : *links) {
          captured.files[std::string(folder) + "/" + name].link = target;
        }
      });
    return links;
  }
  [[nodiscard]] Result<machine::FileInfo> info(std::string_view path) const override {
    auto info = files_->info(path);
    if (info && !info->directory) {
      note(path, info, [&](machine::CapturedFile& file) {
        file.size = info->size;
        file.modified_s = info->modified_s;
        file.uid = info->uid;
      });
    }
    return info;
  }
  [[nodiscard]] Result<bool> in_use(std::string_view path) const override {
    auto used = files_->in_use(path);
    note(path, used, [&](machine::CapturedFile& file) { file.in_use = *used; });
    return used;
  }
  [[nodiscard]] Result<void> may_use(std::string_view path) const override {
    auto allowed = files_->may_use(path);
    note(path, allowed, [](machine::CapturedFile& /*file*/) {});
    return allowed;
  }
  [[nodiscard]] Result<void> try_open(std::string_view path) const override {
    auto opened = files_->try_open(path);
    note(path, opened, [](machine::CapturedFile& /*file*/) {});
    return opened;
  }
  [[nodiscard]] Result<machine::FileSystem> file_system(std::string_view path) const override {
    auto about = files_->file_system(path);
    if (about) {
      notes_->change([&](CapturedMachine& captured) {
        captured.file_systems[std::string(path)] = {about->size, about->free, about->read_only,
                                                    about->free_for_root, about->files_free};
      });
    }
    return about;
  }

 private:
  // What is not there needs no note.
  template <class T, class Fill>
  void note(std::string_view path, const Result<T>& answer, Fill fill) const {
    if (!answer && (answer.error().errno_value == ENOENT || answer.error().errno_value == 0))
      return;
    notes_->change([&](CapturedMachine& captured) {
      auto& file = captured.files[std::string(path)];
      if (answer)
        fill(file);
      else
        file.error = answer.error().errno_value;
    });
  }

  std::shared_ptr<const machine::FileTree> files_;
  std::shared_ptr<Notes> notes_;
};

}  // namespace

class Recorder::Noting : public machine::Machine {
 public:
  explicit Noting(const machine::Machine& machine) : Noting(machine, std::make_shared<Notes>()) {}

  [[nodiscard]] CapturedMachine notes() const { return notes_->copy(); }

  [[nodiscard]] const machine::Environment& environment() const override {
    return machine_.environment();
  }
  [[nodiscard]] machine::Self self() const override { return machine_.self(); }

  [[nodiscard]] Result<std::map<std::string, Limit>> limits() const override {
    auto limits = machine_.limits();
    notes_->change([&](CapturedMachine& captured) {
      if (limits) captured.limits = *limits;
    });
    return limits;
  }
  [[nodiscard]] Result<std::vector<Link>> links() const override {
    return note(&CapturedMachine::links, machine_.links());
  }
  [[nodiscard]] Result<std::vector<Route>> routes() const override {
    return note(&CapturedMachine::routes, machine_.routes());
  }
  [[nodiscard]] Result<std::vector<PolicyRule>> rules() const override {
    return note(&CapturedMachine::rules, machine_.rules());
  }
  [[nodiscard]] Result<std::vector<Neighbour>> neighbours() const override {
    return note(&CapturedMachine::neighbours, machine_.neighbours());
  }
  [[nodiscard]] Result<machine::Sockets> sockets() const override {
    auto sockets = machine_.sockets();
    notes_->change([&](CapturedMachine& captured) {
      if (sockets)
        captured.sockets = sockets->rows;
      else
        captured.sockets = unknown_because(sockets.error());
    });
    return sockets;
  }
  [[nodiscard]] Result<RouteAnswer> route_to(const Address& destination,
                                             const std::optional<Address>& source) const override {
    auto answer = machine_.route_to(destination, source);
    notes_->change([&](CapturedMachine& captured) {
      if (answer) captured.routes_to[machine::route_key(destination, source)] = *answer;
    });
    return answer;
  }
  [[nodiscard]] Result<LinkQos> qos(const std::string& interface) const override {
    auto qos = machine_.qos(interface);
    notes_->change([&](CapturedMachine& captured) {
      if (qos) captured.qos[interface] = *qos;
    });
    return qos;
  }
  [[nodiscard]] Result<std::string> kernel_log() const override {
    return note(&CapturedMachine::kernel_log, machine_.kernel_log());
  }
  [[nodiscard]] Result<machine::ChildOutput> run(const machine::Child& child,
                                                 Deadline deadline) const override {
    auto output = machine_.run(child, deadline);
    notes_->change([&](CapturedMachine& captured) {
      if (output) captured.children[join(child.argv, " ")] = kept(child, *output);
    });
    return output;
  }

 private:
  template <class T>
  Result<T> note(Observed<T> CapturedMachine::* member, Result<T> answer) const {
    notes_->change([&](CapturedMachine& captured) { captured.*member = observed(answer); });
    return answer;
  }

  Noting(const machine::Machine& machine, const std::shared_ptr<Notes>& notes)
      : Machine(std::make_shared<NotingTree>(machine.shared_files(), notes)),
        machine_(machine),
        notes_(notes) {
    notes->change([&](CapturedMachine& captured) {
      const auto self = machine.self();
      captured.hostname = self.hostname;
      captured.release = self.release;
      captured.uid = self.uid;
      captured.now_s = self.now_s;
      captured.uptime_s = self.uptime_s;
      captured.environment = allowed_variables(machine.environment());
    });
  }

  const machine::Machine& machine_;
  std::shared_ptr<Notes> notes_;
};

Recorder::Recorder(const machine::Machine& machine) : noting_(std::make_unique<Noting>(machine)) {}
Recorder::~Recorder() = default;

machine::Machine& Recorder::machine() {
  return *noting_;
}

CapturedMachine Recorder::notes() const {
  return noting_->notes();
}

}  // namespace distdoctor::capture
