// What a path carries: round trip, packet sizes, a bulk transfer, loss.
#include <distdoctor/bulk_probe.h>

#include "probe/endpoint.h"
#include "probe/packets.h"
#include "probe/probe.h"
#include "probe/stream.h"
#include "probe/wire_speed.h"

#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace distdoctor::probe {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr int kPings = 10;
constexpr std::uint64_t kSmallBytes = 64;
constexpr std::uint64_t kBulk = kBulkBytes;
constexpr milliseconds kConnectTime{1'600};
constexpr milliseconds kSearchTime{2'000};
constexpr milliseconds kBulkTime{2'000};
constexpr milliseconds kLossTime{2'000};
constexpr std::size_t kAtOnce = 8;

Observed<double> round_trip(Stream& control, Deadline deadline) {
  std::vector<double> times;
  for (int i = 0; i < kPings; ++i) {
    const auto start = Deadline::Clock::now();
    const auto reply = control.ping(deadline);
    if (!reply) return unknown_because(reply.error());
    times.push_back(
        std::chrono::duration<double, std::milli>(Deadline::Clock::now() - start).count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

int mtu_of(const std::string& interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IF_NAMESIZE - 1);
  const auto fd = open_socket(false, SOCK_DGRAM);
  const bool ok = fd && ::ioctl(fd->get(), SIOCGIFMTU, &request) == 0;
  return ok ? request.ifr_mtu : 0;
}

// A transfer in full segments. False: the time for it was cut short.
bool send_bulk(const PathTarget& target, PathMtu& mtu, Deadline deadline) {
  mtu.bulk_bytes = 0;
  mtu.error.clear();
  auto bulk = Stream::connect(target, deadline.capped(kConnectTime));
  if (!bulk) {
    mtu.error = bulk.error().render();
    return false;
  }
  // The request goes ahead of the data and alone: only full segments count below.
  const auto reply = bulk->ping(deadline.capped(kConnectTime));
  const bool in_full = reply && deadline.remaining() >= kBulkTime;
  const auto before = bulk->acknowledged();
  const auto sent = bulk->send_data(kBulk, deadline.capped(kBulkTime));
  mtu.bulk_arrived = sent && sent->value == kBulk;
  const auto delivered = bulk->acknowledged() - before;
  const auto request = std::min<std::uint64_t>(delivered, BulkRequest::kBytes);
  mtu.bulk_bytes = static_cast<std::int64_t>(std::min(delivered - request, kBulk));
  if (!sent) mtu.error = sent.error().render();
  return in_full;
}

// In full segments, against one that fits into any packet. That nothing of the former arrives is
// believed when it was seen twice; false: there was no time for that.
bool transfer(const PathTarget& target, Stream& control, PathMtu& mtu, Deadline deadline) {
  const auto small = control.send_data(kSmallBytes, deadline.capped(kBulkTime));
  mtu.small_arrived = small && small->value == kSmallBytes;
  bool in_full = send_bulk(target, mtu, deadline);
  const auto nothing = [&] { return mtu.small_arrived && mtu.bulk_bytes == 0; };
  if (in_full && nothing()) in_full = send_bulk(target, mtu, deadline);
  return in_full || !nothing();
}

class Measuring {
 public:
  Measuring(const PathTarget& target, const Lookups& look_up, Deadline deadline, Path& path)
      : target_(target), deadline_(deadline), path_(path) {
    path_.purpose = target.purpose;
    path_.source = target.source;
    path_.destination = target.destination;
    const auto route = look_up.route_to(target.destination);
    if (route) path_.interface = route->interface;
  }

  void run() {
    auto control = Stream::connect(target_, deadline_.capped(kConnectTime));
    if (!control) return give_up(unknown_because(control.error()));
    path_.source = own_end(control->fd()).address();
    path_.rtt_ms = round_trip(*control, deadline_);
    if (!target_.streams.empty()) return measure_wire();
    auto packets = PacketSource::open(target_);
    measure_mtu(*control, packets);
    path_.loss = packets ? measure_loss(*packets, *control) : unknown_because(packets.error());
  }

 private:
  void give_up(const Unknown& why) {
    path_.rtt_ms = why;
    path_.mtu = why;
    path_.loss = why;
    if (!target_.streams.empty()) path_.wire = why;
  }

  void measure_wire() {
    path_.mtu = Unknown{.text = "not asked for"};
    path_.loss = Unknown{.text = "not asked for"};
    path_.wire = wire_speeds(target_, path_.rtt_ms.known() ? *path_.rtt_ms : 0, deadline_);
  }

  void measure_mtu(Stream& control, Result<PacketSource>& packets) {
    PathMtu mtu{.link_mtu = mtu_of(path_.interface)};
    const bool sure = transfer(target_, control, mtu, deadline_);
    if (packets && mtu.link_mtu > 0) {
      const double ms = path_.rtt_ms.known() ? *path_.rtt_ms : 0;
      const auto trip = nanoseconds(static_cast<std::int64_t>(ms * 1e6));
      const int largest = packets->largest(mtu.link_mtu, trip, deadline_.capped(kSearchTime));
      if (largest > 0) mtu.largest = largest;
    }
    if (!mtu.largest && mtu.error.empty()) mtu.error = "no UDP packet of ours was answered";
    const bool narrow = mtu.largest && *mtu.largest < mtu.link_mtu;  // UDP tells the same
    if (!sure && !narrow) {
      path_.mtu = Unknown{Why::timed_out, "a transfer in full segments: too little time"};
    } else {
      path_.mtu = mtu;
    }
  }

  Observed<Loss> measure_loss(PacketSource& packets, Stream& control) {
    if (target_.loss_packets <= 0) return Unknown{.text = "not asked for"};
    const auto loss = packets.loss(target_.loss_packets, control, deadline_.capped(kLossTime));
    if (!loss) return unknown_because(loss.error());
    // A filter for all UDP is none of the job's business, which speaks TCP.
    if (loss->received == 0) return Unknown{Why::failed, "no UDP packet of ours came through"};
    return *loss;
  }

  const PathTarget& target_;
  Deadline deadline_;
  Path& path_;
};

}  // namespace

PathAnswer measure_paths(const PathRequest& request, const Lookups& look_up, Deadline deadline) {
  const Deadline end = deadline.capped(milliseconds(std::max(request.timeout_ms, 1)));
  PathAnswer answer;
  answer.paths.resize(request.targets.size());
  std::vector<std::unique_ptr<Measuring>> all;
  for (std::size_t i = 0; i < answer.paths.size(); ++i) {
    all.push_back(std::make_unique<Measuring>(request.targets[i], look_up, end, answer.paths[i]));
  }
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < std::min(kAtOnce, all.size()); ++i) {
    workers.emplace_back([&] {
      for (std::size_t mine = next++; mine < all.size(); mine = next++) all[mine]->run();
    });
  }
  workers.clear();  // joins: each measurement ends by `end`
  return answer;
}

}  // namespace distdoctor::probe
