#include "collect/software.h"

#include "collect/collectors.h"
#include "support/elf_image.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

Software software_of(const machine::CapturedMachine& captured,
                     const std::map<std::string, std::string>& said = {}) {
  NodeFacts node;
  collect_software(*machine::Machine::captured(captured), {.settings = said}, node);
  return *node.software;
}

// PyTorch's wheels, as pip lays them down.
machine::CapturedMachine with_wheels() {
  machine::CapturedMachine captured;
  captured.environment = {{"PATH", "/venv/bin"}};
  auto& files = captured.files;
  const std::string packages = "/venv/lib/python3.12/site-packages";
  files["/venv/bin/python3"].text = "ELF";
  files[packages + "/torch/version.py"].text = "__version__ = '2.8.0+cu128'\ncuda = '12.8'\n";
  files[packages + "/torch/lib/libtorch_cuda.so"].text =
      testing::elf_image({.needed = {"libnccl.so.2"}, .rpath = "$ORIGIN/../../nvidia/nccl/lib"});
  files[packages + "/nvidia/nccl/lib/libnccl.so.2"].text =
      testing::elf_image({.soname = "libnccl.so.2", .constants = "NCCL version 2.27.3+cuda12.8"});
  files["/l/libnccl.so.2"].text =
      testing::elf_image({.soname = "libnccl.so.2", .constants = "NCCL version 2.14.3+cuda11.7"});
  return captured;
}

std::vector<std::string> copies(const Software& software) {
  std::vector<std::string> all;
  for (const auto& library : software.nccl) all.push_back(library.version + " " + library.origin);
  return all;
}

}  // namespace

TEST_CASE("the wheel's own NCCL goes before LD_LIBRARY_PATH, and after LD_PRELOAD") {
  auto captured = with_wheels();
  captured.environment["LD_LIBRARY_PATH"] = "/l";
  const auto software = software_of(captured);
  CHECK(software.torch == "2.8.0+cu128");
  CHECK(software.torch_cuda == "12.8");
  CHECK(copies(software) ==
        std::vector<std::string>{"2.27.3 DT_RPATH of libtorch_cuda.so", "2.14.3 LD_LIBRARY_PATH"});
  captured.environment["LD_PRELOAD"] = "/l/libnccl.so.2";
  CHECK(copies(software_of(captured)) ==
        std::vector<std::string>{"2.14.3 LD_PRELOAD", "2.27.3 DT_RPATH of libtorch_cuda.so"});
}

TEST_CASE("a torch with NCCL inside") {
  auto captured = with_wheels();
  captured.files["/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so"].text =
      testing::elf_image({.constants = "NCCL version 2.10.3+cuda11.3"});
  captured.environment["LD_LIBRARY_PATH"] = "/l";
  CHECK(copies(software_of(captured)).front() == "2.10.3 inside libtorch_cuda.so");
}

TEST_CASE("plugins: the default name, a word, a path, none") {
  auto captured = with_wheels();
  captured.environment["LD_LIBRARY_PATH"] = "/ofi";
  auto& files = captured.files;
  const auto plugin = testing::elf_image(
      {.symbols = {"ncclNetPlugin_v8", "ncclNetPlugin_v10", "ncclNetPlugin_v9", "ncclNetPlugin_vx"},
       .constants = std::string("NET/OFI\0Initializing aws-ofi-nccl 1.13.2-aws\0", 45)});
  files["/ofi/libnccl-net.so"].text = plugin;
  files["/ofi/libnccl-net-ofi.so"].text = plugin;
  const NcclPlugin first = software_of(captured).plugins.at(0);
  CHECK(first ==
        NcclPlugin{.path = "/ofi/libnccl-net.so",
                   .kind = "net",
                   .exports = {"ncclNetPlugin_v10", "ncclNetPlugin_v9", "ncclNetPlugin_v8"},
                   .origin = "LD_LIBRARY_PATH",
                   .version = "aws-ofi-nccl 1.13.2-aws"});
  captured.environment["NCCL_NET_PLUGIN"] = "ofi";
  auto software = software_of(captured);
  CHECK(software.plugins.at(0).path == "/ofi/libnccl-net-ofi.so");
  CHECK(software.plugins.at(0).origin == "NCCL_NET_PLUGIN, LD_LIBRARY_PATH");
  CHECK(software.named_files ==
        std::vector<NamedFile>{{.variable = "NCCL_NET_PLUGIN", .path = "/ofi/libnccl-net-ofi.so"}});
  captured.environment["NCCL_NET_PLUGIN"] = "none";
  CHECK(software_of(captured).plugins.empty());
  captured.environment["NCCL_NET_PLUGIN"] = "./libnccl-net.so";  // of a folder nobody knows
  CHECK(software_of(captured).named_files.empty());
  captured.environment["NCCL_NET_PLUGIN"] = "/gone/libnccl-net.so";
  software = software_of(captured);
  CHECK(software.plugins.empty());
  CHECK(software.named_files ==
        std::vector<NamedFile>{
            {.variable = "NCCL_NET_PLUGIN", .path = "/gone/libnccl-net.so", .error = 2}});
}

