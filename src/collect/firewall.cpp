#include "base/deadline.h"
#include "base/text.h"
#include "collect/collectors.h"
#include "collect/filter_text.h"
#include "collect/iptables_rules.h"
#include "collect/nft_rules.h"
#include "collect/patience.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::collect {
namespace {

using Chains = std::vector<FilterChain>;

constexpr std::size_t kMostOutput = std::size_t{8} << 20;
constexpr std::chrono::milliseconds kPatience{4000};

class Reading {
 public:
  Reading(const machine::Machine& machine, Deadline by) : machine_(machine), by_(by) {}

  Observed<Firewall> read() {
    Firewall firewall;
    auto chains = nft();
    if (!chains.known()) return chains.why();
    firewall.chains = *chains;
    for (const bool v6 : {false, true}) {
      told_once(v6, firewall.chains);
      auto legacy = this->legacy(v6);
      if (!legacy.known()) return legacy.why();
      firewall.chains.insert(firewall.chains.end(), legacy->begin(), legacy->end());
    }
    firewall.firewalld = firewalld(firewall.chains);
    firewall.ufw = ufw(firewall.chains);
    firewall.chains = keep_ours(std::move(firewall.chains));
    return firewall;
  }

 private:
  // What the program printed; it must have ended well, and said all that it had to say.
  Observed<std::string> run(const std::vector<std::string>& argv) {
    auto output = machine_.run({.argv = argv, .most_output = kMostOutput}, by_);
    missing_ = !output && output.error().errno_value == ENOENT;
    if (missing_) return Unknown{Why::unsupported, output.error().render()};
    if (!output) return unknown_because(output.error());
    const std::string command = "run " + join(argv, " ");
    if (output->exit_code != 0) {
      const bool denied = output->err.find("ermitted") != std::string::npos ||
                          output->err.find("ermission") != std::string::npos;
      return Unknown{denied ? Why::denied : Why::failed,
                     command + ": " + shortened(printable(trim(output->err)), 200)};
    }
    if (output->out.size() >= kMostOutput) {
      return Unknown{Why::unsupported, command + ": more rules than are read"};
    }
    return std::move(output->out);
  }
  // The first of these programs that there is.
  Observed<std::string> run_first(const std::vector<std::vector<std::string>>& commands) {
    Observed<std::string> output;
    for (const auto& argv : commands) {
      output = run(argv);
      if (!missing_) break;
    }
    return output;
  }

  // A module of its own, and not loaded: there are no rules, and nft would load it to say so.
  [[nodiscard]] bool surely_without_nf_tables() const {
    const auto& files = machine_.files();
    const auto loaded = files.read("/proc/modules").value_or("");
    const auto built_in =
        files.read("/lib/modules/" + machine_.self().release + "/modules.builtin");
    return built_in && built_in->find("/nf_tables.ko") == std::string::npos && !loaded.empty() &&
           !loaded.starts_with("nf_tables ") && loaded.find("\nnf_tables ") == std::string::npos;
  }
  Observed<Chains> nft() {
    if (surely_without_nf_tables()) return Chains{};
    const auto text = run({"nft", "-a", "list", "ruleset"});
    if (!text.known()) return text.why();
    return parse_nft_ruleset(*text);
  }

  // Where iptables made a table, its own words are the readable ones: nft does not know all of its
  // matches, and rules are numbered there.
  void told_once(bool v6, Chains& chains) {
    const std::string family = v6 ? "ip6" : "ip";
    const auto of_iptables = [&](const FilterChain& chain) {
      constexpr std::array<std::string_view, 5> kTables = {"filter", "nat", "mangle", "raw",
                                                           "security"};
      constexpr std::array<std::string_view, 5> kChains = {"INPUT", "OUTPUT", "FORWARD",
                                                           "PREROUTING", "POSTROUTING"};
      return chain.tool == FilterTool::nft && chain.family == family &&
             std::ranges::find(kTables, chain.table) != kTables.end() &&
             std::ranges::find(kChains, chain.name) != kChains.end();
    };
    if (std::ranges::none_of(chains, of_iptables)) return;
    const std::string program = v6 ? "ip6tables" : "iptables";
    const auto text =
        run_first({{program + "-nft-save", "-c"}, {"xtables-nft-multi", program + "-save", "-c"}});
    if (!text.known()) return;  // then nft's words have to do
    auto own = parse_iptables_save(*text, FilterTool::iptables, family);
    std::set<std::string> tables;
    for (const FilterChain& chain : own) tables.insert(chain.table);
    std::erase_if(chains, [&](const FilterChain& chain) {
      return chain.tool == FilterTool::nft && chain.family == family &&
             tables.contains(chain.table);
    });
    chains.insert(chains.end(), own.begin(), own.end());
  }

  // The program makes the tables that it lists, so that it is run only where there are some.
  Observed<Chains> legacy(bool v6) {
    const char* names = v6 ? "/proc/net/ip6_tables_names" : "/proc/net/ip_tables_names";
    if (trim(machine_.files().read(names).value_or("")).empty()) return Chains{};
    const std::string program = v6 ? "ip6tables" : "iptables";
    const auto text = run_first({{program + "-legacy-save", "-c"}, {program + "-save", "-c"}});
    if (!text.known()) return text.why();
    if (text->substr(0, text->find('\n')).find("nf_tables") != std::string::npos) {
      return Unknown{Why::unsupported, "no " + program + "-legacy-save to read " + names};
    }
    return parse_iptables_save(*text, FilterTool::iptables_legacy, v6 ? "ip6" : "ip");
  }

  static bool has_chain(const Chains& chains, std::string_view name) {
    return std::ranges::find(chains, name, &FilterChain::name) != chains.end();
  }
  [[nodiscard]] bool firewalld(const Chains& chains) const {
    const bool rules =
        std::ranges::find(chains, "firewalld", &FilterChain::table) != chains.end() ||
        has_chain(chains, "INPUT_ZONES");
    return rules && std::ranges::any_of(machine_.processes().all, [](const auto& process) {
             return process.name == "firewalld";
           });
  }
  [[nodiscard]] bool ufw(const Chains& chains) const {
    if (!has_chain(chains, "ufw-before-input")) return false;
    const auto conf = machine_.files().read("/etc/ufw/ufw.conf").value_or("");
    return std::ranges::any_of(split_lines(conf), [](std::string_view line) {
      const auto value = after_prefix(trim(line), "ENABLED=");
      return value && to_lower(*value) == "yes";
    });
  }

  const machine::Machine& machine_;
  Deadline by_;
  bool missing_ = false;
};

}  // namespace

void collect_firewall(machine::Machine& machine, const CollectRequest& request, NodeFacts& node) {
  if (machine.self().uid != 0) {
    node.firewall = Unknown{Why::denied, "the rules of a packet filter are shown to root only"};
    return;
  }
  node.firewall = Reading(machine, end_of(request, kPatience)).read();
}

}  // namespace distdoctor::collect
