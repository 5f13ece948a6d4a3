// What the site's own check programs said, in their words.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

// One program that said the same on some nodes.
struct Word {
  const SiteCheck* check;
  std::vector<std::string> hosts;
};

bool same_word(const SiteCheck& a, const SiteCheck& b) {
  return a.path == b.path && a.result == b.result && a.says == b.says && a.fix == b.fix;
}

void add(const SiteCheck& check, const std::string& host, std::vector<Word>& words) {
  const auto found =
      std::ranges::find_if(words, [&](const Word& word) { return same_word(*word.check, check); });
  if (found == words.end()) {
    words.push_back({&check, {host}});
  } else {
    found->hosts.push_back(host);
  }
}

Severity severity_of(SiteResult result) {
  return result == SiteResult::blocker ? Severity::blocker : Severity::degraded;
}

std::string quoted(const std::string& words) {
  return words.empty() ? "nothing" : "\"" + words + "\"";
}

Fix fix_of(const SiteCheck& check) {
  return {.node = "*",
          .kind = Fix::Kind::manual,
          .text = check.fix.empty()
                      ? fmt::format("{} is this site's own: who wrote it knows what mends it",
                                    check.path)
                      : fmt::format("{} advises: {}", check.name, check.fix)};
}

void report(const Word& word, Judge& judge) {
  const SiteCheck& check = *word.check;
  Finding finding{
      .code = "run-site-check",
      .severity = severity_of(check.result),
      .certainty = Certainty::likely,
      .symptom = check.result == SiteResult::blocker ? Symptom::crash : Symptom::slow,
      .subjects = {.nodes = word.hosts},
      .summary = fmt::format("{}: the site's check {} says {}", fmt::join(word.hosts, ", "),
                             check.name, quoted(check.says))};
  for (const std::string& host : word.hosts) {
    finding.evidence.push_back(
        {.node = host,
         .fact = "site check " + check.name,
         .observed = fmt::format("{}: {}", slug(check.result), quoted(check.says)),
         .expected = "ok",
         .command = shell_quote(check.path)});
    Fix fix = fix_of(check);
    fix.node = host;
    finding.fix.push_back(std::move(fix));
  }
  judge.report(std::move(finding));
}

// What it could not tell, and why.
Gap gap_of(const NodeFacts& node, const SiteCheck& check) {
  const std::string words = check.says.empty() ? "" : fmt::format(" ({})", quoted(check.says));
  return {.node = node.host,
          .fact = "site check " + check.name,
          .why = {Why::failed, check.error + words}};
}

void run(const Case& c, Judge& judge) {
  std::vector<Word> words;
  bool any = false;
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* checks = judge.see(node, "site checks", node.site_checks);
    if (checks == nullptr) continue;
    any = any || !checks->empty();
    for (const SiteCheck& check : *checks) {
      if (check.result == SiteResult::unknown) judge.miss(gap_of(node, check));
      const bool said = check.result != SiteResult::unknown && check.result != SiteResult::ok;
      if (said) add(check, node.host, words);
    }
  }
  for (const Word& word : words) report(word, judge);
  if (!any) judge.skip("the site has no checks of its own");
}

constexpr Page kPage{
    .meaning =
        "A check program of this site, from /etc/distdoctor/checks.d or --checks-dir, says that "
        "something is wrong on the node. It is run there as a child with a deadline, and its words "
        "are passed on as they are: exit status 0 is ok, 1 degraded, 2 a blocker, 3 \"could not "
        "tell\", as for the Monitoring Plugins, with one line on stdout; or it prints "
        "{\"severity\": \"ok|degraded|blocker|unknown\", \"text\": \"...\", \"fix\": "
        "\"...\"}. Where that is no JSON, exit status 1 or 2 and the first line count. Any other "
        "end of "
        "it is a gap, and so is a program that is passed over: only executable regular files are "
        "run that nobody but root and the caller can change, and no leftovers of editors and "
        "packages (x~, x.bak, x.rpmsave, x.dpkg-old, .x).",
    .confirm = "Run the program on the node, as the same user, and look at `echo $?`.",
    .fix = "What the program advises; else ask who wrote it.",
    .verify = "The program ends with exit status 0."};
constexpr Code kCodes[] = {{.id = "run-site-check",
                            .fault_class = FaultClass::site_check,
                            .worst = Severity::blocker,
                            .title = "A check of the site itself says that something is wrong",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check run_site_check{
    .title = "The site's own checks are content", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
