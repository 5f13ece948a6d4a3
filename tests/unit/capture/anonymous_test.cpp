#include "capture/anonymous.h"

#include "capture/capture.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::capture;  // NOLINT(google-build-using-namespace)

namespace {

Address addr(std::string_view text) {
  return Address::parse(text).value();
}

constexpr std::string_view kUuid = "9f2c1a77-5b6c-4a0e-9d7e-0123456789ab";

machine::CapturedMachine site() {
  machine::CapturedMachine captured{.hostname = "gpu07.hpc.example.org", .release = "5.15.0"};
  captured.environment = {{"MASTER_ADDR", "gpu08"}, {"SLURM_JOB_NODELIST", "gpu[07-09]"}};
  captured.links = std::vector{
      Link{.name = "eth0",
           .index = 2,
           .mac = "b8:ce:f6:12:34:56",
           .addresses = {{.address = addr("10.20.30.40"), .prefix = 24, .label = "eth0"}}}};
  captured.routes =
      std::vector{Route{.destination = addr("10.20.30.0"), .prefix = 24, .interface = "eth0"},
                  Route{.destination = addr("0.0.0.0"), .gateway = addr("10.20.30.1")}};
  captured.routes_to["10.20.30.41 from 10.20.30.40"] = {.interface = "eth0"};
  captured.children["getent -s files ahosts gpu08"] = {0, "10.20.30.41     STREAM gpu08\n", ""};
  captured.children["nft -a list ruleset"] = {
      0, "ip saddr 10.20.30.0/24 drop; ip daddr 10.20.30.41-10.20.30.49 accept\n", ""};
  auto& files = captured.files;
  files["/etc/hosts"].text = "127.0.0.1 localhost\n10.20.30.41 gpu08.hpc.example.org gpu08\n";
  files["/etc/resolv.conf"].text = "search hpc.example.org\nnameserver 10.20.0.53\n";
  files["/etc/passwd"].text = "root:x:0:0::/root:/bin/sh\nmaria:x:2001:9:Maria M.:/home/maria:/x\n";
  files["/home/maria/.nccl.conf"].text = "NCCL_SOCKET_IFNAME=eth0\n";
  files["/proc/sys/kernel/random/boot_id"].text = std::string(kUuid) + "\n";
  files["/proc/driver/nvidia/gpus/0000:18:00.0/information"].text =
      "GPU UUID: \t GPU-" + std::string(kUuid) + "\n";
  files["/sys/class/infiniband/mlx5_0/node_guid"].text = "b8ce:f603:0012:3456\n";
  files["/sys/class/infiniband/mlx5_0/ports/1/gids/3"].text =
      "0000:0000:0000:0000:0000:ffff:0a14:1e28\n";
  files["/proc/7/environ"].text = std::string("MASTER_ADDR=gpu09\0RANK=0\0", 25);
  captured.kernel_log =
      std::string("<6>[    1.000000] eth0: b8:ce:f6:12:34:56 10.20.30.40:5, gpu07.\n");
  return captured;
}

}  // namespace

TEST_CASE("nothing that names the site is left") {
  const auto text = write(anonymous(site(), "river"));
  for (const std::string_view original :
       {"gpu07", "gpu08", "gpu09", "gpu[", "hpc.example", "maria", "Maria", "b8:ce", "b8ce:f603",
        "10.20.30.4", "10.20.0.53", "0a14:1e28", "9f2c1a77"}) {
    CAPTURE(original);
    CHECK(text.find(original) == std::string::npos);
  }
  for (const std::string_view kept : {"localhost", "127.0.0.1", "eth0", "mlx5_0", "0000:18:00.0",
                                      "5.15.0", "NCCL_SOCKET_IFNAME", "/root"}) {
    CAPTURE(kept);
    CHECK(text.find(kept) != std::string::npos);
  }
}

TEST_CASE("equal stays equal, in rows, texts, commands and file names") {
  const auto other = anonymous(site(), "river");
  const Link& link = other.links->front();
  const auto own = link.addresses.front().address;
  CHECK(other.kernel_log->find(link.mac + " " + own.text() + ":5, " +
                               other.hostname.substr(0, other.hostname.find('.')) + ".") !=
        std::string::npos);
  const Route& route = other.routes->front();
  CHECK(own.shares_prefix(route.destination, 24));
  CHECK(route.destination.bytes[3] == 0);
  CHECK((*other.routes)[1].destination == addr("0.0.0.0"));
  CHECK(other.routes_to.begin()->first.ends_with(" from " + own.text()));
  const auto master = other.environment.at("MASTER_ADDR");
  CHECK(other.children.contains("getent -s files ahosts " + master));
  CHECK(other.environment.at("SLURM_JOB_NODELIST").find(master) != std::string::npos);
  CHECK(other.files.at("/etc/hosts").text.find(" " + master + "\n") != std::string::npos);
  const auto gid = other.files.at("/sys/class/infiniband/mlx5_0/ports/1/gids/3").text;
  CHECK(addr(gid.substr(0, 39)) == addr("::ffff:" + own.text()));
  CHECK(gid.size() == 40);
}

TEST_CASE("captures of two nodes fit together when the word is the same") {
  auto second = site();
  second.hostname = "gpu08";
  CHECK(anonymous(second, "river").hostname ==
        anonymous(site(), "river").environment.at("MASTER_ADDR"));
  CHECK(anonymous(second, "river").hostname != anonymous(second, "sea").hostname);
}
