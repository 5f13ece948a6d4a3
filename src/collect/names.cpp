#include "collect/names.h"

#include "base/hostlist.h"
#include "base/text.h"
#include "collect/collectors.h"
#include "collect/patience.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::size_t kAtOnce = 16;                   // getent children
constexpr std::chrono::milliseconds kPatience{4000};  // a dead server costs glibc 5 s
constexpr std::chrono::milliseconds kEnough{3000};    // then the server is as good as dead
// Of the collector's own time: to end the children and to send what they said.
constexpr std::chrono::milliseconds kToFinish{500};

struct Question {
  std::vector<std::string> command;
  Observed<std::vector<Address>>* answer = nullptr;
};

// Most of the time is the children's own, so they run beside one another; one end for all of them,
// so that a silent server costs its own answers and no others.
void ask_all(const machine::Machine& machine, const std::vector<Question>& questions, Deadline by) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> askers;
  for (std::size_t i = 0; i < std::min(kAtOnce, questions.size()); ++i) {
    askers.emplace_back([&] {
      while (true) {
        const auto mine = next.fetch_add(1);
        if (mine >= questions.size() || by.expired()) return;
        const machine::Child child{.argv = questions[mine].command};
        *questions[mine].answer = read_getent(machine.run(child, by));
      }
    });
  }
}

// A URL, a list or a word in another script is no host's name, but the job may have one: its own
// resolver is to say so. It reaches getent as one word, without a shell, and as no option.
std::string_view not_to_be_asked(std::string_view host) {
  constexpr std::string_view kAlsoAsked = "/,@[]";
  std::string like_a_name(host);
  for (char& c : like_a_name) {
    if (kAlsoAsked.contains(c) || static_cast<unsigned char>(c) >= 0x80) c = 'x';
  }
  const bool text = printable(host) == host;
  return text && !host.starts_with('-') && bad_host_name(like_a_name).empty() ? ""
                                                                              : bad_host_name(host);
}

class Resolving {
 public:
  void add(const std::string& name, bool thorough) {
    if (std::ranges::find(rows_, name, &Resolution::name) != rows_.end()) return;
    Resolution& row = rows_.emplace_back(Resolution{.name = name});
    const auto host = host_of_peer(name);
    if (const auto address = Address::parse(host)) {  // no source needs to know it
      row.files = row.dns = std::vector<Address>{};
      row.all = std::vector{*address};
      return;
    }
    if (const auto reason = not_to_be_asked(host); !reason.empty()) {
      const Unknown why{Why::failed, printable("resolve " + name + ": " + std::string(reason))};
      row.files = row.dns = row.all = why;
      return;
    }
    row.all = Unknown{Why::not_collected, "no time was left to ask"};
    row.files = row.dns = Unknown{Why::not_collected,
                                  thorough ? "no time was left to ask" : "not asked for by source"};
    asked_.push_back({rows_.size() - 1, thorough});
  }

  std::vector<Resolution> ask(const machine::Machine& machine, Deadline by) {
    std::vector<Question> questions;
    for (const auto& [place, thorough] : asked_) add_questions(rows_[place], thorough, questions);
    const std::chrono::milliseconds waited(by.remaining_ms());
    ask_all(machine, questions, by);
    for (const Question& question : questions) forgive_silence(*question.answer, waited, kEnough);
    read_hosts(machine);
    return std::move(rows_);
  }

 private:
  static void add_questions(Resolution& row, bool thorough, std::vector<Question>& questions) {
    const std::string host(host_of_peer(row.name));
    questions.push_back({{"getent", "ahosts", host}, &row.all});
    if (!thorough) return;
    questions.push_back({{"getent", "-s", "files", "ahosts", host}, &row.files});
    questions.push_back({{"getent", "-s", "dns", "ahosts", host}, &row.dns});
  }

  static bool cannot_run(const Observed<std::vector<Address>>& answer) {
    return !answer.known() &&
           (answer.why().kind == Why::denied || answer.why().kind == Why::unsupported);
  }

  // Where no getent can be run the hosts file is ours to read; what it names, every resolver finds.
  void read_hosts(const machine::Machine& machine) {
    std::optional<std::string> hosts;
    for (const auto& [place, thorough] : asked_) {
      Resolution& row = rows_[place];
      if (!cannot_run(row.all) || (thorough && !cannot_run(row.files))) continue;
      if (!hosts) hosts = machine.files().read("/etc/hosts").value_or("");
      const auto found = parse_hosts(*hosts, host_of_peer(row.name));
      if (thorough) row.files = found;
      if (!found.empty()) row.all = found;
    }
  }

  std::vector<Resolution> rows_;
  std::vector<std::pair<std::size_t, bool>> asked_;  // place, by each source
};

std::chrono::milliseconds patience_of(const CollectRequest& request) {
  const std::chrono::milliseconds within(request.within_ms);
  if (within <= kToFinish) return request.within_ms > 0 ? within / 2 : kPatience;
  return std::min(kPatience, within - kToFinish);
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

std::vector<Address> parse_hosts(std::string_view text, std::string_view name) {
  const auto same = [&](std::string_view word) { return to_lower(word) == to_lower(name); };
  std::vector<Address> addresses;
  for (const auto line : split_lines(text)) {
    const auto words = split_words(line.substr(0, line.find('#')));
    const auto address = words.empty() ? std::nullopt : Address::parse(words[0]);
    if (!address || std::ranges::none_of(words.begin() + 1, words.end(), same)) continue;
    if (std::ranges::find(addresses, *address) == addresses.end()) addresses.push_back(*address);
  }
  return addresses;
}

void collect_names(machine::Machine& machine, const CollectRequest& request, NodeFacts& node) {
  const Deadline by = Deadline::after(patience_of(request));
  Resolving names;
  for (const std::string& name : request.names) names.add(name, true);
  names.add(machine.self().hostname, true);
  for (const std::string& name : request.also) names.add(name, false);
  node.names = names.ask(machine, by);
}

}  // namespace distdoctor::collect
