#include "codec/codec.h"
#include "support/builders.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::codec;  // NOLINT(google-build-using-namespace): a test of it
using testing::addr;

namespace {

const std::vector<Request> kRequests = {
    CollectRequest{.collectors = {"links"}, .names = {"node0"}},
    ListenRequest{.id = "a", .address = addr("10.0.0.1"), .spread = 8, .nonce = ~std::uint64_t{0}},
    DialRequest{.targets = {{.address = addr("::1"), .port = 29500, .nonce = 1}}, .timeout_ms = 5},
    PathRequest{.targets = {{.source = addr("10.0.0.1"), .udp_port = 9}}, .timeout_ms = 5},
    PathRequest{.targets = {{.bulk_port = 9, .streams = {1, 8}, .speed_ms = 1000}}},
    ReportRequest{.id = "a"},
    DuplicateRequest{.choices = {{"eth0", addr("10.0.0.1")}}},
    RdmaRequest{.id = "a", .device = "mlx5_0", .sizes = {64}, .other = RdmaEnd{.queue_pair = 7}},
    RunRequest{.id = "0", .jobs = {{.rank = 1, .size = 2}}, .stage_ms = 5},
};

const std::vector<Answer> kAnswers = {
    testing::healthy_node(1, 2),
    ListenAnswer{.ports = {32768, 60999}, .udp_port = 5, .watching = "not root"},
    DialAnswer{.dials = {testing::good_dial(Purpose::gloo, "10.0.0.1", 40000, "10.0.0.2")}},
    PathAnswer{
        .paths = {{.source = addr("10.0.0.1"), .destination = addr("10.0.0.2"), .rtt_ms = 0.25}}},
    ReportAnswer{.syns = {{.source = addr("10.0.0.2"), .port = 7, .interface = "eth0"}}},
    DuplicateAnswer{.duplicates = Unknown{Why::denied, "not root"}},
    RdmaAnswer{.end = {.queue_pair = 7, .lid = 3}, .messages = {{.bytes = 64, .arrived = true}}},
    RunAnswer{.blobs = {{.rank = 1, .bytes = "00ff"}}, .ranks = {{.rank = 0}}},
};

}  // namespace

TEST_CASE("every request and answer reads back as it was written") {
  REQUIRE(kRequests.size() >= std::variant_size_v<Request>);
  for (const Request& request : kRequests) {
    const std::string text = write_request(request);
    CAPTURE(text);
    const auto back = read_request(text);
    REQUIRE(back.has_value());
    CHECK(*back == request);
  }
  REQUIRE(kAnswers.size() == std::variant_size_v<Answer>);
  for (const Answer& answer : kAnswers) {
    const std::string text = write_answer(answer);
    CAPTURE(text);
    const auto back = read_answer(text);
    REQUIRE(back.has_value());
    CHECK(*back == answer);
  }
}

TEST_CASE("read_request: what is no request") {
  struct Row {
    std::string_view name;
    std::string_view text;
    std::string_view message;
  };
  const std::vector<Row> rows = {
      {"no object", "3", "it has no body"},
      {"no type", R"({"body":{}})", "nobody knows the type ''"},
      {"no body", R"({"type":"dial"})", "it has no body"},
      {"a command", R"({"type":"exec","body":{"command":"rm"}})", "nobody knows the type 'exec'"},
      {"a type that is no text", R"({"type":1,"body":{}})", "a number where a string belongs"},
      {"a bad port", R"({"type":"dial","body":{"targets":[{"port":-1}]}})",
       "-1 is out of range (0 to 65535) (targets[0].port)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto request = read_request(row.text);
    REQUIRE_FALSE(request.has_value());
    CHECK(request.error().render() == "read a request: " + std::string(row.message));
  }
}
