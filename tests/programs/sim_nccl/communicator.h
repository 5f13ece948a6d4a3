// A SIMULATED communicator that does not block: one thread does what it is told, in order.
#pragma once

#include "faults.h"
#include "log.h"
#include "peers.h"
#include "segment.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace distdoctor::sim {

inline constexpr int kSuccess = 0;
inline constexpr int kUnhandledCuda = 1;
inline constexpr int kSystemError = 2;
inline constexpr int kInternalError = 3;
inline constexpr int kInvalidArgument = 4;
inline constexpr int kInvalidUsage = 5;
inline constexpr int kRemoteError = 6;
inline constexpr int kInProgress = 7;

class Communicator {
 public:
  Communicator(const RootAddress& root, int size, int rank, int device);
  ~Communicator();  // ends what is under way, unless that is deaf
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // `done` is called when it has ended, well or not.
  void sum(std::span<std::uint64_t> numbers, std::function<void()> done);
  [[nodiscard]] int state() const { return state_; }
  [[nodiscard]] std::string last_error() const;

 private:
  void work();
  int init();
  int join_ring();
  int connect();
  int share_segments();
  int all_reduce(std::span<std::uint64_t> numbers);
  int reduce(std::span<std::uint64_t> numbers);
  int suffer(bool& corrupt);
  void hang(bool deaf) const;
  int fail(int code, const std::string& where, const std::string& text);
  int remote(const Peer& peer);
  void log_variables();
  void log_network();
  void log_channels();
  [[nodiscard]] const Peer& before() const;
  [[nodiscard]] const Peer& after() const;
  [[nodiscard]] bool several_nodes() const;
  [[nodiscard]] std::size_t size() const { return peers_.size(); }

  RootAddress root_;
  Peer own_;
  Ways ways_;
  Log log_;
  std::vector<Peer> peers_;
  std::vector<Struck> faults_;
  int listener_ = -1;
  int from_ = -1;  // the rank before
  int to_ = -1;    // the rank after
  bool connected_ = false;
  int operations_ = 0;
  Segment pool_;
  Segment receive_;
  Segment send_;

  Stop stop_ = false;
  std::atomic<int> state_ = kInProgress;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::string last_error_;
  std::thread worker_;
};

}  // namespace distdoctor::sim
