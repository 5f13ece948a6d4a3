#include "cli/options.h"

#include <distdoctor/areas.h>
#include <distdoctor/check.h>
#include <distdoctor/exit_code.h>

#include "base/nearest.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/files.h"
#include "cli/input.h"
#include "cli/policy.h"
#include "exam/said.h"
#include "fleet/launch.h"
#include "render/explain.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace distdoctor::cli {
namespace {

constexpr std::size_t kMostScriptBytes = std::size_t{1} << 20;
constexpr std::uint64_t kMostReduced = std::uint64_t{4} << 30;

// As typed, before anything is checked or read.
struct Raw {
  std::optional<std::string> peers;
  std::string launch;
  std::string master;
  std::string backend;
  std::string config;
  std::string format = "text";
  std::string facts_format = {};  // of `facts`: json, or a file to write
  std::string fail_on = "blocker";
  std::string timeout = "5s";
  std::optional<std::string> budget = {};  // "60s"; bisect: "5m"
  std::vector<std::string> env;
  std::vector<std::string> only;
  std::vector<std::string> skip;
  std::string pid = {};
  std::string checks_dir = {};
  bool no_probe = false;
  bool collective = false;
  exam::Bisection bisection = {};
  std::string layers = {};
  std::string sizes = {};
  std::string stage = "15s";
  std::optional<std::string> anonymous = {};  // empty: any word will do
  std::vector<std::string> command;           // behind --
};

void add_node_options(CLI::App& app, Raw& raw, Options& options) {
  app.add_option("--peers", raw.peers, "Nodes of the job: node[0-3],login1 or @FILE")
      ->type_name("HOSTLIST");
  app.add_option("--launch", raw.launch,
                 "How to start a program on {host}, instead of ssh: 'docker exec -i {host}'")
      ->type_name("TEMPLATE");
  app.add_flag("--push", options.exam.launch.push, "Copy distdoctor to peers that lack it");
  app.add_option("--master", raw.master, "The job's MASTER_ADDR:MASTER_PORT")->type_name("H:P");
  app.add_option("--env", raw.env, "A setting of the job, or a file of such lines")
      ->type_name("K=V|FILE")
      ->expected(1)
      ->take_all();
  app.add_option("--pid", raw.pid,
                 "Look from inside this process's namespaces; auto: on each node, those of its "
                 "training process")
      ->type_name("PID|auto");
  app.add_option("--checks-dir", raw.checks_dir,
                 "The site's own checks on each node, instead of /etc/distdoctor/checks.d; none: "
                 "run none")
      ->type_name("DIR|none");
  app.add_option("--facts", options.facts_files, "Judge recorded facts instead of machines")
      ->type_name("FILE");
  app.add_option("--timeout", raw.timeout, "For one operation")->capture_default_str();
  app.add_option("--budget", raw.budget, "For the whole run (60s; bisect 5m)");
}

void add_job_options(CLI::App& app, Raw& raw, Options& options) {
  add_node_options(app, raw, options);
  app.add_option("--backend", raw.backend, "What the job's process group uses: nccl or gloo")
      ->check(CLI::IsMember({"nccl", "gloo"}));
}

void add_judging_options(CLI::App& app, Raw& raw, Options& options) {
  app.add_option("--skip", raw.skip, "Not these areas, checks or codes")->delimiter(',');
  app.add_option("--fail-on", raw.fail_on, "What makes the exit code 1")
      ->check(CLI::IsMember({"blocker", "degraded", "unknown"}))
      ->capture_default_str();
  app.add_option("--config", raw.config, "A site's own thresholds")->type_name("POLICY.toml");
  app.add_option("-o,--output", raw.format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--save", options.save, "Write the facts, for check --facts")->type_name("FILE");
  app.add_flag("-v,--verbose", options.verbose, "Show what passed, and all evidence");
  app.add_flag("--dry-run", options.dry_run, "Read the nodes, print the traffic, send none");
  app.add_flag("--no-probe", raw.no_probe, "Send no test traffic");
}

void add_bisect_options(CLI::App& app, Raw& raw) {
  app.add_option("--backend", raw.backend, "What to run: nccl or gloo (on the CPU)")
      ->check(CLI::IsMember({"nccl", "gloo"}));
  app.add_option("--ranks", raw.bisection.ranks_per_node, "On each node; one a GPU otherwise")
      ->check(CLI::Range(1, 64));
  app.add_option("--max-runs", raw.bisection.max_runs, "At most so many runs")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--only", raw.layers, "Only the switches of these layers: p2p,shm,net,...");
  app.add_option("--sizes", raw.sizes, "Of the all-reduces: 8,64k,4M,256M");
  app.add_option("--nccl", raw.bisection.nccl_library, "The libnccl.so.2 to run, not the job's")
      ->type_name("FILE");
  app.add_option("--stage-timeout", raw.stage, "For one step of a rank")->capture_default_str();
  app.add_flag("--force", raw.bisection.force, "Although a job runs there");
}

constexpr const char* kFooter =
    "distdoctor reads. Beyond that it runs the site's own checks (/etc/distdoctor/checks.d), "
    "binds\n"
    "test listeners, sends bounded test traffic between the named peers, runs tiny all-reduces in\n"
    "processes of its own and fills the wires below them for seconds where `bisect` or\n"
    "--collective asks for it,\n"
    "and nothing else; it removes all that it made, also when it is killed.\n"
    "Exit codes: 0 no blocker found (--fail-on says what counts; notices and degraded may be "
    "shown),\n"
    "1 findings that count, 2 usage, 3 could not tell, 70 our own bug.";

void describe(CLI::App& app, Raw& raw, Options& options) {
  app.set_version_flag("--version", std::string("distdoctor ") + DISTDOCTOR_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  CLI::App* check = app.add_subcommand("check", "Find what keeps a job from starting");
  add_job_options(*check, raw, options);
  check->add_flag("--collective", raw.collective,
                  "Then run a tiny all-reduce, and bisect what is wrong with it");
  check
      ->add_option("--since", options.since,
                   "Facts saved earlier: tell which links went down since then")
      ->type_name("FILE");
  check->add_option("--only", raw.only, "Only these areas, checks or codes")->delimiter(',');
  add_judging_options(*check, raw, options);
  CLI::App* bisect = app.add_subcommand(
      "bisect", "Run tiny all-reduces, to find which layer is broken or slow, and where");
  add_node_options(*bisect, raw, options);
  add_judging_options(*bisect, raw, options);
  add_bisect_options(*bisect, raw);
  CLI::App* facts = app.add_subcommand("facts", "Print what is seen on each node, as JSON");
  add_job_options(*facts, raw, options);
  CLI::Option* root = facts->add_option("--root", options.root, "Read a captured machine instead");
  root->type_name("FILE|DIR");
  CLI::Option* capture =
      facts->add_option("--capture", options.capture, "Capture this machine, for --root elsewhere");
  capture->type_name("FILE")->excludes(root);
  facts
      ->add_option(
          "--anonymous", raw.anonymous,
          "With other names and addresses in it; captures of several nodes fit together "
          "where they are given the same secret word, or @FILE that holds it (ps shows WORD)")
      ->type_name("[WORD|@FILE]")
      ->expected(0, 1)
      ->needs(capture);
  facts->add_option("--save", options.output, "Write them there")->type_name("FILE");
  facts->add_option("-o,--output", raw.facts_format, "json, which they are; or a FILE")
      ->type_name("json|FILE");
  CLI::App* env =
      app.add_subcommand("env", "Print exports that make the choice of interfaces right");
  add_job_options(*env, raw, options);
  env->add_option("--node", options.node, "The values of this node, where they differ");
  CLI::App* explain =
      app.add_subcommand("explain", "Explain a code, or a class: meaning, how to confirm, fix");
  explain->add_option("CODE", options.code)->required();
  CLI::App* list = app.add_subcommand("list", "List all checks and codes");
  list->add_flag("--classes", options.classes, "By cause: what shows it, and the codes for it");
}

Done mistake(const Error& error) {
  std::cerr << "distdoctor: " << error.render() << '\n';
  return {kExitUsage};
}
Done mistake(const std::string& text) {
  std::cerr << "distdoctor: " << printable(text) << '\n';
  return {kExitUsage};
}

std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(child->get_name());
  }
  return words;
}

// CLI11's own words, but for what it does not know: there the nearest known word helps.
std::string explain_mistake(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const CLI::App& asked = chosen.empty() ? app : *chosen.front();
  const auto unknown = asked.remaining();
  if (unknown.empty()) return error.what();
  const auto words = words_of(asked);
  const std::vector<std::string_view> known(words.begin(), words.end());
  const std::string word = unknown.front().substr(0, unknown.front().find('='));
  const char* what = word.starts_with('-') ? "unknown option '" : "unexpected '";
  return what + word + "'" + did_you_mean(word, known) + "; see `distdoctor " +
         (chosen.empty() ? "" : asked.get_name() + " ") + "--help`";
}

Result<void> check_selection(const std::vector<std::string>& words) {
  std::vector<std::string_view> known(kAreas.begin(), kAreas.end());
  for (const NamedCheck& check : all_checks()) known.push_back(check.name);
  std::ranges::copy(render::all_codes(all_checks()), std::back_inserter(known));
  for (const std::string& word : words) {
    if (std::ranges::find(known, word) != known.end()) continue;
    return failure("select '" + word + "'",
                   "no such area, check or code" + did_you_mean(word, known));
  }
  return {};
}

Result<Settings> said_by_options(const Raw& raw, Deadline by) {
  Settings settings;
  for (const std::string& text : raw.env) {
    DD_TRY(auto more, read_env_option(text, by));
    for (auto& [name, setting] : more) settings[name] = std::move(setting);
  }
  if (!raw.master.empty()) {
    DD_TRY(auto more, read_master_option(raw.master));
    for (auto& [name, setting] : more) settings[name] = std::move(setting);
  }
  if (!raw.backend.empty()) {
    settings["DISTDOCTOR_BACKEND"] = {raw.backend,
                                      {.source = Source::option, .where = "--backend"}};
  }
  return settings;
}

rules::ScriptReader script_reader(Deadline by) {
  return [by](const std::string& path) -> std::optional<std::string> {
    auto text = read_file(path, kMostScriptBytes, by);
    if (!text) return std::nullopt;
    return *std::move(text);
  };
}

Result<void> take_pid(const std::string& text, Options& options) {
  if (text.empty()) return {};
  if (text == "auto") {
    options.exam.launch.enter_job = true;
    return {};
  }
  const auto pid = parse_int_within(text, 1, std::numeric_limits<int>::max());
  if (!pid) return failure("read --pid '" + text + "'", "neither a process id nor auto");
  options.exam.launch.enter_pid = pid;
  return {};
}

Result<void> take_launch(const std::string& text, Options& options) {
  if (text.empty()) return {};
  DD_TRY(fleet::split_shell_words(text));
  if (!text.contains("{host}")) {
    return failure("read --launch '" + text + "'",
                   "it has no {host}, so it would start every agent in one place");
  }
  options.exam.launch.launch_template = text;
  return {};
}

Result<void> take_checks_dir(const std::string& text, Options& options) {
  if (!text.empty() && text != "none" && !text.starts_with('/')) {
    return failure("read --checks-dir '" + text + "'",
                   "it is looked for on each node, so its path must begin with /");
  }
  const bool unasked = options.command == "env" || options.command == "bisect";
  options.exam.checks_dir = unasked && text.empty() ? "none" : text;
  return {};
}

// What would be accepted and then change nothing is a mistake.
Result<void> refuse_idle(const Raw& raw, const Options& options) {
  struct Idle {
    bool said;
    const char* what;
    const char* why;
  };
  const bool bisect = options.command == "bisect";
  const bool recorded = !options.facts_files.empty();
  const bool captures = !options.capture.empty();
  const char* const unseen = "no machine is looked at then";
  const char* const unkept =
      "a capture is of this machine and holds no settings; say them to `facts --root FILE`";
  const Idle all[] = {
      {bisect && recorded, "bisect --facts", "`check --facts` judges a saved bisect again"},
      {bisect && raw.no_probe, "bisect --no-probe", "a run is traffic; --dry-run prints them"},
      {raw.collective && raw.no_probe, "--collective --no-probe", "a collective is test traffic"},
      {raw.collective && recorded, "--collective with --facts", unseen},
      {recorded && raw.peers.has_value(), "--facts with --peers", unseen},
      {recorded && !raw.pid.empty(), "--facts with --pid", unseen},
      {recorded && !raw.launch.empty(), "--facts with --launch", unseen},
      {recorded && !raw.checks_dir.empty(), "--facts with --checks-dir", unseen},
      {options.command == "env" && !raw.checks_dir.empty(), "env --checks-dir",
       "nothing is judged"},
      {captures && !raw.master.empty(), "--capture with --master", unkept},
      {captures && !raw.env.empty(), "--capture with --env", unkept},
      {captures && !raw.backend.empty(), "--capture with --backend", unkept},
      {captures && !raw.command.empty(), "--capture with a command line", unkept},
      {captures && raw.peers.has_value(), "--capture with --peers", "it is of this machine alone"},
      {captures && recorded, "--capture with --facts", unseen},
      {captures && !raw.pid.empty(), "--capture with --pid",
       "it is made from where it is started"}};
  for (const Idle& one : all) {
    if (one.said) return failure(one.what, one.why);
  }
  return {};
}

Result<void> take_job(const Raw& raw, Options& options) {
  DD_TRY(refuse_idle(raw, options));
  DD_TRY(options.exam.timeout, parse_duration(raw.timeout));
  const char* const usual = options.command == "bisect" ? "5m" : "60s";
  DD_TRY(options.exam.budget, parse_duration(raw.budget.value_or(usual)));
  options.by = Deadline::after(options.exam.budget);
  if (raw.peers && raw.peers->empty()) return failure("read --peers ''", "it names no node");
  DD_TRY(options.exam.peers, read_peers(raw.peers.value_or(""), options.by));
  DD_TRY(auto settings, said_by_options(raw, options.by));
  DD_TRY(options.exam.said, exam::read_said(raw.command, std::move(settings), own_environment(),
                                            script_reader(options.by)));
  DD_TRY(take_launch(raw.launch, options));
  DD_TRY(take_pid(raw.pid, options));
  DD_TRY(take_checks_dir(raw.checks_dir, options));
  options.exam.probe = !raw.no_probe && !options.dry_run;
  return {};
}

// -o is the format everywhere; of `facts`, which are JSON, it may be a file, too.
Result<void> take_facts(const Raw& raw, Options& options) {
  options.anonymous = raw.anonymous;
  const std::string& said = raw.facts_format;
  if (said.empty() || said == "json") return {};
  if (said == "text") return failure("print facts as text", "they are JSON; `check` prints text");
  if (!options.output.empty()) {
    return failure("write facts to " + said, "--save names " + options.output);
  }
  options.output = said;
  return {};
}

Result<void> take_judging(const Raw& raw, Options& options) {
  DD_TRY(check_selection(raw.only));
  DD_TRY(check_selection(raw.skip));
  options.exam.selection.only = raw.only;
  options.exam.selection.skip = raw.skip;
  const std::map<std::string, diagnose::FailOn> levels = {{"blocker", diagnose::FailOn::blocker},
                                                          {"degraded", diagnose::FailOn::degraded},
                                                          {"unknown", diagnose::FailOn::unknown}};
  options.exam.selection.fail_on = levels.at(raw.fail_on);
  if (!diagnose::leaves_any(options.exam.selection, all_checks())) {
    return failure("take --only and --skip together", "they leave no check");
  }
  options.format = raw.format == "json" ? Format::json : Format::text;
  if (!raw.config.empty()) {
    DD_TRY(options.exam.expect, read_policy(raw.config, options.by));
  }
  return {};
}

Result<std::vector<std::int64_t>> read_sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (const auto word : split(text, ',')) {
    DD_TRY(const auto bytes, parse_bytes(word));
    if (bytes < 8 || bytes > kMostReduced) {
      return failure("read --sizes '" + text + "'", "each is from 8 bytes to 4 GiB");
    }
    sizes.push_back(static_cast<std::int64_t>(bytes));
  }
  std::ranges::sort(sizes);
  return sizes;
}

