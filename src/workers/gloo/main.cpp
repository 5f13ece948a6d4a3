// A rank over Gloo, connected as PyTorch's ProcessGroupGloo connects (ProcessGroupGloo.cpp): by
// GLOO_SOCKET_IFNAME, else by the address of our own host name, else over loopback.
#include "base/utf8.h"
#include "codec/read.h"
#include "codec/write.h"
#include "workers/rank/backend.h"
#include "workers/rank/run.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace distdoctor::workers {
namespace {

// Whoever started us ends a rank that hangs; Gloo's own patience only must not be shorter.
constexpr auto kPatience = std::chrono::minutes(30);

// What was set is exchanged at the next wait, and again until the key is there. So all ranks
// exchange equally often, though rank 0 of Gloo asks for less (rendezvous/context.cc).
class MeetingStore : public ::gloo::rendezvous::Store {
 public:
  explicit MeetingStore(Meeting& meeting) : meeting_(meeting) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    fresh_[key] = to_hex({data.data(), data.size()});
  }
  std::vector<char> get(const std::string& key) override {
    wait({key});
    return known_.at(key);
  }
  void wait(const std::vector<std::string>& keys) override {
    if (!fresh_.empty()) exchange();
    for (const std::string& key : keys) {
      while (!known_.contains(key)) exchange();
    }
  }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& /*timeout*/) override {
    wait(keys);
  }

 private:
  using Texts = std::map<std::string, std::string>;

  template <class T>
  static T or_throw(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().render());
    return *std::move(result);
  }

  void exchange() {
    const auto parts = or_throw(meeting_.exchange(codec::write_json(std::exchange(fresh_, {}))));
    for (const std::string& part : parts) {
      Texts texts;
      if (const auto read = codec::read_json(part, texts, "read what a rank set"); !read) {
        throw std::runtime_error(read.error().render());
      }
      for (const auto& [key, digits] : texts) {
        const auto bytes = from_hex(digits);
        if (!bytes) throw std::runtime_error("a rank set what is no hex");
        known_[key].assign(bytes->begin(), bytes->end());
      }
    }
  }

  Meeting& meeting_;
  Texts fresh_;
  std::map<std::string, std::vector<char>> known_;
};

// Gloo throws; the words are what a user of it would see.
template <class Act>
Result<void> without_throwing(std::string_view attempt, Act act) {
  try {
    act();
    return {};
  } catch (const std::exception& error) {
    return failure(attempt, error.what());
  }
}

bool is_own_address(const std::string& hostname) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(hostname.c_str(), nullptr, &hints, &found) != 0) return false;
  bool own = false;
  for (const addrinfo* one = found; one != nullptr && !own; one = one->ai_next) {
    const int fd = ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    own = fd >= 0 && ::bind(fd, one->ai_addr, one->ai_addrlen) == 0;
    if (fd >= 0) ::close(fd);
  }
  ::freeaddrinfo(found);
  return own;
}

// Of several names in GLOO_SOCKET_IFNAME the first: a context of Gloo has one device.
::gloo::transport::tcp::attr chosen_device() {
  ::gloo::transport::tcp::attr attr;
  const char* const names = std::getenv("GLOO_SOCKET_IFNAME");  // NOLINT(concurrency-mt-unsafe)
  if (names != nullptr && *names != '\0') {
    attr.iface = names;
    attr.iface.resize(std::min(attr.iface.find(','), attr.iface.size()));
    return attr;
  }
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  attr.hostname = is_own_address(name.data()) ? name.data() : "127.0.0.1";
  return attr;
}

class GlooBackend : public Backend {
 public:
  Result<void> load(const WorkerJob& /*job*/) override { return {}; }

  Result<void> take_device(const WorkerJob& /*job*/) override {
    return without_throwing("make Gloo's device", [this] {
      device_ = ::gloo::transport::tcp::CreateDevice(chosen_device());
    });
  }

  Result<void> join(const WorkerJob& job, Meeting& meeting) override {
    return without_throwing("connect Gloo's mesh", [&] {
      context_ = std::make_shared<::gloo::rendezvous::Context>(job.rank, job.size);
      context_->setTimeout(kPatience);
      MeetingStore store(meeting);
      context_->connectFullMesh(store, device_);
    });
  }

  Result<void> reserve(std::size_t bytes) override {
    numbers_.resize(std::max(numbers_.size(), bytes / sizeof(std::uint64_t)), 1);
    return {};
  }
  Result<void> fill(std::span<const std::uint64_t> numbers) override {
    std::ranges::copy(numbers, numbers_.begin());
    return {};
  }
  Result<void> fetch(std::span<std::uint64_t> numbers) override {
    std::copy_n(numbers_.begin(), numbers.size(), numbers.begin());
    return {};
  }

  Result<void> all_reduce(std::size_t bytes) override {
    return without_throwing("all-reduce", [&] {
      ::gloo::AllreduceOptions options(context_);
      options.setOutput(numbers_.data(), bytes / sizeof(std::uint64_t));
      options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(
          &::gloo::sum<std::uint64_t>));
      ::gloo::allreduce(options);
    });
  }

  Result<double> own_work(std::size_t bytes) override {
    const auto start = std::chrono::steady_clock::now();
    const auto end = numbers_.begin() + static_cast<std::ptrdiff_t>(bytes / sizeof(std::uint64_t));
    kept_ = std::accumulate(numbers_.begin(), end, std::uint64_t{0});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  Result<void> leave() override { return {}; }

  // "tcp, pci=0000:00:05.0, iface=eth0, speed=10000, addr=[10.0.0.1]"
  [[nodiscard]] std::vector<std::string> interfaces() const override {
    constexpr std::string_view kMark = "iface=";
    const std::string text = device_->str();
    const auto begin = text.find(kMark);
    if (begin == std::string::npos) return {};
    const auto name = text.substr(begin + kMark.size());
    return {name.substr(0, name.find(','))};
  }

 private:
  std::shared_ptr<::gloo::transport::Device> device_;
  std::shared_ptr<::gloo::rendezvous::Context> context_;
  std::vector<std::uint64_t> numbers_;
  std::uint64_t kept_ = 0;  // so that no compiler leaves the work out
};

}  // namespace
}  // namespace distdoctor::workers

int main() {
  distdoctor::workers::GlooBackend backend;
  const int status = distdoctor::workers::run_rank(backend);
  // Not `return`: Gloo's destructors wait for peers that may be gone.
  std::_Exit(status);
}
