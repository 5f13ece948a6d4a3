#include "probe/wire.h"

#include <distdoctor/enum_names.h>

#include <concepts>
#include <type_traits>

namespace distdoctor::probe {
namespace {

// One list of fields a message, walked by the writer and by the reader.
template <class V, Is<Hello> T>
void walk(V& v, T& x) {
  v(x.nonce);
}
template <class V, Is<Greeting> T>
void walk(V& v, T& x) {
  v(x.nonce);
  v(x.seen_as.v6);
  for (auto& byte : x.seen_as.bytes) v(byte);
}
template <class V, Is<BulkRequest> T>
void walk(V& v, T& x) {
  v(x.kind);
  v(x.round);
  v(x.nonce);
  v(x.number);
}
template <class V, Is<BulkReply> T>
void walk(V& v, T& x) {
  v(x.value);
  v(x.missed);
}
template <class V, Is<Packet> T>
void walk(V& v, T& x) {
  v(x.kind);
  v(x.round);
  v(x.nonce);
  v(x.stream);
  v(x.number);
}
template <class V, Is<PacketReply> T>
void walk(V& v, T& x) {
  v(x.stream);
  v(x.number);
}

struct Writer {
  std::string bytes;
  template <class T>
  void operator()(T value) {
    const auto number = static_cast<std::uint64_t>(value);
    for (std::size_t i = sizeof value; i-- > 0;) {
      bytes += static_cast<char>((number >> (8 * i)) & 0xffU);
    }
  }
};

struct Reader {
  std::string_view bytes;
  template <class T>
  void operator()(T& value) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) {
      number = (number << 8U) | static_cast<std::uint8_t>(bytes[i]);
    }
    bytes.remove_prefix(sizeof value);
    value = static_cast<T>(number);
  }
};

}  // namespace

template <class Message>
std::string encode(const Message& message) {
  Writer writer{std::string(Message::kMark)};
  walk(writer, message);
  return writer.bytes;
}

template <class Message>
std::optional<Message> decode(std::string_view bytes) {
  if (bytes.size() < Message::kBytes || !bytes.starts_with(Message::kMark)) return std::nullopt;
  Message message;
  Reader reader{bytes.substr(Message::kMark.size())};
  walk(reader, message);
  return message;
}

template std::string encode(const Hello&);
template std::string encode(const Greeting&);
template std::string encode(const BulkRequest&);
template std::string encode(const BulkReply&);
template std::string encode(const Packet&);
template std::string encode(const PacketReply&);
template std::optional<Hello> decode(std::string_view);
template std::optional<Greeting> decode(std::string_view);
template std::optional<BulkRequest> decode(std::string_view);
template std::optional<BulkReply> decode(std::string_view);
template std::optional<Packet> decode(std::string_view);
template std::optional<PacketReply> decode(std::string_view);

}  // namespace distdoctor::probe
