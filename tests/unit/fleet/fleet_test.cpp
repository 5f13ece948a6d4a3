// Real agents: this program, run once more as `distdoctor_tests agent` (support/odd_agent.h),
// behind a launch template that does what its host's name says.
#include "fleet/fleet.h"

#include "fleet/here.h"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::fleet;  // NOLINT(google-build-using-namespace): a test of it

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// $0 is the host, "$@" the command that starts an agent.
constexpr std::string_view kTemplate = R"(sh -c '
  case $0 in
    mute) exec sleep 100;;
    noisy) echo "Last login: today"; echo "module: loaded" >&2; exec "$@";;
    yes) exec yes garbage;;
    garbled) printf "distdoctor-agent/1 00000000000000000000000000000000\ngarbage"; exec sleep 100;;
    future) echo distdoctor-agent/2 00000000000000000000000000000000; exec sleep 100;;
    refused) echo "ssh: connect to host $0 port 22: Connection refused" >&2; exit 255;;
    silent) exit 7;;
    stdout) echo "no such container: $0"; exit 1;;
    slow) echo "module load failed"; exec sleep 100;;
    loud) yes "a word on stderr" >&2;;
    good*) exec "$@";;
    *) exec env DISTDOCTOR_ODD="$0" "$@";;
  esac' {host})";

std::unique_ptr<Fleet> open_fleet(const std::vector<std::string>& hosts,
                                  milliseconds deadline = seconds(30)) {
  return Fleet::open(hosts, {.launch_template = std::string(kTemplate)}, Deadline::after(deadline));
}

Ask collect(const std::string& host, const std::vector<std::string>& collectors) {
  return {host, CollectRequest{.collectors = collectors}};
}

// Another one than localhost and our hostname.
std::string name_at_loopback() {
  std::ifstream hosts("/etc/hosts");
  for (std::string line; std::getline(hosts, line);) {
    std::istringstream words(line);
    std::string address;
    words >> address;
    if (!address.starts_with("127.")) continue;
    for (std::string name; words >> name;) {
      if (name != "localhost" && name != own_hostname()) return name;
    }
  }
  return "";
}

bool no_child_left() {
  return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
}

}  // namespace

TEST_CASE("Fleet: no peers means this machine, through an agent of its own") {
  const auto fleet = Fleet::open({}, {}, Deadline::after(seconds(30)));
  const PeerState peer = fleet->peers().at(0);
  CHECK(peer.host == own_hostname());
  CHECK(peer.local);
  CHECK(peer.channel == "local");
  REQUIRE_MESSAGE(peer.reached, peer.not_reached);
  REQUIRE(peer.clock_offset_ms.known());
  CHECK(std::abs(*peer.clock_offset_ms) <= *peer.clock_error_ms);

  const Ask ask = collect(peer.host, {});
  const auto answers = fleet->ask({&ask, 1}, Deadline::after(seconds(30)));
  REQUIRE(answers.at(0).known());
  const auto& node = std::get<NodeFacts>(*answers[0]);
  CHECK(node.host == peer.host);
  CHECK(node.reached);
  CHECK(node.channel == "local");
  CHECK(node.identity.known());
  CHECK(node.links.known());
  CHECK(node.clock_error_ms.known());
  fleet->close();
  CHECK(no_child_left());
}

