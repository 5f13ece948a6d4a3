// The probes' own bytes. Each message has a fixed size and begins with a word of ours, so that
// neither side takes a stranger for a probe. Numbers are big-endian.
#pragma once

#include <distdoctor/address.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::probe {

// The dialler speaks first: a listener that greeted everybody would feed our bytes to a worker of
// the job that was looking for its store.
struct Hello {
  static constexpr std::string_view kMark = "DDhello1";
  static constexpr std::size_t kBytes = 16;
  std::uint64_t nonce = 0;  // of the set that the dialler means
  bool operator==(const Hello&) const = default;
};
struct Greeting {
  static constexpr std::string_view kMark = "DDgreet1";
  static constexpr std::size_t kBytes = 33;
  std::uint64_t nonce = 0;  // of the set that answers
  Address seen_as = {};     // the dialler's address as the listener sees it, without a zone
  bool operator==(const Greeting&) const = default;
};

enum class BulkKind : std::uint8_t { ping = 1, data = 2, count = 3, pour = 4 };
struct BulkRequest {
  static constexpr std::string_view kMark = "DDbulk_1";
  static constexpr std::size_t kBytes = 26;
  BulkKind kind = BulkKind::ping;
  std::uint8_t round = 0;  // count: of which round
  std::uint64_t nonce = 0;
  // data: bytes that follow; count: the stream; pour: for how many ms bytes without end may follow
  // the reply
  std::uint64_t number = 0;
  bool operator==(const BulkRequest&) const = default;
};
struct BulkReply {
  static constexpr std::string_view kMark = "DDtaken1";
  static constexpr std::size_t kBytes = 24;
  std::uint64_t value = 0;   // ping: 0; data: bytes taken; count: packets received
  std::uint64_t missed = 0;  // count: dropped by the sink's own socket since the round began
  bool operator==(const BulkReply&) const = default;
};

enum class PacketKind : std::uint8_t { size = 1, loss = 2 };
struct Packet {
  static constexpr std::string_view kMark = "DDpackt1";
  static constexpr std::size_t kBytes = 30;  // at least: a `size` packet is filled up
  PacketKind kind = PacketKind::size;
  std::uint8_t round = 0;
  std::uint64_t nonce = 0;
  std::uint64_t stream = 0;
  std::uint32_t number = 0;  // loss: the sequence; size: bytes of UDP payload
  bool operator==(const Packet&) const = default;
};
struct PacketReply {  // to a `size` packet
  static constexpr std::string_view kMark = "DDcame_1";
  static constexpr std::size_t kBytes = 20;
  std::uint64_t stream = 0;
  std::uint32_t number = 0;  // bytes of UDP payload that came
  bool operator==(const PacketReply&) const = default;
};

inline constexpr std::uint32_t kMostLossPackets = 100'000;

template <class Message>
std::string encode(const Message& message);
// Nothing where the bytes are too few, or not ours. What follows the message is not looked at.
template <class Message>
std::optional<Message> decode(std::string_view bytes);

}  // namespace distdoctor::probe
