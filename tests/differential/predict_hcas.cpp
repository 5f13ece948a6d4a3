// predict_hcas ROOT NCCL_VERSION: what NCCL would take of the RDMA ports in the tree below ROOT
// with this environment, from our own collector and rules, in the words of nccl_hca_oracle.
#include <distdoctor/facts.h>

#include "collect/collectors.h"
#include "machine/machine.h"
#include "rules/nccl/hcas.h"

#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace distdoctor;  // NOLINT(google-build-using-namespace)

Settings environment() {
  Settings settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (!text.starts_with("NCCL_") || equals == std::string_view::npos) continue;
    settings[std::string(text.substr(0, equals))].value = text.substr(equals + 1);
  }
  return settings;
}

void print(const NcclHcas& hcas) {
  std::cout << "hcas";
  int number = 0;
  for (const HcaChoice& hca : hcas.used) {
    std::cout << " [" << number++ << ']' << hca.device << ':' << hca.port
              << (hca.roce ? "/RoCE" : "/IB");
  }
  std::cout << (hcas.used.empty() ? " none\n" : "\n");
  for (const HcaChoice& hca : hcas.used) {
    if (!hca.roce) continue;
    std::cout << "gid " << hca.device << ':' << hca.port << ' ' << hca.gid_index.value_or(0)
              << '\n';
  }
  for (const std::vector<std::string>& ports : hcas.merged) {
    std::cout << "merged";
    for (const std::string& port : ports) std::cout << ' ' << port;
    std::cout << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: predict_hcas ROOT NCCL_VERSION\n";
    return 2;
  }
  auto files = machine::RootTree::open(argv[1]);
  if (!files) {
    std::cerr << files.error().render() << '\n';
    return 1;
  }
  NodeFacts node{.host = "there", .reached = true};
  collect::collect_rdma(*machine::Machine::captured({}, *std::move(files)), {}, node);
  const auto hcas = rules::nccl_hcas(node, environment(), argv[2]);
  if (!hcas.known()) return 1;
  print(*hcas);
  return 0;
}
