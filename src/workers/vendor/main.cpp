#include "workers/vendor/verb.h"

#include <array>
#include <cstdio>
#include <exception>
#include <string_view>

namespace distdoctor::vendor {
namespace {

constexpr int kUsage = 2;
constexpr int kBug = 70;

constexpr std::array kVerbs = {
    Verb{"about", about}, Verb{"nccl", nccl_allreduce}, Verb{"nvml", nvml_facts},
    Verb{"rdma", rdma},   Verb{"verbs", verbs},
};

int run(Arguments words) {
  const std::string_view wanted = words.empty() ? "" : words.front();
  for (const Verb& verb : kVerbs) {
    if (verb.name == wanted) return verb.run(words.subspan(1));
  }
  std::fputs("vendor: a helper of distdoctor, not for people; no such verb\n", stderr);
  return kUsage;
}

}  // namespace

int about(Arguments /*arguments*/) {
  std::puts("{\"version\":\"" DISTDOCTOR_VERSION "\"}");
  return 0;
}

}  // namespace distdoctor::vendor

int main(int count, char** words) {
  using distdoctor::vendor::Arguments;
  try {
    return distdoctor::vendor::run(Arguments(words, static_cast<std::size_t>(count)).subspan(1));
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return distdoctor::vendor::kBug;
  }
}