TEST_CASE("Fleet: peers that cannot be reached say why, and nobody waits for them") {
  struct Row {
    std::string host;
    std::string_view why;
  };
  const std::vector<Row> rows = {
      {"mute", "the agent said nothing in time"},
      {"yes", "more than 65536 bytes of something else: garbage; garbage"},
      {"garbled", "more than the 4096 allowed"},
      {"future", "it speaks distdoctor-agent/2, we speak distdoctor-agent/1"},
      {"refused", "ssh: connect to host refused port 22: Connection refused"},
      {"silent", "sh ended with status 7"},
      {"stdout", "no such container: stdout"},
      {"slow", "the agent said nothing in time (module load failed)"},
      {"loud", "a word on stderr"},
  };
  std::vector<std::string> hosts = {"good0", "noisy"};
  for (const Row& row : rows) hosts.push_back(row.host);
  const auto fleet = open_fleet(hosts, seconds(8));
  const auto peers = fleet->peers();
  CHECK_MESSAGE(peers.at(0).reached, peers.at(0).not_reached);
  CHECK_MESSAGE(peers.at(1).reached, peers.at(1).not_reached);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PeerState& peer = peers.at(i + 2);
    CAPTURE(peer.host);
    CHECK_FALSE(peer.reached);
    CHECK_MESSAGE(peer.not_reached.find(rows[i].why) != std::string::npos, peer.not_reached);
    CHECK(peer.not_reached.find('\n') == std::string::npos);
  }
  const std::vector<Ask> asks = {collect("mute", {}), collect("good0", {"links"}),
                                 collect("nobody", {})};
  const auto answers = fleet->ask(asks, Deadline::after(seconds(30)));
  CHECK(answers.at(0).why().kind == Why::failed);
  CHECK(answers.at(1).known());
  CHECK(answers.at(2).why().text == "no peer has this name");
  fleet->close();
  CHECK(no_child_left());
}

TEST_CASE("Fleet: a few silent peers do not take the time of the others") {
  const Deadline long_time = Deadline::after(seconds(600));
  const auto fleet = Fleet::open({"good0", "good1", "good2", "slow"},
                                 {.launch_template = std::string(kTemplate)}, long_time);
  CHECK_FALSE(long_time.expired());
  const auto peers = fleet->peers();
  for (std::size_t i = 0; i < 3; ++i) CHECK_MESSAGE(peers[i].reached, peers[i].not_reached);
  CHECK(peers.at(3).not_reached == "the agent said nothing in time (module load failed)");
  const Ask ask = collect("good1", {"kernel"});
  CHECK(fleet->ask({&ask, 1}, Deadline::after(seconds(30))).at(0).known());
}

TEST_CASE("Fleet: no figure for a time that nobody had") {
  const auto fleet = open_fleet({"hang"});
  const Ask ask = collect("hang", {"links"});
  const auto answers = fleet->ask({&ask, 1}, Deadline::after(milliseconds(1)));
  // Either the agent was quick enough to say that it gave up, or nobody asked it.
  const auto& answer = answers.at(0);
  const Unknown why = answer.known() ? std::get<NodeFacts>(*answer).links.why() : answer.why();
  CHECK(why.kind == Why::timed_out);
  CHECK_MESSAGE(why.text.find_first_of("0123456789") == std::string::npos, why.text);
}

TEST_CASE("Fleet: agents that misbehave later cost only their own facts") {
  struct Row {
    std::string host;
    Why kind;
    std::string_view why;
  };
  const std::vector<Row> rows = {
      {"hang", Why::timed_out, "it did not end in time"},
      {"stop", Why::timed_out, "no answer within"},
      {"die", Why::failed, "was killed by signal 9"},
      {"throw", Why::failed, "a bug"},
  };
  std::vector<Ask> asks = {collect("good0", {"links", "identity"})};
  std::vector<std::string> hosts = {"good0"};
  for (const Row& row : rows) {
    hosts.push_back(row.host);
    asks.push_back(collect(row.host, {"links", "identity"}));
  }
  const auto fleet = open_fleet(hosts);
  for (const PeerState& peer : fleet->peers()) REQUIRE_MESSAGE(peer.reached, peer.not_reached);
  const auto answers = fleet->ask(asks, Deadline::after(seconds(6)));
  REQUIRE(answers.at(0).known());
  CHECK(std::get<NodeFacts>(*answers[0]).links.known());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].host);
    // What had come before stays; a stopped or dead agent may have sent nothing at all.
    const auto& answer = answers.at(i + 1);
    const Unknown why = answer.known() ? std::get<NodeFacts>(*answer).links.why() : answer.why();
    CHECK(why.kind == rows[i].kind);
    CHECK_MESSAGE(why.text.find(rows[i].why) != std::string::npos, why.text);
  }
  fleet->close();
  CHECK(no_child_left());
}

