#include "fleet/record.h"

#include "base/text.h"
#include "capture/capture.h"
#include "collect/collect.h"
#include "fleet/thread.h"
#include "machine/child.h"
#include "machine/machine.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

namespace distdoctor::fleet {
namespace {

using std::chrono::milliseconds;

// Outlives whoever waits: a thread that hangs still has it.
struct Recording {
  explicit Recording(std::unique_ptr<machine::Machine> real)
      : machine(std::move(real)), recorder(*machine) {}

  std::unique_ptr<machine::Machine> machine;
  capture::Recorder recorder;
  std::mutex mutex = {};
  std::condition_variable ended = {};
  std::size_t running = 0;
};

void run(const collect::Collector& collector, const CollectRequest& request, Recording& recording) {
  NodeFacts facts;  // only what was asked for them counts
  try {
    collector.run(recording.recorder.machine(), request, facts);
  } catch (const std::exception&) {
    collector.give_up(facts, {});
  }
  const std::scoped_lock lock(recording.mutex);
  --recording.running;
  recording.ended.notify_all();
}

void collect_all(const std::shared_ptr<Recording>& recording, milliseconds within) {
  const CollectRequest request{.within_ms = static_cast<int>(within.count())};
  std::unique_lock lock(recording->mutex);
  for (const collect::Collector& collector : collect::all_collectors()) {
    Thread thread;
    ++recording->running;
    thread.begin(kCollectorStack,
                 [recording, &collector, request] { run(collector, request, *recording); });
    thread.detach();
  }
  recording->ended.wait_for(lock, within, [&] { return recording->running == 0; });
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Result<std::string> record_here(Deadline deadline) {
  constexpr int kWritingMs = 500;
  const int within = std::max(deadline.remaining_ms() - kWritingMs, 100);
  const machine::Child child{
      .argv = {"/proc/self/exe", "agent", "--record", std::to_string(within)},
      .most_output = capture::kMostBytes};
  DD_TRY(const auto output, machine::run_child(child, deadline));
  if (output.exit_code == 0 && !output.out.empty()) return output.out;
  return failure("record this machine",
                 output.err.empty() ? fmt::format("the agent ended with {}", output.exit_code)
                                    : std::string(trim(output.err)));
}

void run_recorder(int out_fd, milliseconds within) {
  auto machine = machine::Machine::live();
  if (!machine) {
    write_all(STDERR_FILENO, machine.error().render());
    ::_exit(1);
  }
  const auto recording = std::make_shared<Recording>(*std::move(machine));
  collect_all(recording, within);
  write_all(out_fd, capture::write(recording->recorder.notes()));
  ::_exit(0);  // not `return`: a thread that hangs would be waited for
}

}  // namespace distdoctor::fleet