TEST_CASE("files that variables name") {
  machine::CapturedMachine captured;
  captured.environment = {{"NCCL_TOPO_FILE", "/t.xml"}, {"NCCL_GRAPH_FILE", "/gone.xml"}};
  captured.files["/t.xml"].text = "\n<system version=\"1\">\n  <cpu numaid=\"0\"/>\n</system>\n";
  const auto named = software_of(captured).named_files;
  REQUIRE(named.size() == 2);
  CHECK(named[0] == NamedFile{.variable = "NCCL_TOPO_FILE",
                              .path = "/t.xml",
                              .bytes = 52,
                              .begins = "<system version=\"1\">   <cpu numaid=\"0\"/> </system> "});
  CHECK(named[1] == NamedFile{.variable = "NCCL_GRAPH_FILE", .path = "/gone.xml", .error = 2});
}

TEST_CASE("of a file that is no XML hardly anything is told") {
  CHECK(beginning("root:$6$secret:19000") == "r");
  CHECK(beginning("  {\"a\": 1}") == "{");
  CHECK(beginning("\x7f"
                  "ELF\x02\x01") ==
        "\x7f"
        "ELF");
  CHECK(beginning("<?xml?>\n<system>") == "<?xml?> <system>");
  CHECK(beginning(std::string(200, ' ')).empty());
  CHECK(beginning("<" + std::string(200, 'x')).size() == 80);
}

TEST_CASE("how NCCL makes file names of a plugin's name") {
  using Names = std::vector<std::string>;
  CHECK(plugin_file_names("", "net") == Names{"libnccl-net.so"});
  CHECK(plugin_file_names("ofi", "net") == Names{"ofi", "libnccl-net-ofi.so"});
  CHECK(plugin_file_names("libx.so", "tuner") == Names{"libx.so"});
  CHECK(plugin_file_names("libx", "tuner") == Names{"libx", "libnccl-tuner-libx.so"});
  CHECK(plugin_file_names("./x", "net") == Names{"./x"});
}

TEST_CASE("versions of packages") {
  CHECK(parse_plugin_version("a\0aws-ofi-nccl is aws-ofi-nccl 1.9.1-aws\0") == "");
  CHECK(parse_plugin_version("aws-ofi-nccl is, aws-ofi-nccl 1.9.1\n") == "aws-ofi-nccl 1.9.1");
  CHECK(parse_ofed_info("#!/bin/bash\nif [ \"$1\" = \"-s\" ]; then\n\techo "
                        "MLNX_OFED_LINUX-23.10-1.1.9.0:\n") == "MLNX_OFED_LINUX-23.10-1.1.9.0");
  CHECK(parse_ofed_info("echo OFED-internal-24.10-0.7.0:").starts_with("OFED-internal-24.10"));
  CHECK(parse_ofed_info("#!/bin/sh\nexit 1\n").empty());
  CHECK(parse_efa_installer("# EFA installer version: 1.43.1\n# Debug packages installed: no\n") ==
        "1.43.1");
  CHECK(parse_efa_installer("").empty());
  CHECK(parse_cuda_toolkit(
            "{\"cuda\" : {\n \"name\" : \"CUDA SDK\",\n \"version\" : \"12.4.1\"\n}}") == "12.4.1");
  CHECK(parse_cuda_toolkit("{\"cuda\" : {\"version\" : ").empty());
}

