#include "capture/anonymous.h"

#include "capture/capture.h"
#include "capture/common_words.h"
#include "collect/collect.h"
#include "rules/predict.h"
#include "support/check_cases.h"
#include "support/container_machines.h"
#include "support/gpu_machines.h"
#include "support/rdma_machines.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::capture;  // NOLINT(google-build-using-namespace)

namespace {

Address addr(std::string_view text) {
  return Address::parse(text).value();
}

const std::string kHomes = "/home/";
constexpr std::string_view kUuid = "9f2c1a77-5b6c-4a0e-9d7e-0123456789ab";

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

using Files = std::map<std::string, machine::CapturedFile>;

void add_files(Files& files) {
  files["/etc/hosts"].text =
      "127.0.0.1 localhost\n10.20.30.41 gpu08.hpc.example.org gpu08 # Zoe's\n";
  files["/etc/resolv.conf"].text = "search hpc.example.org\nnameserver 10.20.0.53\n";
  files["/etc/passwd"].text = "root:x:0:0::/root:/bin/sh\nmaria:x:2001:9:Maria M.:/home/maria:/x\n";
  files[kHomes + "maria/.nccl.conf"].text = "NCCL_SOCKET_IFNAME=eth0\n";
  files["/proc/sys/kernel/random/boot_id"].text = std::string(kUuid) + "\n";
  files["/proc/driver/nvidia/gpus/0000:18:00.0/information"].text =
      "GPU UUID: \t GPU-" + std::string(kUuid) + "\n";
  files["/sys/class/infiniband/mlx5_0/node_guid"].text = "b8ce:f603:0012:3456\n";
  files["/sys/class/infiniband/mlx5_0/ports/1/gids/3"].text =
      "0000:0000:0000:0000:0000:ffff:0a14:1e28\n";
  files[kHomes + "pavel/venv/lib/python3.11/site-packages/zeppelin-1.0.dist-info/RECORD"];
  files[kHomes + "pavel/venv/lib/libzzz.so"].link = "libzzz.so.1";
  files[kHomes + "pavel/venv/lib/libzzz.so.1"].text = "ELF";
  files["/proc/8/fd/3"].link = "/var/lib/zeppelin.db";
  files["/proc/self/mountinfo"].text =
      "36 35 98:0 / /scratch/zeppelin rw - nfs4 fs01.hpc.example.org:/zeppelin rw,addr=10.20.9.9\n";
  files["/sys/class/dmi/id/chassis_asset_tag"].text = "ZEPPELIN-00042\n";
  files["/sys/class/infiniband/mlx5_0/node_desc"].text = "gpu07 mlx5_0\n";
  files["/etc/ld.so.cache"].hex =
      "00"
      "6d61726961"
      "00";  // maria
  files["/sys/bus/pci/devices/0000:18:00.0/config"].hex = std::string(512, '0') +
                                                          "03000100"
                                                          "563412fffef6ceb8";
  files["/etc/machine-id"].text = "0123456789abcdef0123456789abcdef\n";
}

void add_processes(Files& files) {
  files["/proc/7/environ"].text = std::string("MASTER_ADDR=gpu09\0RANK=0\0", 25);
  files["/proc/7/environ"].text += std::string("http_proxy=http://squid7:3128\0", 30);
  files["/proc/7/environ"].text += "CUDA_VISIBLE_DEVICES=GPU-9f2c1a77,MIG-" + std::string(kUuid);
  const auto words = [&](const std::string& path, const std::vector<std::string>& all) {
    for (const auto& word : all) files[path].text += word + '\0';
  };
  words("/proc/7/cmdline",
        {kHomes + "pavel/venv/bin/python3", "-m", "torch.distributed.run", "--nnodes=2",
         "--rdzv-endpoint", "gpu08:29400", "/scratch/zeppelin/train.py", "--project", "zeppelin"});
  words("/proc/9/cmdline", {"sh", "-c", "/usr/bin/cc -I/srv/zeppelin/x -o olga.o; cd zeppelin"});
  words("/proc/8/cmdline", {"ssh", "olga@bastion3", "-I" + kHomes + "pavel/include", "gpu[10-11]"});
}

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
      0, "ip saddr 10.20.30.0/24 drop; ip daddr 10.20.30.41-10.20.30.49 accept comment \"Zoe's\"\n",
      ""};
  captured.children["iptables-save -c"] = {
      0,
      "-A INPUT -m comment --comment zeppelin -j DROP\n-A INPUT -m comment --comment \"of Zoe\" -j "
      "ACCEPT\n",
      ""};
  captured.files["/proc/net/tcp"].text =
      "  0: 281E140A:1F90 291E140A:0050 0A 00000000:00000000 00:00000000 00000000 0 0 7 1\n";
  captured.children["/etc/distdoctor/checks.d/zeppelin-room"] = {
      0, R"({"severity": "blocker", "text": "rack Q7 of Zoe"})", "Zoe"};
  add_files(captured.files);
  add_processes(captured.files);
  captured.kernel_log = std::string(
      "<6>[    1.000000] usb 1-1: SerialNumber: ZEPPELIN\n"
      "<6>[    2.000000] nfs: server zeppelin not responding\n"
      "<6>[    3.000000] mlx5_core eth0: Link up b8:ce:f6:12:34:56 10.20.30.40:5, gpu07.\n");
  return captured;
}

}  // namespace

