// Answers of data centre bridging and MLNX_OFED's files: any bytes are facts or none, and never
// trouble.
#include "collect/qos.h"

#include "machine/qos_rows.h"
#include "target.h"

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

using namespace distdoctor;  // NOLINT(google-build-using-namespace): all of them are under test

void must(bool holds) {
  if (!holds) std::abort();
}

// A message as long as these bytes are, where one may begin.
void read_message(std::string_view bytes) {
  if (bytes.size() < sizeof(nlmsghdr)) return;
  std::vector<std::uint32_t> words((bytes.size() + 3) / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  auto* const message = reinterpret_cast<nlmsghdr*>(words.data());
  message->nlmsg_len = static_cast<std::uint32_t>(bytes.size());
  const auto qos = machine::decode_qos(message);
  if (!qos) return;
  must(qos->trust.empty() || qos->trust == "dscp" || qos->trust == "pcp");
  must(!qos->pause || (*qos->pause >= 0 && *qos->pause < 256));
  for (const auto& row : qos->by_dscp) {
    must(row.dscp >= 0 && row.dscp < 64 && row.priority >= 0 && row.priority < 8);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_message(text);
  const auto trust = collect::parse_trust(text);
  must(trust.empty() || trust == "dscp" || trust == "pcp");
  const auto forced = collect::parse_traffic_class(text);
  must(!forced || (*forced >= 0 && *forced < 256));
  return 0;
}