TEST_CASE("packages of the fabric") {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  files["/sys/module/mlx5_core/version"].text = "23.10-1.1.9\n";
  files["/opt/amazon/efa_installed_packages"].text = "# EFA installer version: 1.43.1\n";
  files["/opt/amazon/efa/lib64/libfabric.so.1"].text = "ELF";
  auto software = software_of(captured);
  CHECK(software.ofed == "mlx5_core 23.10-1.1.9");
  CHECK(software.efa == "1.43.1");
  CHECK(software.libfabric == "/opt/amazon/efa/lib64/libfabric.so.1");
  files["/usr/bin/ofed_info"].text = "echo MLNX_OFED_LINUX-23.10-1.1.9.0:\n";
  CHECK(software_of(captured).ofed == "MLNX_OFED_LINUX-23.10-1.1.9.0");
}

TEST_CASE("a rank in a container: what lies outside of it says nothing") {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  files["/proc/7/stat"].text = "7 (python3) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100";
  files["/proc/7/status"].text =
      "Name:\tpython3\nState:\tS (sleeping)\nPPid:\t1\nUid:\t0\t0\t0\t0\n";
  files["/proc/7/cmdline"].text = std::string("python3\0train.py\0", 17);
  files["/proc/7/environ"].text =
      std::string("RANK=0\0WORLD_SIZE=2\0MASTER_ADDR=a\0MASTER_PORT=1\0", 49);
  files["/proc/7/ns/mnt"].link = "mnt:[2]";
  files["/proc/self/ns/mnt"].link = "mnt:[1]";
  files["/proc/7/maps"].text = "7f2-7f3 r-xp 0 08:01 12 /opt/x/libnccl.so.2\n";
  NodeFacts node;
  collect_software(*machine::Machine::captured(captured), {}, node);
  REQUIRE_FALSE(node.software.known());
  CHECK(node.software.why().kind == Why::unsupported);
}

TEST_CASE("where the job says that its libraries and files are") {
  auto captured = with_wheels();
  captured.environment["NCCL_TOPO_FILE"] = "/login.xml";
  captured.files["/ofi/libnccl-net.so"].text =
      testing::elf_image({.symbols = {"ncclNetPlugin_v8"}});
  CHECK(software_of(captured).plugins.empty());
  auto software = software_of(captured, {{"LD_LIBRARY_PATH", "/ofi:$LD_LIBRARY_PATH"},
                                         {"LD_PRELOAD", "/l/libnccl.so.2"},
                                         {"NCCL_TOPO_FILE", "/job.xml"}});
  REQUIRE(software.plugins.size() == 1);
  CHECK(software.plugins[0].origin == "LD_LIBRARY_PATH, of the job");
  CHECK(copies(software).front() == "2.14.3 LD_PRELOAD, of the job");
  CHECK(software.named_files ==
        std::vector<NamedFile>{{.variable = "NCCL_TOPO_FILE", .path = "/job.xml", .error = 2},
                               {.variable = "LD_PRELOAD", .path = "/l/libnccl.so.2"}});
  software = software_of(captured, {{"NCCL_NET_PLUGIN", "/gone/libnccl-net.so"}});
  CHECK(software.named_files.at(0) ==
        NamedFile{.variable = "NCCL_NET_PLUGIN", .path = "/gone/libnccl-net.so", .error = 2});
  // Where it lies nobody but the job's shell knows: neither there nor not there.
  captured.environment["LD_LIBRARY_PATH"] = "/ofi";
  software = software_of(captured, {{"NCCL_NET_PLUGIN", "$OFI/libnccl-net.so"}});
  CHECK(software.plugins.empty());
  CHECK(std::ranges::count(software.named_files, "NCCL_NET_PLUGIN", &NamedFile::variable) == 0);
}
