// Agents in other worlds: inside a process's namespaces, pushed to where no program is, and beside
// a file system that never answers.
#include "fleet/fleet.h"
#include "fleet/here.h"
#include "support/netns.h"

#include <doctest/doctest.h>

#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is not in <csignal>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <variant>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::fleet;  // NOLINT(google-build-using-namespace): a test of it
namespace fs = std::filesystem;

namespace {

Deadline soon() {
  return Deadline::after(std::chrono::seconds(30));
}

fs::path fresh_folder(const std::string& name) {
  const fs::path folder = fs::temp_directory_path() / (name + std::to_string(::getpid()));
  fs::create_directories(folder);
  return folder;
}

// `command` of a shell, killed with its process group at the end.
class Running {
 public:
  explicit Running(const std::string& command) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::setpgid(0, 0);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

std::string wait_for(const fs::path& file) {
  std::string word;
  for (const Deadline deadline = soon(); word.empty() && !deadline.expired();) {
    std::ifstream(file) >> word;
    ::usleep(10'000);
  }
  return word;
}

}  // namespace

TEST_CASE("Fleet: --pid enters the process's namespaces before any thread") {
  if (const std::string why = testing::why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  const fs::path folder = fresh_folder("distdoctor-pid-");
  const std::string file = (folder / "pid").string();
  // The sleep is the one that lives in the namespaces; it tells its pid as we see it.
  const Running world(
      "unshare -n -u -i -m -p -f --mount-proc sh -c '"
      "hostname elsewhere; sleep 100' & "
      "sleep 0.3; pgrep -P $! | head -1 > " +
      file + "; wait");
  const std::string pid = wait_for(file);
  REQUIRE_FALSE(pid.empty());
  const auto fleet = Fleet::open({}, {.enter_pid = std::stoi(pid)}, soon());
  const PeerState peer = fleet->peers().at(0);
  REQUIRE_MESSAGE(peer.reached, peer.not_reached);
  CHECK(peer.context == Context::pid);
  const Ask ask{peer.host, CollectRequest{.collectors = {"identity", "links"}}};
  const auto answers = fleet->ask({&ask, 1}, soon());
  REQUIRE(answers.at(0).known());
  const auto& node = std::get<NodeFacts>(*answers[0]);
  CHECK(node.host == own_hostname());  // the peer's name is not the world's
  CHECK(node.identity->hostname == "elsewhere");
  CHECK(node.links->size() == 1);
  fleet->close();
  fs::remove_all(folder);
}

TEST_CASE("Fleet: --pid runs no program of the container, and reads its hosts file") {
  if (const std::string why = testing::why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  const fs::path folder = fresh_folder("distdoctor-trap-");
  const std::string at = folder.string();
  // Whoever runs this getent leaves a mark.
  std::ofstream(folder / "getent") << "#!/bin/sh\ntouch " << at << "/ran\n";
  std::ofstream(folder / "hosts") << "10.9.8.7 master\n";
  fs::permissions(folder / "getent", fs::perms::owner_all);
  const Running world("unshare -n -m -p -f --mount-proc sh -c 'mount --bind " + at +
                      "/getent /usr/bin/getent; mount --bind " + at +
                      "/hosts /etc/hosts; sleep 100' & sleep 0.3; pgrep -P $! | head -1 > " + at +
                      "/pid; wait");
  const std::string pid = wait_for(folder / "pid");
  REQUIRE_FALSE(pid.empty());
  const auto fleet = Fleet::open({}, {.enter_pid = std::stoi(pid)}, soon());
  REQUIRE_MESSAGE(fleet->peers().at(0).reached, fleet->peers().at(0).not_reached);
  const Ask ask{fleet->peers().at(0).host, CollectRequest{.names = {"master", "elsewhere"}}};
  const auto answers = fleet->ask({&ask, 1}, soon());
  REQUIRE(answers.at(0).known());
  const auto& node = std::get<NodeFacts>(*answers[0]);
  REQUIRE(node.names.known());
  CHECK(*node.names->at(0).all == std::vector{*Address::parse("10.9.8.7")});
  CHECK(node.names->at(1).all.why().text.find("programs of a container") != std::string::npos);
  CHECK_FALSE(fs::exists(folder / "ran"));
  fleet->close();
  fs::remove_all(folder);
}

TEST_CASE("Fleet: --pid auto finds the worker, and takes over its limits") {
  if (const std::string why = testing::why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  const fs::path folder = fresh_folder("distdoctor-auto-");
  const std::string file = (folder / "ready").string();
  const Running world(
      "unshare -n -u -i -m -p -f --mount-proc sh -c 'hostname elsewhere; ulimit -l 64; "
      "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1 exec python3 -c "
      "\"import time; open(\\\"" +
      file + "\\\", \\\"w\\\").write(\\\"x\\\"); time.sleep(100)\"'");
  REQUIRE_FALSE(wait_for(file).empty());
  const auto fleet = Fleet::open({}, {.enter_job = true}, soon());
  const PeerState peer = fleet->peers().at(0);
  REQUIRE_MESSAGE(peer.reached, peer.not_reached);
  CHECK(peer.context == Context::pid);
  const Ask ask{peer.host, CollectRequest{.collectors = {"identity", "limits"}}};
  const auto answers = fleet->ask({&ask, 1}, soon());
  REQUIRE(answers.at(0).known());
  const auto& node = std::get<NodeFacts>(*answers[0]);
  CHECK(node.identity->hostname == "elsewhere");
  CHECK(node.limits->at("memlock").soft == 65536);
  fleet->close();
  fs::remove_all(folder);
}

TEST_CASE("Fleet: --pid of a process that is not there") {
  const auto fleet = Fleet::open({}, {.enter_pid = 0x7ffffffe}, soon());
  CHECK_FALSE(fleet->peers().at(0).reached);
  CHECK(fleet->peers().at(0).not_reached.find("No such file or directory") != std::string::npos);
}

TEST_CASE("Fleet: a peer without the program says so, or gets it and keeps nothing") {
  const fs::path folder = fresh_folder("distdoctor-push-");
  LaunchOptions options{.launch_template = "env XDG_RUNTIME_DIR=" + folder.string() +
                                           " PATH=/usr/bin:/bin sh -c 'exec \"$@\"' {host}",
                        .remote_path = "/nowhere/distdoctor"};
  const auto without = Fleet::open({"there"}, options, soon());
  CHECK(without->peers().at(0).not_reached ==
        "distdoctor is neither /nowhere/distdoctor there nor in PATH");
  // With a sanitizer's tables we are larger than what a channel takes at once.
  if (fs::file_size("/proc/self/exe") > std::uintmax_t{200} << 20) {
    MESSAGE("skipped: this program is too large to be pushed");
    fs::remove_all(folder);
    return;
  }
  options.push = true;
  const auto with = Fleet::open({"there"}, options, soon());
  REQUIRE_MESSAGE(with->peers().at(0).reached, with->peers().at(0).not_reached);
  CHECK(fs::is_empty(folder));
  const Ask ask{"there", CollectRequest{.collectors = {"identity"}}};
  CHECK(with->ask({&ask, 1}, soon()).at(0).known());
  with->close();
  // The helper came along, and none that stands beside the pushed program is taken for it.
  const fs::path beside = folder / "libexec" / "distdoctor";
  fs::create_directories(beside);
  std::ofstream(beside / "vendor") << "#!/bin/sh\necho planted\n";
  fs::permissions(beside / "vendor", fs::perms::owner_all);
  options.launch_template = "env DISTDOCTOR_ODD=helper " + options.launch_template.substr(4);
  const auto helped = Fleet::open({"there"}, options, soon());
  REQUIRE_MESSAGE(helped->peers().at(0).reached, helped->peers().at(0).not_reached);
  const Ask about{"there", CollectRequest{.collectors = {"links"}}};
  const auto said = helped->ask({&about, 1}, soon());
  REQUIRE(said.at(0).known());
  const std::string answer = std::get<NodeFacts>(*said[0]).links.why().text;
  CHECK_MESSAGE(answer.starts_with("{\"version\":"), answer);
  helped->close();
  fs::remove_all(folder);
}

TEST_CASE("Fleet: a collector at a dead file system costs one gap") {
  const char* const program = DISTDOCTOR_HUNG_FUSE;
  if (::geteuid() != 0 || !fs::exists("/dev/fuse") || !fs::exists(program)) {
    MESSAGE("skipped: needs root, /dev/fuse and the test program hung_fuse");
    return;
  }
  const fs::path folder = fresh_folder("distdoctor-fuse-");
  const std::string ready = folder.string() + ".ready";
  fs::remove(ready);
  {
    const Running mount("sleep 1000 | " + std::string(program) + " " + folder.string() + " > " +
                        ready);
    REQUIRE(wait_for(ready) == "ready");
    const auto fleet = Fleet::open({"there"},
                                   {.launch_template = "env DISTDOCTOR_ODD=" + folder.string() +
                                                       "/file sh -c 'exec \"$@\"' {host}"},
                                   soon());
    REQUIRE_MESSAGE(fleet->peers().at(0).reached, fleet->peers().at(0).not_reached);
    const Ask ask{"there", CollectRequest{}};
    const auto answers = fleet->ask({&ask, 1}, Deadline::after(std::chrono::seconds(8)));
    REQUIRE(answers.at(0).known());
    const auto& node = std::get<NodeFacts>(*answers[0]);
    CHECK(node.links.why().kind == Why::timed_out);
    CHECK(node.identity.known());
    CHECK(node.routes.known());
    CHECK(node.kernel.known());
    fleet->close();
  }
  ::umount2(folder.c_str(), MNT_DETACH);
  fs::remove_all(folder);
  fs::remove(ready);
}
