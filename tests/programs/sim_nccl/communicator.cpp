#include "communicator.h"

#include <fmt/format.h>

#include <signal.h>  // NOLINT(modernize-deprecated-headers): raise() by its POSIX name
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

extern char** environ;

namespace distdoctor::sim {
namespace {

constexpr const char* kVersion = "2.28.9+cuda13.0-SIMULATED";
// Of larger messages this much is summed, and the time that the rest would take is slept.
constexpr std::size_t kRealNumbers = (std::size_t{1} << 20) / sizeof(std::uint64_t);
constexpr std::size_t kChunk = 8192;  // numbers

std::uint64_t device_of_shm() {
  struct stat about{};
  ::stat("/dev/shm", &about);
  return about.st_dev;
}

void close_all(std::initializer_list<int> fds) {
  for (const int fd : fds) {
    if (fd >= 0) ::close(fd);
  }
}

}  // namespace

Communicator::Communicator(const RootAddress& root, int size, int rank, int device)
    : root_(root), ways_(ways_here()) {
  const auto node = own_node();
  std::strncpy(own_.node.data(), node.c_str(), own_.node.size() - 1);
  own_.rank = rank;
  own_.size = size;
  own_.device = device;
  own_.pid = ::getpid();
  own_.shm_device = device_of_shm();
  log_.device = device;
  worker_ = std::thread(&Communicator::work, this);
}

Communicator::~Communicator() {
  stop_ = true;
  changed_.notify_all();
  worker_.join();
  close_all({listener_, from_, to_});
}

std::string Communicator::last_error() const {
  const std::scoped_lock lock(mutex_);
  return last_error_;
}

void Communicator::work() {
  state_ = init();
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      while (tasks_.empty() && !stop_) changed_.wait_for(lock, std::chrono::milliseconds(20));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void Communicator::sum(std::span<std::uint64_t> numbers, std::function<void()> done) {
  const std::scoped_lock lock(mutex_);
  tasks_.emplace_back([this, numbers, done = std::move(done)] {
    const int code = stop_ ? kInternalError : all_reduce(numbers);
    if (code != kSuccess) state_ = code;
    done();
  });
  changed_.notify_all();
}

int Communicator::fail(int code, const std::string& where, const std::string& text) {
  log_.warn(where, text);
  const std::scoped_lock lock(mutex_);
  if (last_error_.empty()) last_error_ = text;
  return code;
}

int Communicator::remote(const Peer& peer) {
  return fail(
      kRemoteError, "socket.cc:76",
      fmt::format("socketProgress: Connection closed by remote peer {}", text_of(peer.ring)));
}

const Peer& Communicator::before() const {
  return peers_[(static_cast<std::size_t>(own_.rank) + size() - 1) % size()];
}
const Peer& Communicator::after() const {
  return peers_[(static_cast<std::size_t>(own_.rank) + 1) % size()];
}
bool Communicator::several_nodes() const {
  return std::ranges::any_of(peers_, [this](const Peer& peer) { return peer.node != own_.node; });
}

// --- init ---

void Communicator::log_variables() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    const auto name = text.substr(0, equals);
    if (!name.starts_with("NCCL_") || name.starts_with("NCCL_DEBUG") || equals + 1 == text.size()) {
      continue;
    }
    if (name == "NCCL_NET") continue;  // the real one does not tell it
    const char* const set = name == "NCCL_IB_HCA" ? "set to" : "set by environment to";
    log_.info(fmt::format("{} {} {}", name, set, text.substr(equals + 1)));
  }
}

void Communicator::log_network() {
  std::string names;
  int number = 0;
  for (const Interface& one : ways_.interfaces) {
    names += fmt::format(" [{}]{}:{}", number++, one.name, text_of(one.address));
  }
  std::string cards;
  number = 0;
  for (const Hca& hca : ways_.hcas) cards += fmt::format(" [{}]{}:1/IB", number++, hca.name);
  if (ways_.network == "IB") {
    const Interface& first = ways_.interfaces.front();
    log_.info(
        fmt::format("NET/IB : Using{} [RO]; OOB {}:{}", cards, first.name, text_of(first.address)));
  } else {
    log_.info("NET/IB : No device found.");
    log_.info("NET/Socket : Using" + names);
  }
  log_.info("Using network " + ways_.network);
}

