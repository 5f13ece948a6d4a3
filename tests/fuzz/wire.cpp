// Bytes that reach a listener of ours: what is taken for a probe is written as the same bytes.
#include "probe/wire.h"

#include "target.h"

#include <cstdlib>
#include <string_view>

namespace {

template <class Message>
void round_trip(std::string_view bytes) {
  const auto message = distdoctor::probe::decode<Message>(bytes);
  if (!message) return;
  const auto again = distdoctor::probe::decode<Message>(distdoctor::probe::encode(*message));
  if (again != message) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace distdoctor::probe;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  round_trip<Hello>(bytes);
  round_trip<Greeting>(bytes);
  round_trip<BulkRequest>(bytes);
  round_trip<BulkReply>(bytes);
  round_trip<Packet>(bytes);
  round_trip<PacketReply>(bytes);
  return 0;
}
