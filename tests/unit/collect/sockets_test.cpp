#include "collect/collectors.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

machine::CapturedMachine rank0_listens() {
  machine::CapturedMachine captured{.uptime_s = 100};
  auto& files = captured.files;
  files["/etc/passwd"].text = "ann:x:1000:1000::/home/ann:/bin/bash\n";
  files["/proc/9/stat"].text = "9 (python3) S 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 100 1";
  files["/proc/9/status"].text = "Uid:\t1000\t1000\n";
  files["/proc/9/cmdline"].text = std::string("python3\0--password\0s3cret\0", 26);
  files["/proc/9/fd/4"].link = "socket:[77]";
  captured.sockets = std::vector<machine::SocketRow>{
      {.listening = true,
       .local = Address{.v6 = true},
       .local_port = 29500,
       .receive_queue = 3,
       .send_queue = 128,
       .inode = 77},
      {.state = TcpState::syn_sent,
       .local = *Address::parse("10.0.0.1"),
       .local_port = 40000,
       .remote = *Address::parse("10.0.0.2"),
       .remote_port = 29500,
       .retransmits = 5},
  };
  return captured;
}

SocketFacts sockets_of(const machine::CapturedMachine& captured) {
  NodeFacts node;
  collect_sockets(*machine::Machine::captured(captured), {}, node);
  return *node.sockets;
}

}  // namespace

TEST_CASE("listeners and connections of a captured machine, with their owners") {
  const auto sockets = sockets_of(rank0_listens());
  REQUIRE(sockets.listeners.size() == 1);
  const auto& listener = sockets.listeners[0];
  CHECK(listener.address.unspecified());
  CHECK(listener.port == 29500);
  CHECK(listener.queued == 3);
  CHECK(listener.backlog == 128);
  CHECK(listener.owner == Owner{9, "python3 --password ***", "ann", 1000, 99});
  REQUIRE(sockets.connections.size() == 1);
  const auto& connection = sockets.connections[0];
  CHECK(connection.state == TcpState::syn_sent);
  CHECK(connection.remote.text() == "10.0.0.2");
  CHECK(connection.retransmits == 5);
  CHECK_FALSE(connection.owner.has_value());
  CHECK(sockets.owners_visible);
}

TEST_CASE("owners are not all visible: a refusal, or a listener that nobody here holds") {
  auto refused = rank0_listens();
  refused.files["/proc/12/fd"].error = EACCES;
  CHECK_FALSE(sockets_of(refused).owners_visible);
  auto elsewhere = rank0_listens();
  elsewhere.files["/proc/9/fd/4"].link = "socket:[78]";
  const auto sockets = sockets_of(elsewhere);
  CHECK_FALSE(sockets.owners_visible);
  CHECK_FALSE(sockets.listeners[0].owner.has_value());
}
