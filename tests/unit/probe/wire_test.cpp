#include "probe/wire.h"

#include "support/builders.h"

#include <doctest/doctest.h>

#include <string>

namespace distdoctor::testing {
namespace {

using namespace probe;

// Each message comes back as it was, has the size that it says, and is no other message.
template <class Message>
void round_trip(const Message& message) {
  const std::string bytes = encode(message);
  CHECK(bytes.size() == Message::kBytes);
  CHECK(decode<Message>(bytes) == message);
  CHECK(decode<Message>(bytes + "more") == message);
  CHECK_FALSE(decode<Message>(bytes.substr(0, bytes.size() - 1)));
  std::string other = bytes;
  other[0] = 'X';
  CHECK_FALSE(decode<Message>(other));
}

TEST_CASE("the probes' messages survive the wire") {
  round_trip(Hello{0x0123456789abcdef});
  round_trip(Greeting{~std::uint64_t{0}, addr("10.0.0.7")});
  round_trip(Greeting{1, addr("fd00::7")});
  round_trip(BulkRequest{BulkKind::count, 2, 3, 0x8000000000000000});
  round_trip(BulkReply{5, 6});
  round_trip(Packet{PacketKind::loss, 1, 2, 3, 0xfffffffe});
  round_trip(PacketReply{7, 9000});
}

TEST_CASE("numbers travel with the most significant byte first") {
  CHECK(encode(Hello{0x4142434445464748}) == "DDhello1ABCDEFGH");
}

}  // namespace
}  // namespace distdoctor::testing
