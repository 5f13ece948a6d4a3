#include "collect/names.h"

#include "collect/collectors.h"
#include "collect/patience.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

std::vector<Address> addresses(const std::vector<std::string_view>& texts) {
  std::vector<Address> all;
  for (const auto text : texts) all.push_back(*Address::parse(text));
  return all;
}

struct AhostsRow {
  std::string name;
  std::string text;
  std::vector<std::string_view> addresses;
};
const std::vector<AhostsRow> kAhosts = {
    {"three kinds of socket are one address",
     "10.0.0.1        STREAM node0\n10.0.0.1        DGRAM  \n10.0.0.1        RAW    \n",
     {"10.0.0.1"}},
    {"the resolver's order stays",
     "fd00::2         STREAM node0\n10.0.0.2        STREAM \n10.0.0.1        STREAM \n",
     {"fd00::2", "10.0.0.2", "10.0.0.1"}},
    {"a zone", "fe80::1%eth0    STREAM node0\n", {"fe80::1%eth0"}},
    {"noise", "getent: something\n\n10.0.0.1 STREAM node0\n", {"10.0.0.1"}},
    {"nothing", "", {}},
};

NodeFacts names_of(machine::CapturedMachine captured, std::vector<std::string> names) {
  NodeFacts node;
  collect_names(*machine::Machine::captured(std::move(captured)), {.names = std::move(names)},
                node);
  return node;
}

}  // namespace

TEST_CASE("what getent ahosts prints") {
  for (const auto& row : kAhosts) {
    CAPTURE(row.name);
    CHECK(parse_ahosts(row.text) == addresses(row.addresses));
  }
}

TEST_CASE("how getent ends: found, not known, cannot") {
  using machine::ChildOutput;
  CHECK(*read_getent(ChildOutput{0, "10.0.0.1 STREAM n\n", ""}) == addresses({"10.0.0.1"}));
  CHECK(read_getent(ChildOutput{2, "", ""})->empty());
  const auto usage = read_getent(ChildOutput{1, "", "unrecognized option: s\n"});
  CHECK(usage.why() ==
        Unknown{Why::unsupported, "run getent: exit code 1: unrecognized option: s"});
  const auto missing = read_getent(std::unexpected(errno_error("run", "getent", ENOENT)));
  CHECK(missing.why().kind == Why::unsupported);
  const auto late = read_getent(std::unexpected(errno_error("run", "getent", ETIMEDOUT)));
  CHECK(late.why().kind == Why::timed_out);
}

TEST_CASE("names of a captured machine: each source by itself, our own name last") {
  machine::CapturedMachine captured{.hostname = "node1"};
  captured.children = {{"getent -s files ahosts node0", {0, "127.0.1.1 STREAM node0\n", ""}},
                       {"getent -s dns ahosts node0", {0, "10.0.0.1 STREAM node0\n", ""}},
                       {"getent ahosts node0", {0, "127.0.1.1 STREAM node0\n", ""}},
                       {"getent ahosts node1", {2, "", ""}}};
  const auto node = names_of(captured, {"node0", "node0"});
  REQUIRE(node.names.known());
  REQUIRE(node.names->size() == 2);
  const auto& node0 = node.names->at(0);
  CHECK(node0.name == "node0");
  CHECK(*node0.files == addresses({"127.0.1.1"}));
  CHECK(*node0.dns == addresses({"10.0.0.1"}));
  CHECK(*node0.all == addresses({"127.0.1.1"}));
  const auto& node1 = node.names->at(1);
  CHECK(node1.name == "node1");
  CHECK(node1.all->empty());
  CHECK(node1.dns.why().kind == Why::unsupported);  // no getent there
}

TEST_CASE("a hosts file: aliases, comments, any case, each address once") {
  const std::string_view text =
      "127.0.0.1 localhost # 10.9.9.9 node0\n"
      "10.0.0.1 node0.example Node0\n10.0.0.1\tnode0\nfd00::1 node0\nrubbish node0\n";
  CHECK(parse_hosts(text, "node0") == addresses({"10.0.0.1", "fd00::1"}));
  CHECK(parse_hosts(text, "node").empty());
}

TEST_CASE("where no getent can be run the hosts file still answers") {
  machine::CapturedMachine captured{.hostname = "node1"};
  captured.files = {{"/etc/hosts", {.text = "10.0.0.1 node0\n"}}};
  const auto node = names_of(std::move(captured), {"node0"});
  CHECK(*node.names->at(0).files == addresses({"10.0.0.1"}));
  CHECK(*node.names->at(0).all == addresses({"10.0.0.1"}));
  CHECK(node.names->at(0).dns.why().kind == Why::unsupported);
  CHECK(node.names->at(1).files->empty());
  CHECK(node.names->at(1).all.why().kind == Why::unsupported);  // DNS may know it
}

TEST_CASE("other peers are asked for once, after the job's own names") {
  machine::CapturedMachine captured{.hostname = "node1"};
  captured.children = {{"getent ahosts node2", {0, "10.0.0.2 STREAM node2\n", ""}}};
  NodeFacts node;
  collect_names(*machine::Machine::captured(std::move(captured)), {.also = {"node2", "node1"}},
                node);
  REQUIRE(node.names->size() == 2);
  CHECK(node.names->at(1).name == "node2");
  CHECK(*node.names->at(1).all == addresses({"10.0.0.2"}));
  CHECK(node.names->at(1).files.why().kind == Why::not_collected);
}

TEST_CASE("addresses are their own answer, and words that are no names reach no command line") {
  const auto node = names_of({}, {"fe80::1%eth0", "-x", "a b"});
  CHECK(*node.names->at(0).all == addresses({"fe80::1%eth0"}));
  CHECK(node.names->at(0).files->empty());
  CHECK(node.names->at(1).all.why().kind == Why::failed);
  CHECK(node.names->at(2).all.why().kind == Why::failed);
}

TEST_CASE("what cannot be a host's name is asked for all the same, as one word") {
  machine::CapturedMachine captured{.hostname = "node1"};
  captured.children = {{"getent ahosts tcp://node0", {2, "", ""}},
                       {"getent ahosts n\u00f6de0", {0, "10.0.0.1 STREAM\n", ""}}};
  const auto node = names_of(std::move(captured), {"tcp://node0", "n\u00f6de0", "a;b"});
  REQUIRE(node.names->at(0).all.known());
  CHECK(node.names->at(0).all->empty());
  CHECK(*node.names->at(1).all == addresses({"10.0.0.1"}));
  CHECK(node.names->at(2).all.why().kind == Why::failed);
}

TEST_CASE("a resolver that had no time to answer is not silent") {
  using std::chrono::milliseconds;
  const Observed<int> silent = Unknown{Why::timed_out, "it did not end in time"};
  auto hurried = silent;
  forgive_silence(hurried, milliseconds(400), milliseconds(3000));
  CHECK(hurried.why().kind == Why::not_collected);
  CHECK(hurried.why().text == "no answer within the 400 ms that were left");
  auto waited = silent;
  forgive_silence(waited, milliseconds(4000), milliseconds(3000));
  CHECK(waited == silent);
  Observed<int> answered = 7;
  forgive_silence(answered, milliseconds(400), milliseconds(3000));
  CHECK(answered.known());
}