int Communicator::init() {
  log_.info(std::string("NCCL version ") + kVersion);
  log_variables();
  if (ways_.interfaces.empty()) {
    return fail(kInvalidUsage, "bootstrap.cc:107", "Bootstrap : no socket interface found");
  }
  const Interface& first = ways_.interfaces.front();
  log_.info(fmt::format("Bootstrap: Using {}:{}", first.name, text_of(first.address)));
  if (ways_.network.empty()) {
    return fail(kInvalidUsage, "net.cc:320", "Failed to initialize any NET plugin");
  }
  log_network();
  own_.ring = first.address;
  listener_ = listen_on(own_.ring);
  if (listener_ < 0) return fail(kSystemError, "socket.cc:500", "Call to bind failed: SIMULATED");
  log_.info(fmt::format("ncclCommInitRankConfig comm 0x1 rank {} nranks {} cudaDev {} - Init START",
                        own_.rank, own_.size, own_.device));
  peers_ = meet(root_, own_, stop_);
  if (peers_.empty()) return fail(kRemoteError, "bootstrap.cc:618", "the root is gone, SIMULATED");
  if (const int code = join_ring(); code != kSuccess) return code;
  faults_ = strikes(ways_, peers_, own_, root_.number);
  log_.info("ncclCommInitRankConfig comm 0x1 - Init COMPLETE");
  return kSuccess;
}

int Communicator::join_ring() {
  for (const Peer& peer : peers_) {
    if (peer.rank == own_.rank || peer.node != own_.node || peer.device != own_.device) continue;
    return fail(
        kInvalidUsage, "init.cc:760",
        fmt::format("Duplicate GPU detected : rank {} and rank {} both on CUDA device {}000",
                    own_.rank, peer.rank, own_.device + 1));
  }
  if (size() == 1) return kSuccess;
  to_ = connect_to(after().ring, stop_);
  from_ = to_ < 0 ? -1 : accept_from(listener_, stop_);
  return from_ < 0 ? remote(to_ < 0 ? after() : before()) : kSuccess;
}

// --- at the first collective, as from 2.22 on ---

void Communicator::log_channels() {
  const auto name = [&](Transport transport, const char* side) {
    switch (transport) {
      case Transport::p2p:
        return std::string(ways_.cumem ? "via P2P/CUMEM" : "via P2P/IPC");
      case Transport::shm:
        return std::string("via SHM/direct/direct");
      default:
        break;
    }
    if (ways_.hcas.empty()) return fmt::format("[{}] via NET/Socket/0", side);
    return fmt::format("[{}] via NET/IB/0{}", side, ways_.gdr ? "/GDRDMA" : "");
  };
  const auto line = [&](const Peer& a, const Peer& b, const char* side) {
    log_.info(fmt::format("Channel 00/0 : {}[{}] -> {}[{}] {}", a.rank, a.device, b.rank, b.device,
                          name(transport_between(ways_, a, b), side)));
  };
  line(own_, after(), "send");
  if (transport_between(ways_, before(), own_) == Transport::net) line(before(), own_, "receive");
}

int Communicator::connect() {
  if (size() > 1) {
    if (transport_between(ways_, own_, after()) == Transport::none) {
      return fail(
          kSystemError, "transport.cc:110",
          fmt::format("No transport found for rank {} -> rank {}", own_.rank, after().rank));
    }
    log_channels();
    if (const int code = share_segments(); code != kSuccess) return code;
    log_.info("Connected all rings, use ring PXN 0 GDR 0");
  }
  connected_ = true;
  return kSuccess;
}

