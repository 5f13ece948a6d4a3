// A MASTER_ADDR that each task works out for itself, where it names every node its own.
#pragma once

#include "mend.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace distdoctor::checks {

// Of "$(hostname -I | awk '{print $1}')": "hostname -I | awk '{print $1}'".
inline std::string_view inside_substitution(std::string_view text) {
  if (text.starts_with("$(") && text.ends_with(")")) return text.substr(2, text.size() - 3);
  if (text.size() > 2 && text.front() == '`' && text.back() == '`') {
    return text.substr(1, text.size() - 2);
  }
  return "";
}

inline bool names_its_own_node(std::string_view text) {
  constexpr std::array<std::string_view, 4> kVariables = {"$HOSTNAME", "${HOSTNAME}",
                                                          "$SLURMD_NODENAME", "${SLURMD_NODENAME}"};
  constexpr std::array<std::string_view, 9> kCommands = {
      "hostname",        "hostname -s", "hostname -f",   "hostname -i",          "hostname -I",
      "hostname --fqdn", "uname -n",    "/bin/hostname", "hostname --ip-address"};
  constexpr std::array<std::string_view, 4> kFirstWord = {"awk '{print $1}'", "awk '{ print $1 }'",
                                                          "cut -d' ' -f1", "cut -d ' ' -f 1"};
  if (std::ranges::find(kVariables, text) != kVariables.end()) return true;
  std::string_view command = inside_substitution(text);
  if (const auto pipe = command.find(" | "); pipe != std::string_view::npos) {
    if (std::ranges::find(kFirstWord, command.substr(pipe + 3)) == kFirstWord.end()) return false;
    command = command.substr(0, pipe);
  }
  return std::ranges::find(kCommands, command) != kCommands.end();
}

inline bool starts_one_node(const Launch& launch) {
  return launch.kind == LauncherKind::srun && launch.nnodes_max.value_or(2) < 2;
}

inline void judge_each_itself(const Case& c, Judge& judge) {
  const JobSpec& job = c.cluster.job;
  const auto found = job.rank_settings.find("MASTER_ADDR");
  if (found == job.rank_settings.end() || !job.unresolved.contains("MASTER_ADDR") ||
      !names_its_own_node(found->second.value) ||
      std::ranges::any_of(job.launches, starts_one_node)) {
    return;
  }
  const Setting& said = found->second;
  Finding finding =
      blocker("rendezvous-addr-split",
              fmt::format("MASTER_ADDR is {}, which each task works out for itself: every node "
                          "names itself",
                          setting_text(said)));
  finding.certainty = Certainty::likely;
  finding.evidence.push_back({.node = c.cluster.nodes.front().host,
                              .fact = "MASTER_ADDR",
                              .observed = setting_text(said) + ", in each task",
                              .expected = "one address for all tasks",
                              .command = "srun hostname"});
  finding.fix.push_back(
      {.node = "*",
       .kind = Fix::Kind::manual,
       .text = "set it once, before srun: export MASTER_ADDR=$(scontrol show hostnames "
               "\"$SLURM_JOB_NODELIST\" | head -n 1)"});
  judge.report(std::move(finding));
}

}  // namespace distdoctor::checks
