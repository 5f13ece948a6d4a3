#include "collect/world.h"

#include "collect/collectors.h"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <map>
#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

using Names = std::vector<std::string>;

World seen(const machine::CapturedMachine& captured) {
  NodeFacts node;
  collect_world(*machine::Machine::captured(captured), {}, node);
  REQUIRE(node.world.known());
  return *node.world;
}

Names hidden(const machine::CapturedMachine& captured) {
  return hidden_parts(*machine::Machine::captured(captured));
}

machine::CapturedMachine with(const std::map<std::string, std::string>& texts) {
  machine::CapturedMachine captured;
  for (const auto& [path, text] : texts) captured.files[path].text = text;
  return captured;
}

std::vector<machine::SocketRow> listening(const std::vector<std::uint16_t>& ports) {
  std::vector<machine::SocketRow> rows;
  for (const auto port : ports) rows.push_back({.listening = true, .local_port = port});
  return rows;
}

}  // namespace

TEST_CASE("the map of the first user namespace") {
  CHECK(is_initial_user_map("         0          0 4294967295\n"));
  CHECK_FALSE(is_initial_user_map("         0       1000          1\n"));
  CHECK_FALSE(is_initial_user_map("0 1000 1\n1 100000 65536\n"));
  CHECK_FALSE(is_initial_user_map(""));
}

TEST_CASE("capabilities by name") {
  CHECK(parse_capabilities("CapInh:\t0000000000000001\nCapEff:\t0000000000804000\n") ==
        Names{"CAP_IPC_LOCK", "CAP_SYS_NICE"});
  CHECK(parse_capabilities("CapEff:\t000001ffffffffff\n").size() == 41);
  CHECK(parse_capabilities("CapEff:\t000001ffffffffff\n").back() == "CAP_CHECKPOINT_RESTORE");
  CHECK(parse_capabilities("CapEff:\t0000000000000000\n").empty());
  CHECK(parse_capabilities("CapEffective:\tff\n").empty());
  CHECK(parse_capabilities("CapEff:\tall\n").empty());
}

TEST_CASE("sidecars by all of their ports") {
  CHECK(mesh_of(listening({22, 15001, 15006, 15021})) == "istio");
  CHECK(mesh_of(listening({4140, 4143, 4191})) == "linkerd");
  CHECK(mesh_of(listening({15001, 15006})).empty());
  auto rows = listening({15001, 15006});
  rows.push_back({.listening = false, .local_port = 15021});
  CHECK(mesh_of(rows).empty());
}

TEST_CASE("what sysfs hides of what the kernel has") {
  CHECK(has_memory_nodes("Mems_allowed_list:\t0-1\n"));
  CHECK_FALSE(has_memory_nodes("Mems_allowed_list:\t0\n"));
  CHECK_FALSE(has_memory_nodes(""));
  CHECK(hidden({}) == Names{});
  auto captured = with({{"/proc/bus/pci/devices", "0018\t10de2330\n"},
                        {"/proc/self/status", "Mems_allowed_list:\t0-1\n"},
                        {"/dev/infiniband/uverbs0", ""}});
  CHECK(hidden(captured) ==
        Names{"/sys/bus/pci/devices", "/sys/devices/system/node", "/sys/class/infiniband"});
  captured.files["/sys/bus/pci/devices/0000:03:00.0"].link = "../../../devices/pci0000:00";
  captured.files["/sys/devices/system/node/node0/cpumap"].text = "ff";
  captured.files["/sys/class/infiniband/mlx5_0/fw_ver"].text = "28";
  CHECK(hidden(captured) == Names{});
}

TEST_CASE("a sysfs of another network namespace") {
  machine::CapturedMachine captured;
  captured.links = std::vector<Link>{{.name = "lo", .index = 1, .kind = LinkKind::loopback},
                                     {.name = "eth0", .index = 7}};
  captured.files["/sys/class/net/eth0/ifindex"].text = "2\n";
  CHECK(hidden(captured) == Names{"/sys/class/net"});
  captured.files["/sys/class/net/eth0/ifindex"].text = "7\n";
  CHECK(hidden(captured) == Names{});
  captured.links = std::vector<Link>{{.name = "lo", .index = 1, .kind = LinkKind::loopback}};
  CHECK(hidden(captured) == Names{});
}

TEST_CASE("the world of a captured machine") {
  auto captured = with({{"/proc/self/status", "CapEff:\t0000000000004000\n"},
                        {"/proc/self/uid_map", "0 1000 1\n"},
                        {"/proc/cpuinfo", "flags\t\t: fpu hypervisor\n"},
                        {"/sys/class/dmi/id/sys_vendor", "Amazon EC2\n"},
                        {"/proc/self/mountinfo", "25 22 0:23 / /dev/shm rw - tmpfs tmpfs rw\n"}});
  captured.files["/proc/self/ns/ipc"].link = "ipc:[4026531839]";
  captured.environment = {{"https_proxy", "http://ann:hunter2@proxy:3128"}, {"no_proxy", ""}};
  captured.sockets = listening({4140, 4143, 4191});
  captured.file_systems["/tmp"] = {.size = 10, .free = 5};
  const World expected{
      .namespaces = {{"ipc", "ipc:[4026531839]"}},
      .initial_user_namespace = false,
      .capabilities = {"CAP_IPC_LOCK"},
      .shm_device = "0:23",
      .platform = "kvm",
      .cloud = "aws",
      .service_mesh = "linkerd",
      .disks = {{.purpose = "temporary files", .path = "/tmp", .size = 10, .free = 5}},
      .proxies = {{"https_proxy", "http://ann:***@proxy:3128"}}};
  CHECK(seen(captured) == expected);
}

TEST_CASE("without /proc nothing is known") {
  NodeFacts node;
  collect_world(*machine::Machine::captured({}), {}, node);
  CHECK(node.world.why().text == "open /proc/self/status: No such file or directory");
}

TEST_CASE("the world of this machine") {
  const auto machine = machine::Machine::live();
  REQUIRE(machine.has_value());
  NodeFacts node;
  collect_world(**machine, {}, node);
  REQUIRE(node.world.known());
  CHECK(node.world->namespaces.at("net").starts_with("net:["));
  CHECK_FALSE(node.world->disks.empty());
  struct stat about{};
  if (node.world->shm_device.empty() || ::stat("/dev/shm", &about) != 0) return;
  const auto device =
      std::to_string(major(about.st_dev)) + ":" + std::to_string(minor(about.st_dev));
  CHECK(node.world->shm_device == device);  // as NCCL compares it: st_dev
}
