// MASTER_ADDR must be written as a name or an address: no blanks, no URL, no list, no prefix.
#include <distdoctor/check.h>

#include "mend.h"

#include <utility>

namespace distdoctor::checks {
namespace {

bool is_blank(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
}

// "node0\r": as a person would write it.
std::string visible(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\r') {
      text += "\\r";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else if (is_blank(c) && c != ' ') {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text;
}

// What was meant; empty: several words, of which nobody can choose.
std::string clean(std::string_view value) {
  const auto* const first = std::ranges::find_if_not(value, is_blank);
  std::string_view rest = value.substr(static_cast<std::size_t>(first - value.begin()));
  while (!rest.empty() && is_blank(rest.back())) rest.remove_suffix(1);
  return std::ranges::any_of(rest, is_blank) ? "" : std::string(rest);
}

// The file of "train.sh:12"; empty where it is none.
std::string file_of(const Setting& said) {
  const std::string& where = said.origin.where;
  const auto colon = where.rfind(':');
  const bool line = colon != std::string::npos && colon > 0 && colon + 1 < where.size() &&
                    where.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  return line ? where.substr(0, colon) : "";
}

// Without a node it was read where the doctor was started, which need not be one of them.
Fix mend_line_ends(const std::string& node, const std::string& file) {
  const std::string command = "sed -i 's/\\r$//' -- " + shell_quote(file);
  const std::string why =
      "or dos2unix: the file has the line ends of Windows, and a shell keeps the carriage return";
  if (!node.empty())
    return {.node = node, .kind = Fix::Kind::shell, .command = command, .text = why};
  return {.node = "*",
          .kind = Fix::Kind::manual,
          .text = fmt::format("where you start the job: `{}` ({})", command, why)};
}

std::vector<Fix> fixes_for(const Case& c, const Setting& said) {
  std::vector<Fix> fixes;
  const std::string file = file_of(said);
  if (!file.empty() && said.value.ends_with('\r')) {
    fixes.push_back(mend_line_ends(said.origin.node, file));
    return fixes;
  }
  const std::string meant = clean(said.value);
  if (meant.empty()) {
    fixes.push_back({.node = "*",
                     .kind = Fix::Kind::manual,
                     .text = "set MASTER_ADDR to one name or address of rank 0's node"});
  } else {
    fixes.push_back(set_master(c, "*", "MASTER_ADDR", meant, "the same without the blanks"));
  }
  return fixes;
}

bool judge_blanks(const Case& c, const Master& master, Judge& judge) {
  const auto found = c.cluster.job.settings.find("MASTER_ADDR");
  if (found == c.cluster.job.settings.end()) return false;
  const Setting& said = found->second;
  const bool in_force = master.host == said.value;  // no launcher says another one
  if (!in_force || std::ranges::none_of(said.value, is_blank)) return false;
  const std::string seen_at =
      said.origin.node.empty() ? c.cluster.nodes.front().host : said.origin.node;
  Finding finding = blocker("rendezvous-addr-blanks",
                            fmt::format("MASTER_ADDR is \"{}\" ({}), which can be no host's name",
                                        visible(said.value), origin_text(said.origin)));
  finding.symptom = Symptom::crash;
  // Some resolvers forgive a blank behind a numeric address.
  if (Address::parse(clean(said.value))) finding.certainty = Certainty::likely;
  finding.evidence.push_back(
      {.node = seen_at,
       .fact = "MASTER_ADDR",
       .observed = fmt::format("\"{}\" ({})", visible(said.value), origin_text(said.origin)),
       .expected = "a name or an address, without blanks and control characters",
       .command = setting_command("MASTER_ADDR", said) + " | cat -A"});
  finding.fix = fixes_for(c, said);
  judge.report(std::move(finding));
  return true;
}

// --- a URL, a list, a prefix ---

// RFC 1123 with the underscore that many sites use, or an address.
bool is_written_well(std::string_view host) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";
  if (Address::parse(host)) return true;
  return !host.starts_with('-') && host.find_first_not_of(kLetters) == std::string_view::npos;
}

// Whether some node's resolver knows it for all that, as an odd line of its hosts file.
bool resolves(const ClusterFacts& cluster, const std::string& host) {
  // Of a name with '@' the part behind it was resolved, as for a peer.
  if (host.find('@') != std::string::npos) return false;
  return std::ranges::any_of(cluster.nodes, [&](const NodeFacts& node) {
    return node.names.known() && std::ranges::any_of(*node.names, [&](const Resolution& row) {
             return row.name == host && row.all.known() && !row.all->empty();
           });
  });
}

// "tcp://node0:29500" -> "node0"; empty where nobody can say what was meant.
std::string host_within(std::string_view written) {
  if (const auto scheme = written.find("://"); scheme != std::string_view::npos) {
    written.remove_prefix(scheme + 3);
  }
  if (const auto at = written.find('@'); at != std::string_view::npos) {
    written.remove_prefix(at + 1);
  }
  written = written.substr(0, written.find('/'));
  if (written.starts_with('[')) {
    written.remove_prefix(1);
    written = written.substr(0, written.find(']'));
  }
  if (std::ranges::count(written, ':') == 1) written = written.substr(0, written.find(':'));
  return is_written_well(written) ? std::string(written) : "";
}

bool is_a_peers(const ClusterFacts& cluster, const std::string& host) {
  const auto address = Address::parse(host);
  return find_node(cluster, host) != nullptr ||
         (address && std::ranges::any_of(cluster.nodes, [&](const NodeFacts& node) {
            return has_address(node, *address);
          }));
}

Fix write_it_well(const Case& c, const Master& master) {
  const std::string within = host_within(master.host);
  if (!within.empty() && (looks_alone(c) || is_a_peers(c.cluster, within))) {
    return set_master(c, "*", "MASTER_ADDR", within, "the host alone");
  }
  const Meant meant = meant_by(c, {});
  return point_at(c, *meant.node, meant.why);
}

void judge_malformed(const Case& c, const Master& master, Judge& judge) {
  const std::string& host = master.host;
  if (only_the_jobs_shell_knows(host) || is_written_well(host) || resolves(c.cluster, host)) return;
  Finding finding =
      blocker("rendezvous-addr-malformed",
              fmt::format("{} is \"{}\", which is neither a host's name nor an address",
                          master_name(master), visible(host)));
  finding.symptom = Symptom::crash;
  finding.evidence.push_back({.node = c.cluster.nodes.front().host,
                              .fact = master_name(master),
                              .observed = visible(host),
                              .expected = "one name, or one address without a prefix length",
                              .command = "getent ahosts -- " + shell_quote(host)});
  finding.fix.push_back(write_it_well(c, master));
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const Master* master = master_of(c);
  if (!meets_others(c) || master == nullptr || master->host.empty()) return;
  if (!judge_blanks(c, *master, judge)) judge_malformed(c, *master, judge);
}

constexpr std::string_view kCauses[] = {"rendezvous-addr-unresolvable", "rendezvous-addr-nobody",
                                        "rendezvous-addr-outside"};
constexpr Page kPage{
    .meaning =
        "The value has a blank or a control character, most often the carriage return of a script "
        "that was written on Windows, which bash keeps. Printed it looks right; every rank fails "
        "to "
        "resolve it (`Name or service not known`).",
    .confirm =
        "`printenv MASTER_ADDR | cat -A` in the job's own shell ends in `^M$`, or has blanks.",
    .fix = "`sed -i 's/\\r$//' SCRIPT`, or set the value again without the blanks.",
    .verify = "`getent ahosts \"$MASTER_ADDR\"` prints an address."};
constexpr Page kMalformedPage{
    .meaning =
        "The value is a URL, a list, an address with its prefix length, an address in brackets or "
        "a word with other letters than a host's name has. torch hands it to the resolver as it "
        "is, no resolver knows it (`Name or service not known`), and no rank finds the store.",
    .confirm = "`getent ahosts -- \"$MASTER_ADDR\"` prints nothing.",
    .fix =
        "Set it to one name or one address of rank 0's node: `MASTER_ADDR=node0`. The port "
        "belongs in MASTER_PORT.",
    .verify = "`getent ahosts \"$MASTER_ADDR\"` prints an address."};
constexpr Code kCodes[] = {{.id = "rendezvous-addr-blanks",
                            .fault_class = FaultClass::master_addr_wrong,
                            .worst = Severity::blocker,
                            .title = "MASTER_ADDR has blanks or a carriage return",
                            .causes = kCauses,
                            .page = kPage},
                           {.id = "rendezvous-addr-malformed",
                            .fault_class = FaultClass::master_addr_wrong,
                            .worst = Severity::blocker,
                            .title = "MASTER_ADDR is neither a name nor an address",
                            .causes = kCauses,
                            .page = kMalformedPage}};

}  // namespace

extern const Check rendezvous_addr_written{
    .title = "MASTER_ADDR is written as a name or an address", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
