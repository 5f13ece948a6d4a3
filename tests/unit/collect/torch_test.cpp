#include "collect/torch.h"

#include "support/elf_image.h"

#include <doctest/doctest.h>

#include <string>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

TEST_CASE("torch/version.py") {
  const TorchVersion wheel = parse_torch_version(
      "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda']\n"
      "__version__ = '2.8.0+cu128'\ndebug = False\ncuda: Optional[str] = '12.8'\n"
      "git_version = 'a1cb3cc05d46d198467bebbb6e8fba50a325d4e7'\nhip: Optional[str] = None\n");
  CHECK(wheel == TorchVersion{"2.8.0+cu128", "12.8", ""});
  CHECK(parse_torch_version("__version__ = '1.13.0a0'\ncuda = None\nhip = '6.0'\n") ==
        TorchVersion{"1.13.0a0", "", "6.0"});
  CHECK(parse_torch_version("__version__ = '2.8\ncudart = '9'\ncuda") == TorchVersion{});
}

TEST_CASE("the torch of a rank, and who in it asks for NCCL") {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  files["/venv/sp/torch/version.py"].text = "__version__ = '2.8.0'\n";
  files["/other/torch/version.py"].text = "__version__ = '2.7.0'\n";
  files["/venv/sp/torch/lib/libtorch_cuda.so"].text =
      testing::elf_image({.needed = {"libnccl.so.2"}, .rpath = "$ORIGIN"});
  const auto machine = machine::Machine::captured(captured);
  JobWorld world{.packages = {"/none", "/venv/sp", "/other"}};
  const auto torch = find_torch(machine->files(), world);
  CHECK(torch.folder == "/venv/sp/torch");
  CHECK(torch.about.version == "2.8.0");
  REQUIRE(torch.asks.size() == 1);
  CHECK(torch.asks.front().path == "/venv/sp/torch/lib/libtorch_cuda.so");
  world.torch_library = "/other/torch/lib/libtorch_cpu.so";
  CHECK(find_torch(machine->files(), world).about.version == "2.7.0");
  CHECK(find_torch(machine->files(), {}).folder.empty());
}