// The receiver makes a segment and names it; the sender attaches; then its name goes.
int Communicator::share_segments() {
  const bool pooled = several_nodes() || ways_.network == "Socket";
  if (several_nodes() && pooled) {
    if (const auto words = pool_.create(kProxyPool); !words.empty()) {
      return fail(kSystemError, "shmutils.cc:114", words);
    }
    pool_.unlink();
  }
  std::array<char, 64> name{};
  const bool receives = transport_between(ways_, before(), own_) == Transport::shm;
  const bool sends = transport_between(ways_, own_, after()) == Transport::shm;
  if (receives) {
    if (const auto words = receive_.create(kShmReceive); !words.empty()) {
      return fail(kSystemError, "shmutils.cc:114", words);
    }
    std::strncpy(name.data(), receive_.path().c_str(), name.size() - 1);
    if (!send_all(from_, name.data(), name.size(), stop_)) return remote(before());
  }
  for (const Struck& struck : faults_) {
    const bool here = struck.here && struck.fault.layer == "shm" && struck.fault.from <= 1;
    if (here && struck.fault.ailment == "hang") hang(false);
    if (here && struck.fault.ailment == "deaf") hang(true);
  }
  char seen = 1;
  if (sends) {
    if (!receive_all(to_, name.data(), name.size(), stop_)) return remote(after());
    if (const auto words = send_.attach(name.data(), kShmReceive); !words.empty()) {
      return fail(kSystemError, "shmutils.cc:150", words);
    }
    if (!send_all(to_, &seen, 1, stop_)) return remote(after());
  }
  if (receives) {
    if (!receive_all(from_, &seen, 1, stop_)) return remote(before());
    receive_.unlink();
  }
  return kSuccess;
}

// --- the all-reduce ---

void Communicator::hang(bool deaf) const {
  while (deaf || !stop_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

int Communicator::suffer(bool& corrupt) {
  for (const Struck& struck : faults_) {
    const Fault& fault = struck.fault;
    if (!struck.here || operations_ < fault.from) continue;
    if (fault.ailment == "hang" || fault.ailment == "deaf") hang(fault.ailment == "deaf");
    if (fault.ailment == "crash") ::raise(SIGSEGV);
    if (fault.ailment == "corrupt") corrupt = true;
    if (fault.ailment == "fail") {
      const bool cuda = words_of(fault).starts_with("Cuda");
      return fail(cuda ? kUnhandledCuda : kSystemError, "transport.cc:1", words_of(fault));
    }
    if (stop_) return kInternalError;
  }
  return kSuccess;
}

// A chain that adds up, and a chain that hands the sums round.
int Communicator::reduce(std::span<std::uint64_t> numbers) {
  const bool first = own_.rank == 0;
  const bool last = own_.rank == own_.size - 1;
  std::vector<std::uint64_t> theirs(kChunk);
  for (std::size_t at = 0; at < numbers.size(); at += kChunk) {
    const auto part = numbers.subspan(at, std::min(kChunk, numbers.size() - at));
    if (!first) {
      if (!receive_all(from_, theirs.data(), part.size_bytes(), stop_)) return remote(before());
      for (std::size_t i = 0; i < part.size(); ++i) part[i] += theirs[i];
    }
    if (!last && !send_all(to_, part.data(), part.size_bytes(), stop_)) return remote(after());
  }
  for (std::size_t at = 0; at < numbers.size(); at += kChunk) {
    const auto part = numbers.subspan(at, std::min(kChunk, numbers.size() - at));
    if (!last && !receive_all(from_, part.data(), part.size_bytes(), stop_)) {
      return remote(before());
    }
    const bool hands_on = last || own_.rank + 2 < own_.size;
    if (hands_on && !send_all(to_, part.data(), part.size_bytes(), stop_)) return remote(after());
  }
  return kSuccess;
}

int Communicator::all_reduce(std::span<std::uint64_t> numbers) {
  if (state_ != kSuccess) return state_;
  ++operations_;
  const auto start = std::chrono::steady_clock::now();
  if (!connected_) {
    if (const int code = connect(); code != kSuccess) return code;
  }
  bool corrupt = false;
  if (const int code = suffer(corrupt); code != kSuccess) return code;
  const auto real = numbers.first(std::min(numbers.size(), kRealNumbers));
  // What several ranks add must not cancel out.
  if (corrupt) real.front() += static_cast<std::uint64_t>(own_.rank) + 1;
  if (size() > 1) {
    if (const int code = reduce(real); code != kSuccess) return code;
  }
  if (numbers.size() > kRealNumbers) {
    const double seconds = seconds_of(ways_, peers_, faults_, numbers.size_bytes());
    std::this_thread::sleep_until(start + std::chrono::duration<double>(seconds));
  }
  return stop_ ? kInternalError : kSuccess;
}

}  // namespace distdoctor::sim