TEST_CASE("Fleet: prints between frames, answers larger than a frame, a flood") {
  const auto fleet = open_fleet({"print", "large", "flood"});
  const std::vector<Ask> asks = {collect("print", {"links"}), collect("large", {"links"}),
                                 collect("flood", {"links"})};
  const auto answers = fleet->ask(asks, Deadline::after(seconds(30)));
  REQUIRE(answers.at(0).known());
  CHECK(std::get<NodeFacts>(*answers[0]).links.known());
  REQUIRE(answers.at(1).known());
  CHECK(std::get<NodeFacts>(*answers[1]).links->size() == 5'000);
  REQUIRE_FALSE(answers.at(2).known());
  CHECK(answers.at(2).why().kind == Why::failed);
}

TEST_CASE("Fleet: sixteen agents at once, each under its own name, one place noticed") {
  std::vector<std::string> hosts;
  std::vector<Ask> asks;
  for (int i = 0; i < 16; ++i) {
    hosts.push_back("good" + std::to_string(i));
    asks.push_back(collect(hosts.back(), {"identity", "kernel"}));
  }
  const auto fleet = open_fleet(hosts);
  const auto answers = fleet->ask(asks, Deadline::after(seconds(30)));
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    CAPTURE(hosts[i]);
    REQUIRE(answers.at(i).known());
    CHECK(std::get<NodeFacts>(*answers[i]).host == hosts[i]);
    CHECK(std::get<NodeFacts>(*answers[i]).identity.known());
    CHECK(fleet->peers().at(i).same_as == (i == 0 ? "" : "good0"));
  }
}

TEST_CASE("Fleet: Ctrl-C ends a running ask with what has come, and all later ones") {
  const auto fleet = open_fleet({"hang", "good0"});
  const std::vector<Ask> asks = {collect("hang", {"links", "identity"})};
  std::jthread user([&] { fleet->interrupt(); });
  const Deadline long_time = Deadline::after(seconds(600));
  const auto answers = fleet->ask(asks, long_time);
  CHECK_FALSE(long_time.expired());
  if (answers.at(0).known()) {
    CHECK(std::get<NodeFacts>(*answers[0]).links.why().text == "interrupted");
  } else {
    CHECK(answers[0].why().text == "interrupted");
  }
  CHECK(fleet->ask(asks, long_time).at(0).why().text == "interrupted");
}

TEST_CASE("place_of: by name, by address, and a template asks for the name alone") {
  const auto here = [](std::string_view peer, bool name_only) {
    return place_of(peer, {std::string(peer)}, name_only, Deadline::after(seconds(20))).here;
  };
  CHECK(here(own_hostname(), true));
  CHECK(here(own_hostname(), false));
  CHECK(here("127.0.0.1", false));
  CHECK_FALSE(here("127.0.0.1", true));
  CHECK_FALSE(here("192.0.2.1", false));  // RFC 5737: nobody's
  const auto own = own_addresses();
  REQUIRE_FALSE(own.empty());
  CHECK(here(own.back().text(), false));
  CHECK_FALSE(here("nobody-of-that-name@" + own_hostname(), true));
  CHECK(here("root@" + own_hostname(), true) == (::geteuid() == 0));
}

TEST_CASE("place_of: an address is meant, whoever else is here") {
  const std::vector<std::string> peers = {"127.0.0.1", own_hostname()};
  const Place place = place_of("127.0.0.1", peers, false, Deadline::after(seconds(20)));
  CHECK(place.here);
  CHECK(place.misled.empty());
}

TEST_CASE("place_of: a name leads here though another peer is this machine") {
  const std::string alias = name_at_loopback();
  if (alias.empty()) return;  // this machine's hosts file has none
  const Deadline deadline = Deadline::after(seconds(20));
  CHECK(place_of(alias, {alias, "node7"}, false, deadline).here);
  const Place place = place_of(alias, {alias, own_hostname()}, false, deadline);
  CHECK_FALSE(place.here);
  CHECK_MESSAGE(place.misled.ends_with(", of " + own_hostname()), place.misled);
}