TEST_CASE("nothing that names the site is left") {
  const auto text = write(anonymous(site(), "river"));
  const auto lower = lower_case(text);
  for (const std::string_view original :
       {"gpu07",    "gpu08",    "gpu09",     "gpu[",       "hpc.example", "maria",
        "Maria",    "b8:ce",    "b8ce:f603", "10.20.30.4", "10.20.0.53",  "0a14:1e28",
        "9f2c1a77", "zoe",      "pavel",     "olga",       "bastion",     "zeppelin",
        "fs01",     "squid7",   "10.20.9.9", "6d61726961", "f6ceb8",      "0123456789abcdef",
        "281e140a", "291e140a", "q7"}) {
    CAPTURE(original);
    CHECK(lower.find(lower_case(original)) == std::string::npos);
  }
  for (const std::string_view kept :
       {"localhost", "127.0.0.1", "eth0", "mlx5_0", "0000:18:00.0", "5.15.0", "NCCL_SOCKET_IFNAME",
        "/root", "--rdzv-endpoint", "torch.distributed.run", "/python3.11/site-packages/", ":3128",
        "-A INPUT", "/etc/distdoctor/checks.d/", ":1F90", "libzzz.so.1", "mlx5_core eth0: Link up",
        "\\\"severity\\\": \\\"blocker\\\""}) {
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
  // The beginning of a UUID still names its GPU.
  const auto& settings = other.files.at("/proc/7/environ").text;
  const auto begin = settings.substr(settings.find("GPU-"), 12);
  const auto gpu = other.files.at("/proc/driver/nvidia/gpus/0000:18:00.0/information").text;
  CHECK(gpu.find(begin) != std::string::npos);
  // Where a link led, it leads.
  const auto library = std::ranges::find_if(
      other.files, [](const auto& file) { return file.first.ends_with("/libzzz.so"); });
  REQUIRE(library != other.files.end());
  const auto folder = library->first.substr(0, library->first.rfind('/') + 1);
  CHECK(other.files.contains(folder + library->second.link));
}

TEST_CASE("captures of two nodes fit together when the word is the same") {
  auto second = site();
  second.hostname = "gpu08";
  CHECK(anonymous(second, "river").hostname ==
        anonymous(site(), "river").environment.at("MASTER_ADDR"));
  CHECK(anonymous(second, "river").hostname != anonymous(second, "sea").hostname);
}

// --- what checks say of it ---

namespace {

using Codes = std::multiset<std::string>;
using Machines = std::vector<machine::CapturedMachine>;

ClusterFacts cluster_of(const Machines& machines) {
  ClusterFacts cluster;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const auto there = machine::Machine::captured(machines[i]);
    NodeFacts node{.host = "node" + std::to_string(i), .reached = true};
    for (const collect::Collector& one : collect::all_collectors()) one.run(*there, {}, node);
    cluster.job.peers.push_back(node.host);
    cluster.nodes.push_back(std::move(node));
  }
  cluster.predicted = rules::predict(cluster);
  return cluster;
}

Codes codes_of(const Machines& machines) {
  const auto cluster = cluster_of(machines);
  const Expectations expect;
  Codes codes;
  for (const NamedCheck& named : all_checks()) {
    Judge judge(named.check->codes);
    named.check->run({.cluster = cluster, .expect = expect}, judge);
    for (const Finding& finding : judge.findings()) {
      codes.insert(finding.code + " " + std::string(slug(finding.severity)));
    }
  }
  return codes;
}

Machines hidden(Machines machines) {
  for (auto& machine : machines) machine = anonymous(std::move(machine), "river");
  return machines;
}

// The links that its GIDs name.
machine::CapturedMachine with_links(machine::CapturedMachine captured) {
  std::vector<Link> links;
  for (const auto& [path, file] : captured.files) {
    const auto gid = Address::parse(file.text.substr(0, 39));
    if (path.find("/gids/3") == std::string::npos || !gid) continue;
    Address inner;
    std::copy_n(gid->bytes.begin() + 12, 4, inner.bytes.begin());
    links.push_back({.name = "rdma" + std::to_string(links.size()),
                     .index = static_cast<int>(links.size()) + 2,
                     .kind = LinkKind::ethernet,
                     .mtu = 9000,
                     .up = true,
                     .running = true,
                     .carrier = true,
                     .operstate = "up",
                     .mac = "b8:ce:f6:12:34:5" + std::to_string(links.size()),
                     .addresses = {{.address = inner, .prefix = 24}}});
  }
  captured.links = links;
  return captured;
}

}  // namespace

