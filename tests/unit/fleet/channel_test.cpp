#include "fleet/channel.h"

#include "fleet/greeting.h"

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::fleet;  // NOLINT(google-build-using-namespace): a test of it

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Pair {
  Fd a;
  Fd b;
};

Pair make_pair_of_sockets() {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

Channel channel_over(Side side, Fd& fd) {
  return {side, Fd(::dup(fd.get())), std::move(fd)};
}

const std::string kNonce(kNonceDigits, 'a');

}  // namespace

TEST_CASE("Channel: greeting after noise, frames both ways, clocks compared") {
  Pair pair = make_pair_of_sockets();
  std::jthread agent([&] {
    Channel channel = channel_over(Side::agent, pair.b);
    channel.stream().post("motd\n" + greeting(kNonce));
    channel.begin_beats();
    const auto incoming = channel.next(Deadline::after(seconds(20)));
    if (incoming && *incoming) channel.post({.id = (*incoming)->id, .type = "echo"});
    static_cast<void>(channel.next(Deadline::after(seconds(20))));
  });
  Channel channel = channel_over(Side::coordinator, pair.a);
  CHECK(channel.await_greeting(Deadline::after(seconds(20))).value() == kNonce);
  CHECK(channel.noise() == "motd\n");
  channel.post({.id = 9, .type = "hello"});
  const auto incoming = channel.next(Deadline::after(seconds(20)));
  REQUIRE((incoming && *incoming));
  CHECK((*incoming)->id == 9);
  channel.begin_beats();
  channel.compare_clocks();
  const Deadline deadline = Deadline::after(seconds(20));
  REQUIRE(channel.next(deadline).has_value());
  CHECK(channel.clocks_compared());
  CHECK_FALSE(deadline.expired());  // it ends the wait
  REQUIRE(channel.clock_offset().has_value());
  CHECK(std::abs(channel.clock_offset()->offset_ms) <= channel.clock_offset()->error_ms);
}

TEST_CASE("Channel: what ends it") {
  struct Row {
    std::string_view name;
    std::string bytes;
    std::string_view message;
  };
  std::string beats;
  for (int i = 0; i < 1000; ++i) beats += encode({.type = "beat"});
  const std::vector<Row> rows = {
      {"end of file", "", "end of file"},
      {"garbage", "garbage", "more than the 4096 allowed"},
      {"a flood of beats", beats, "a flood of beats"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Pair pair = make_pair_of_sockets();
    Channel channel = channel_over(Side::coordinator, pair.a);
    REQUIRE(::write(pair.b.get(), row.bytes.data(), row.bytes.size()) ==
            static_cast<ssize_t>(row.bytes.size()));
    pair.b.reset();
    const auto incoming = channel.next(Deadline::after(seconds(20)));
    REQUIRE_FALSE(incoming.has_value());
    CHECK(incoming.error().render().find(row.message) != std::string::npos);
  }
}

TEST_CASE("Channel: deadlines, nudges and stop from another thread") {
  Pair pair = make_pair_of_sockets();
  Channel channel = channel_over(Side::coordinator, pair.a);
  const auto none = channel.next(Deadline::after(milliseconds(1)));
  CHECK((none.has_value() && !none->has_value()));
  {
    const std::jthread other([&] { channel.stream().nudge(); });
    const auto nudged = channel.next(Deadline::after(seconds(60)));
    CHECK((nudged.has_value() && !nudged->has_value()));
  }
  const std::jthread other([&] { channel.stop(); });
  CHECK_FALSE(channel.next(Deadline::after(seconds(60))).has_value());
}

TEST_CASE("Channel: the launcher's words are kept, the last of them") {
  Pair pair = make_pair_of_sockets();
  Pair words = make_pair_of_sockets();
  Channel channel(Side::coordinator, Fd(::dup(pair.a.get())), std::move(pair.a),
                  std::move(words.a));
  const std::string text = std::string(10'000, 'x') + "the end";
  REQUIRE(::write(words.b.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  static_cast<void>(channel.next(Deadline::after(milliseconds(50))));
  CHECK(channel.stream().words().size() == 4096);
  CHECK(channel.stream().words().ends_with("the end"));
}