Result<void> take_bisection(const Raw& raw, Options& options) {
  exam::Bisection wanted = raw.bisection;
  DD_TRY(wanted.stage, parse_duration(raw.stage));
  if (!raw.sizes.empty()) {
    DD_TRY(wanted.sizes, read_sizes(raw.sizes));
  }
  if (!raw.layers.empty()) {
    DD_TRY(wanted.only, exam::read_layers(raw.layers));
  }
  if (!raw.backend.empty()) {
    wanted.backend = raw.backend == "gloo" ? RunBackend::gloo : RunBackend::nccl;
  }
  options.exam.bisection = std::move(wanted);
  return {};
}

Result<void> take(const Raw& raw, Options& options) {
  if (options.command == "explain" || options.command == "list") return {};
  DD_TRY(take_job(raw, options));
  if (options.command == "facts") return take_facts(raw, options);
  if (options.command == "bisect" || raw.collective) {
    DD_TRY(take_bisection(raw, options));
  }
  return take_judging(raw, options);
}

// What stands behind the first "--" is the job's command line and none of ours.
std::vector<std::string> cut_command(std::vector<std::string>& argv) {
  const auto dashes = std::ranges::find(argv, "--");
  if (dashes == argv.end()) return {};
  std::vector<std::string> command(dashes + 1, argv.end());
  argv.erase(dashes, argv.end());
  return command;
}

}  // namespace

std::variant<Options, Done> parse_options(const std::vector<std::string>& argv) {
  Options options;
  Raw raw;
  std::vector<std::string> ours = argv;
  raw.command = cut_command(ours);
  CLI::App app("distdoctor finds what is wrong with a multi-node training environment",
               "distdoctor");
  describe(app, raw, options);
  try {
    std::ranges::reverse(ours);  // CLI11 takes them from the back
    app.parse(ours);
  } catch (const CLI::Success& success) {
    return Done{app.exit(success)};
  } catch (const CLI::ParseError& error) {
    return mistake(explain_mistake(app, error));
  }
  options.command = app.get_subcommands().front()->get_name();
  if (const auto taken = take(raw, options); !taken) return mistake(taken.error());
  return options;
}

}  // namespace distdoctor::cli
