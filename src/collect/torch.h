// The PyTorch that a rank would import, and which of its libraries asks for NCCL.
#pragma once

#include "collect/job_world.h"
#include "collect/loader.h"

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

struct TorchVersion {
  std::string version = {};  // "2.8.0+cu128"
  std::string cuda = {};     // "12.8"
  std::string hip = {};
  bool operator==(const TorchVersion&) const = default;
};
TorchVersion parse_torch_version(std::string_view text);  // of torch/version.py

struct Torch {
  std::string folder = {};  // ".../site-packages/torch"; empty: none was found
  TorchVersion about = {};
  // Who asks for libnccl.so.2, then the program; empty: no library of torch does.
  std::vector<Loaded> asks = {};
  std::string library = {};  // libtorch_cuda.so, where there is one
};
Torch find_torch(const machine::FileTree& files, const JobWorld& world);

}  // namespace distdoctor::collect
