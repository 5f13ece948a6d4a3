#include "collect/identity.h"

#include "collect/accounts.h"
#include "collect/collectors.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

struct WorldRow {
  std::string name;
  machine::CapturedMachine captured;
  std::string container;
  Context context;
};

machine::CapturedMachine with_file(const std::string& path, const std::string& text = "") {
  machine::CapturedMachine captured;
  captured.files[path].text = text;
  return captured;
}
machine::CapturedMachine with(machine::Environment environment,
                              machine::CapturedMachine captured = {}) {
  captured.environment = std::move(environment);
  return captured;
}

const std::vector<WorldRow> kWorlds = {
    {"a terminal", {}, "", Context::shell},
    {"ssh", with({{"SSH_CONNECTION", "10.0.0.9 40000 10.0.0.1 22"}}), "", Context::ssh},
    {"a Slurm step, started over ssh",
     with({{"SSH_CONNECTION", "x"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}}), "",
     Context::slurm_step},
    {"inside salloc on the login node", with({{"SLURM_JOB_ID", "7"}}), "", Context::shell},
    {"a prolog", with({{"SLURM_SCRIPT_CONTEXT", "prolog_slurmd"}, {"SLURM_JOB_ID", "7"}}), "",
     Context::prolog},
    {"a task prolog is the task's",
     with({{"SLURM_SCRIPT_CONTEXT", "prolog_task"}, {"SLURM_PROCID", "0"}}), "", Context::prolog},
    {"docker", with_file("/.dockerenv"), "docker", Context::container},
    {"sshd inside a container", with({{"SSH_CONNECTION", "x"}}, with_file("/run/.containerenv")),
     "podman", Context::container},
    {"a pod", with({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}}, with_file("/.dockerenv")),
     "kubernetes", Context::container},
    {"by control group", with_file("/proc/self/cgroup", "0::/system.slice/docker-0123abcd.scope\n"),
     "docker", Context::container},
    {"apptainer", with({{"APPTAINER_CONTAINER", "/x.sif"}}), "apptainer", Context::container},
    {"as systemd's interface says it",
     with_file("/proc/1/environ", std::string("container=lxc\0", 14)), "lxc", Context::container},
    {"apptainer in a pod",
     with({{"APPTAINER_CONTAINER", "/x.sif"}, {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}}),
     "apptainer", Context::container},
    {"a pod without services in its environment",
     with_file("/var/run/secrets/kubernetes.io/serviceaccount/token"), "kubernetes",
     Context::container},
    {"charliecloud", with({{"CH_RUNNING", "Weird Al Yankovic"}}), "charliecloud",
     Context::container},
    {"enroot, by where its root lies",
     with_file(
         "/proc/self/mountinfo",
         "400 399 8:2 /users/ann/.local/share/enroot/torch / rw,nosuid - ext4 /dev/sda2 rw\n"),
     "enroot", Context::container},
    {"pyxis in a Slurm step",
     with({{"SLURM_STEP_ID", "0"}},
          with_file("/proc/self/mountinfo",
                    "400 399 0:44 / / rw - overlay overlay lowerdir=/run/x/pyxis_77.0\n")),
     "enroot", Context::slurm_step},
    {"enroot's data on a host",
     with_file("/proc/self/mountinfo",
               "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
               "40 22 8:2 / /var/lib/enroot/data rw - ext4 /dev/sdb1 rw\n"),
     "", Context::shell},
    {"systemd inside of nspawn", with_file("/run/systemd/container", "systemd-nspawn\n"),
     "systemd-nspawn", Context::container},
    {"a control group of a user",
     with_file("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n"), "",
     Context::shell},
};

}  // namespace

TEST_CASE("in which world we are") {
  for (const auto& row : kWorlds) {
    CAPTURE(row.name);
    const auto machine = machine::Machine::captured(row.captured);
    CHECK(container_kind(*machine) == row.container);
    CHECK(context_of(*machine) == row.context);
  }
}

TEST_CASE("os-release") {
  CHECK(parse_os_name("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n") == "Debian GNU/Linux 12");
  CHECK(parse_os_name("PRETTY_NAME='x'") == "x");
  CHECK(parse_os_name("PRETTY_NAME=Alpine") == "Alpine");
  CHECK(parse_os_name("PRETTY_NAME=\"") == "\"");
  CHECK(parse_os_name("").empty());
}

TEST_CASE("accounts, and users that only a directory service knows") {
  const auto accounts = parse_passwd(
      "root:x:0:0:root:/root:/bin/bash\n"
      "toor:x:0:0::/other:/bin/sh\n"
      "# comment\n"
      "ann:x:1000:1000:Ann,,,:/users/ann:/bin/bash\n"
      "broken:x:1001\n"
      "+::::::\n");
  CHECK(accounts == Accounts{{0, {"root", "/root"}}, {1000, {"ann", "/users/ann"}}});
  CHECK(user_name(accounts, 1000) == "ann");
  CHECK(user_name(accounts, 4711) == "4711");
}

TEST_CASE("how long the machine has been up; an old capture does not tell") {
  NodeFacts node;
  collect_uptime(*machine::Machine::captured({.uptime_s = 90.5}), {}, node);
  CHECK(*node.uptime_s == 90.5);
  collect_uptime(*machine::Machine::captured({}), {}, node);
  CHECK(node.uptime_s.why() == Unknown{Why::not_collected, "the capture does not tell it"});
}

TEST_CASE("the identity of a captured machine") {
  machine::CapturedMachine captured{.hostname = "node0", .release = "6.1.0", .uid = 1000};
  captured.environment["SSH_CONNECTION"] = "10.0.0.9 40000 10.0.0.1 22";
  captured.files["/etc/passwd"].text = "ann:x:1000:1000::/users/ann:/bin/bash\n";
  captured.files["/etc/os-release"].text = "PRETTY_NAME=\"Debian\"\n";
  captured.files["/proc/sys/kernel/random/boot_id"].text = "0-1-2\n";
  NodeFacts node;
  collect_identity(*machine::Machine::captured(captured), {}, node);
  CHECK(node.context == Context::ssh);
  CHECK(*node.identity == Identity{.hostname = "node0",
                                   .boot_id = "0-1-2",
                                   .kernel = "6.1.0",
                                   .os = "Debian",
                                   .user = "ann",
                                   .uid = 1000});
}