TEST_CASE("checks say the same of machines without their names") {
  using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)
  auto busy = fake_hgx_h100();
  busy.kernel_log = std::string(
      "<3>[  100.000000] NVRM: Xid (PCI:0000:18:00): 79, pid=4711, name=python, GPU has fallen off "
      "the bus.\n<3>[  200.000000] oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=9\n");
  auto down = h100_with_infiniband();
  down.files["/sys/class/infiniband/mlx5_4/ports/1/state"].text = "1: DOWN\n";
  auto one = with_links(a100_with_roce(10));
  auto other = with_links(a100_with_roce(11));
  other.files["/sys/class/infiniband/mlx5_4/ports/1/state"].text = "1: DOWN\n";
  const std::vector<Machines> all = {{fake_hgx_h100(), busy},
                                     {fake_a100_pcie(), fake_a100_pcie()},
                                     {fake_mi300x()},
                                     {fake_desktop()},
                                     {fake_docker()},
                                     {fake_wsl()},
                                     {h100_with_infiniband(), down},
                                     {one, other},
                                     {vm_with_efa()},
                                     {fake_pod()},
                                     {fake_apptainer()},
                                     {fake_podman_rootless()},
                                     {fake_enroot()},
                                     {fake_docker_v1()},
                                     {site(), site()}};
  std::size_t found = 0;
  for (const Machines& machines : all) {
    CAPTURE(&machines - all.data());
    const auto codes = codes_of(machines);
    CHECK(codes_of(hidden(machines)) == codes);
    found += codes.size();
  }
  CHECK(found > 5);
}

TEST_CASE("this machine, written down, says the same without its names") {
  const auto live = machine::Machine::live();
  REQUIRE(live.has_value());
  Recorder recorder(**live);
  NodeFacts facts;
  for (const collect::Collector& one : collect::all_collectors()) {
    one.run(recorder.machine(), {}, facts);
  }
  const auto notes = recorder.notes();
  const auto other = anonymous(notes, "river");
  CHECK(codes_of({other}) == codes_of({notes}));
  const auto text = write(other);
  REQUIRE(notes.links.known());
  for (const Link& link : *notes.links) {
    const bool nobodys = link.mac.find_first_not_of("0:") == std::string::npos ||
                         link.mac.find_first_not_of("f:") == std::string::npos;
    CAPTURE(link.name);
    if (!nobodys) CHECK(text.find(link.mac) == std::string::npos);
    for (const LinkAddress& own : link.addresses) {
      if (own.address.loopback()) continue;
      CAPTURE(own.address.text());
      CHECK(text.find("\"" + own.address.text() + "\"") == std::string::npos);
    }
  }
  CHECK((other.hostname != notes.hostname || is_common(notes.hostname)));
}
