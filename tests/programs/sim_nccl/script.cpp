#include "script.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace distdoctor::sim {
namespace {

constexpr std::array<std::string_view, 6> kAilments = {"hang",    "deaf",  "fail",
                                                       "corrupt", "crash", "slow"};

Place place_of(const std::string& word) {
  const auto colon = word.find(':');
  if (colon == std::string::npos) return {.node = word};
  return {.node = word.substr(0, colon), .device = std::stoi(word.substr(colon + 1))};
}

Fault fault_of(std::istringstream& words) {
  Fault fault;
  words >> fault.layer;
  const bool named = fault.layer == "iface" || fault.layer == "hca" || fault.layer == "setting";
  if (named) words >> fault.name;
  std::string word;
  while (words >> word && std::ranges::find(kAilments, word) == kAilments.end()) {
    fault.places.push_back(place_of(word));
  }
  fault.ailment = word;
  if (word == "slow") words >> fault.times;
  while (words >> word) {
    if (word == "from") words >> fault.from;
    if (word == "every") words >> fault.every;
    if (word == "probability") words >> fault.probability;
  }
  return fault;
}

Script read_script(const char* path) {
  Script script;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string what;
    words >> what;
    if (what == "gpus") words >> script.gpus;
    if (what == "lacks") script.p2p = false;
    if (what == "fault") script.faults.push_back(fault_of(words));
    if (what == "hca") {
      Hca hca;
      words >> hca.name >> hca.gbps;
      script.hcas.push_back(hca);
    }
    if (what == "speed") {
      std::string which;
      words >> which;
      words >> script.gb_per_s[which];
    }
  }
  return script;
}

}  // namespace

const Script* script() {
  const char* const path = std::getenv(kMarker);
  if (path == nullptr) return nullptr;
  static const Script kScript = read_script(path);
  return &kScript;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string own_node() {
  if (const auto id = variable("NCCL_HOSTID"); !id.empty()) return id;
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace distdoctor::sim
