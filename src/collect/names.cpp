#include "collect/names.h"

#include "base/hostlist.h"
#include "base/text.h"
#include "collect/collectors.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::size_t kAtOnce = 16;           // getent children
constexpr std::chrono::seconds kPatience{4};  // a resolver with one dead server answers after 5 s

struct Question {
  std::vector<std::string> command;
  Observed<std::vector<Address>>* answer = nullptr;
};

void ask(const machine::Machine& machine, const Question& question) {
  const machine::Child child{.argv = question.command};
  *question.answer = read_getent(machine.run(child, Deadline::after(kPatience)));
}

// Most of the time is the children's own, so they run beside one another.
void ask_all(const machine::Machine& machine, const std::vector<Question>& questions) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> askers;
  for (std::size_t i = 0; i < std::min(kAtOnce, questions.size()); ++i) {
    askers.emplace_back([&] {
      while (true) {
        const auto mine = next.fetch_add(1);
        if (mine >= questions.size()) return;
        ask(machine, questions[mine]);
      }
    });
  }
}

void add_questions(Resolution& resolution, std::vector<Question>& questions) {
  const auto& name = resolution.name;
  if (const auto address = Address::parse(name)) {  // no source needs to know it
    resolution.files = resolution.dns = std::vector<Address>{};
    resolution.all = std::vector{*address};
    return;
  }
  if (const auto reason = bad_host_name(name); !reason.empty()) {
    const Unknown why{Why::failed, printable("resolve " + name + ": " + std::string(reason))};
    resolution.files = resolution.dns = resolution.all = why;
    return;
  }
  questions.push_back({{"getent", "-s", "files", "ahosts", name}, &resolution.files});
  questions.push_back({{"getent", "-s", "dns", "ahosts", name}, &resolution.dns});
  questions.push_back({{"getent", "ahosts", name}, &resolution.all});
}

}  // namespace

std::vector<Address> parse_ahosts(std::string_view text) {
  std::vector<Address> addresses;
  for (const auto line : split_lines(text)) {
    const auto words = split_words(line);
    const auto address = words.empty() ? std::nullopt : Address::parse(words[0]);
    if (address && std::ranges::find(addresses, *address) == addresses.end()) {
      addresses.push_back(*address);
    }
  }
  return addresses;
}

Observed<std::vector<Address>> read_getent(const Result<machine::ChildOutput>& output) {
  if (!output) {
    auto why = unknown_because(output.error());
    if (output.error().errno_value == ENOENT) why.kind = Why::unsupported;
    return why;
  }
  if (output->exit_code == 0) return parse_ahosts(output->out);
  if (output->exit_code == 2) return std::vector<Address>{};
  const auto words = shortened(printable(trim(output->err)), 200);
  const auto text = "run getent: exit code " + std::to_string(output->exit_code);
  return Unknown{Why::unsupported, words.empty() ? text : text + ": " + words};
}

void collect_names(machine::Machine& machine, const CollectRequest& request, NodeFacts& node) {
  auto names = request.names;
  names.push_back(machine.self().hostname);
  std::vector<Resolution> resolutions;
  for (auto& name : names) {
    if (std::ranges::find(resolutions, name, &Resolution::name) == resolutions.end()) {
      resolutions.push_back({.name = std::move(name)});
    }
  }
  std::vector<Question> questions;
  for (auto& resolution : resolutions) add_questions(resolution, questions);
  ask_all(machine, questions);
  node.names = std::move(resolutions);
}

}  // namespace distdoctor::collect
