// predict_here NCCL_VERSION: what NCCL and Gloo would take here and with this environment, from our
// own collectors and rules, in the words of nccl_interface_oracle; one more line for Gloo.
#include <distdoctor/facts.h>

#include "collect/collect.h"
#include "machine/machine.h"
#include "rules/nccl/comm_id.h"
#include "rules/predict.h"

#include <algorithm>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace distdoctor;  // NOLINT(google-build-using-namespace)

NodeFacts collect_here(machine::Machine& machine, const std::string& nccl_version) {
  NodeFacts node{.host = "here", .reached = true};
  CollectRequest request;
  const auto run = [&](std::initializer_list<std::string_view> names) {
    for (const collect::Collector& collector : collect::all_collectors()) {
      if (std::ranges::find(names, collector.name) != names.end()) {
        collector.run(machine, request, node);
      }
    }
  };
  run({"identity", "links", "settings"});
  const auto found = node.settings->find("NCCL_COMM_ID");
  if (found != node.settings->end()) {
    const auto host = rules::comm_id_host(found->second.value);
    if (!host.empty()) request.names.push_back(host);
  }
  run({"names"});
  node.nccl_library = NcclLibrary{.version = nccl_version};
  return node;
}

std::string words(const Choice& choice) {
  return choice.interface + ":" + choice.address.text() + "<0>";
}

std::string words(const std::vector<Choice>& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    text += (i == 0 ? "[" : " [") + std::to_string(i) + "]" + words(choices[i]);
  }
  return text;
}

void print(std::string_view what, const std::string& error, const std::string& choice) {
  std::cout << what << (error.empty() ? " ok " + choice : " error " + error) << '\n';
}

void print_nccl(const Observed<NcclChoice>& nccl) {
  if (!nccl.known()) {
    std::cout << "bootstrap unknown " << nccl.why().text << "\nnet_socket unknown\n";
    return;
  }
  print("bootstrap", nccl->bootstrap_error, nccl->bootstrap ? words(*nccl->bootstrap) : "");
  print("net_socket", nccl->net_socket_error, words(nccl->net_socket));
}

void print_gloo(const Observed<GlooChoice>& gloo) {
  if (!gloo.known()) {
    std::cout << "gloo unknown " << gloo.why().text << '\n';
    return;
  }
  print("gloo", gloo->error, words(gloo->devices));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: predict_here NCCL_VERSION\n";
    return 2;
  }
  auto machine = machine::Machine::live();
  if (!machine) {
    std::cerr << machine.error().render() << '\n';
    return 1;
  }
  const NodeFacts node = collect_here(**machine, argv[1]);
  const Prediction prediction = rules::predict_node({}, node);
  print_nccl(prediction.nccl);
  print_gloo(prediction.gloo);
  return 0;
}
