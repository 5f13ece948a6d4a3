#include "collect/site_checks.h"

#include "base/secrets.h"
#include "base/text.h"
#include "codec/read.h"
#include "collect/patience.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace distdoctor::collect {
namespace {

using machine::FileTree;

constexpr std::size_t kAtOnce = 8;
constexpr std::chrono::milliseconds kPatience{10'000};  // less where --timeout is less
constexpr std::size_t kMostOutput = std::size_t{64} << 10;
constexpr std::size_t kMostWords = 400;  // bytes of a text that is kept
constexpr int kMostLinks = 40;           // as the kernel's own limit
constexpr int kCannotTell = 3;           // exit status
constexpr unsigned kByOthers = 02;
constexpr unsigned kByGroup = 020;
constexpr unsigned kSticky = 01000;
constexpr unsigned kExecutable = 0111;

std::string one_line(std::string_view text) {
  return shortened(mask_value(printable(trim(text))), kMostWords);
}

// --- whom a path may be trusted with ---------------------------------------------------------

// The folders that a path leads through and its end, links followed. Empty: they lead nowhere.
class Way {
 public:
  Way(const FileTree& files, std::string_view path) : files_(files) { add(path); }

  std::vector<std::string> steps() {
    std::vector<std::string> all = {"/"};
    int followed = 0;
    while (!open_.empty()) {
      const auto part = std::move(open_.front());
      open_.pop_front();
      if (part == "..") {
        if (!done_.empty()) done_.pop_back();
        continue;
      }
      done_.push_back(part);
      const auto target = files_.read_link(here());
      if (!target) {
        all.push_back(here());
      } else if (++followed > kMostLinks) {
        return {};
      } else {
        follow(*target);
      }
    }
    return all;
  }

 private:
  [[nodiscard]] std::string here() const { return "/" + join(done_, "/"); }

  void follow(const std::string& target) {
    target.starts_with('/') ? done_.clear() : done_.pop_back();
    add(target);
  }

  void add(std::string_view path) {
    std::vector<std::string> parts;
    for (const auto part : split(path, '/')) {
      if (!part.empty() && part != ".") parts.emplace_back(part);
    }
    open_.insert(open_.begin(), parts.begin(), parts.end());
  }

  const FileTree& files_;
  std::deque<std::string> open_;
  std::vector<std::string> done_;
};

struct Permissions {
  int uid = 0;
  int gid = 0;
  unsigned mode = 0;
  std::string kind = {};  // "directory", "regular file", "regular empty file", ...
};

// A line as `stat -c '%u %g %a %F'` prints it.
std::optional<Permissions> parse_permissions(std::string_view line) {
  const auto words = split(line, ' ', 4);
  if (words.size() != 4) return std::nullopt;
  const auto uid = parse_int<int>(words[0]);
  const auto gid = parse_int<int>(words[1]);
  const auto mode = parse_int<unsigned>(words[2], 8);
  if (!uid || !gid || !mode) return std::nullopt;
  return Permissions{*uid, *gid, *mode, std::string(words[3])};
}

Result<std::vector<Permissions>> permissions_of(const machine::Machine& machine,
                                                const std::vector<std::string>& paths,
                                                Deadline by) {
  machine::Child child{.argv = {"stat", "-c", "%u %g %a %F", "--"}};
  child.argv.insert(child.argv.end(), paths.begin(), paths.end());
  DD_TRY(const auto output, machine.run(child, by));
  if (output.exit_code != 0) return failure("look at it", one_line(output.err));
  std::vector<Permissions> all;
  for (const auto line : split_lines(output.out)) {
    if (auto one = parse_permissions(line)) all.push_back(*std::move(one));
  }
  if (all.size() != paths.size()) return failure("look at it", "stat says something else");
  return all;
}

std::string changeable(const Permissions& about, int uid) {
  if (about.uid != 0 && about.uid != uid) {
    return "it belongs to uid " + std::to_string(about.uid) + ", neither root nor us";
  }
  if ((about.mode & kByOthers) != 0) return "everybody may write to it";
  if (uid == 0 && (about.mode & kByGroup) != 0 && about.gid != 0) {
    return "group " + std::to_string(about.gid) + " may write to it, and we are root";
  }
  return "";
}

// In a folder like /tmp nobody takes away what is another's.
std::string changeable_way(const Permissions& about, int uid) {
  const bool sticky = (about.mode & kSticky) != 0 && (about.uid == 0 || about.uid == uid);
  return sticky ? "" : changeable(about, uid);
}

std::string wrong_end(const Permissions& about, bool folder) {
  if (folder) return about.kind == "directory" ? "" : "it is no folder";
  if (!about.kind.starts_with("regular ")) return "it is not a regular file";
  return (about.mode & kExecutable) == 0 ? "it is not executable" : "";
}

std::string distrusted(const machine::Machine& machine,
                       std::string_view path,
                       bool folder,
                       Deadline by) {
  const auto steps = Way(machine.files(), path).steps();
  if (steps.empty()) return std::string(path) + " leads nowhere";
  const auto all = permissions_of(machine, steps, by);
  if (!all) return all.error().reason;
  const int uid = machine.self().uid;
  for (std::size_t i = 0; i < all->size(); ++i) {
    const Permissions& about = all->at(i);
    const bool end = i + 1 == all->size();
    std::string reason = end ? wrong_end(about, folder) : changeable_way(about, uid);
    if (end && reason.empty()) reason = changeable(about, uid);
    if (!reason.empty()) return steps[i] + ": " + reason;
  }
  return "";
}

// --- what a program said -----------------------------------------------------------------------

std::string first_line(std::string_view text) {
  for (const auto line : split_lines(text)) {
    if (const auto words = trim(line); !words.empty()) return std::string(words);
  }
  return "";
}

struct Said {
  SiteResult severity = SiteResult::unknown;
  std::string text = {};
  std::string fix = {};
};
template <class V, Is<Said> T>
void fields(V& v, T& x) {
  v("severity", x.severity);
  v("text", x.text);
  v("fix", x.fix);
}

SiteResult by_exit_code(int exit_code) {
  constexpr SiteResult kResults[] = {SiteResult::ok, SiteResult::degraded, SiteResult::blocker};
  return exit_code >= 0 && exit_code <= 2 ? kResults[exit_code] : SiteResult::unknown;
}

std::string ending(int exit_code) {
  constexpr int kSignalled = 128;  // as a shell says it
  auto ending = "it ended with exit status " + std::to_string(exit_code);
  if (exit_code > kSignalled) ending += ", signal " + std::to_string(exit_code - kSignalled);
  return ending;
}

// A blocker's exit status counts, and its first line as it stands. With 1 an interpreter ends, too,
// when the check itself fails.
SiteCheck from_broken_json(const machine::ChildOutput& output, const std::string& why) {
  const auto by_status = by_exit_code(output.exit_code);
  SiteCheck check{.result = by_status == SiteResult::blocker ? by_status : SiteResult::unknown};
  check.error = one_line("its JSON: " + why);
  if (check.result != SiteResult::unknown) check.says = one_line(first_line(output.out));
  return check;
}

SiteCheck from_json(const machine::ChildOutput& output) {
  Said said;
  const auto read = codec::read_json(output.out, said, "read its JSON", kMostOutput);
  if (!read) return from_broken_json(output, read.error().reason);
  SiteCheck check{.result = said.severity, .says = one_line(said.text), .fix = one_line(said.fix)};
  if (output.exit_code != 0 && by_exit_code(output.exit_code) != said.severity) {
    check.result = SiteResult::unknown;
    check.error =
        "its JSON says " + std::string(slug(said.severity)) + ", but " + ending(output.exit_code);
  } else if (said.severity == SiteResult::unknown) {
    check.error = "it could not tell";
  }
  return check;
}

SiteCheck from_text(const machine::ChildOutput& output) {
  const auto words = first_line(output.out);
  SiteCheck check{.result = by_exit_code(output.exit_code),
                  .says = one_line(std::string_view(words).substr(0, words.find('|')))};
  if (check.says.empty()) check.says = one_line(first_line(output.err));
  if (check.result != SiteResult::unknown) return check;
  check.error = output.exit_code == kCannotTell ? "it could not tell" : ending(output.exit_code);
  return check;
}

// --- which of a folder ---------------------------------------------------------------------------

// What editors and package managers leave beside a file (run-parts(8) and its kind); run, an old
// version of a check would speak for a new one.
bool is_leftover(std::string_view name) {
  constexpr std::array<std::string_view, 10> kEndings = {
      "~",          ".rpmsave",  ".rpmnew",   ".rpmorig", ".dpkg-old",
      ".dpkg-dist", ".dpkg-new", ".dpkg-tmp", ".bak",     ".orig"};
  return name.starts_with('.') || std::ranges::any_of(kEndings, [&](std::string_view ending) {
           return name.ends_with(ending);
         });
}

// --- running them ------------------------------------------------------------------------------

SiteCheck not_run(const std::string& name, const std::string& path, const std::string& why) {
  return {.name = name, .path = path, .result = SiteResult::unknown, .error = printable(why)};
}

SiteCheck run_one(const machine::Machine& machine,
                  const std::string& name,
                  const std::string& path,
                  Deadline by) {
  if (is_leftover(name)) {
    return not_run(name, path, "passed over: by its name a leftover of an editor or a package");
  }
  if (auto why = distrusted_file(machine, path, by); !why.empty()) {
    return not_run(name, path, "passed over: " + why);
  }
  if (by.expired()) return not_run(name, path, "no time was left to run it");
  const auto begin = Deadline::Clock::now();
  const auto output = machine.run({.argv = {path}, .most_output = kMostOutput}, by);
  const std::chrono::duration<double> took = Deadline::Clock::now() - begin;
  SiteCheck check = output ? read_site_check(*output) : not_run(name, path, output.error().reason);
  check.name = name;
  check.path = path;
  check.seconds = took.count();
  return check;
}

// Beside one another: one that hangs costs its own answer and no other's.
std::vector<SiteCheck> run_all(const machine::Machine& machine,
                               const std::string& folder,
                               const std::vector<std::string>& names,
                               Deadline by) {
  std::vector<SiteCheck> checks(names.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> runners;
  for (std::size_t i = 0; i < std::min(kAtOnce, names.size()); ++i) {
    runners.emplace_back([&] {
      for (auto mine = next.fetch_add(1); mine < names.size(); mine = next.fetch_add(1)) {
        std::string path = folder;
        path += '/';
        path += names[mine];
        checks[mine] = run_one(machine, printable(names[mine]), path, by);
      }
    });
  }
  runners.clear();
  return checks;
}

Observed<std::vector<SiteCheck>> run_folder(const machine::Machine& machine,
                                            const std::string& folder,
                                            std::vector<std::string> names,
                                            Deadline by) {
  if (names.empty()) return std::vector<SiteCheck>{};
  const auto why = distrusted_folder(machine, folder, by);
  if (!why.empty()) return Unknown{Why::denied, printable("none was run: " + why)};
  const auto count = names.size();
  names.resize(std::min(count, kMostSiteChecks));
  auto checks = run_all(machine, folder, names, by);
  if (count > names.size()) {
    const auto left_out = std::to_string(count - names.size()) +
                          " files were passed over: " + std::to_string(kMostSiteChecks) +
                          " are run at most";
    checks.push_back(not_run("others", folder, left_out));
  }
  return checks;
}

}  // namespace

std::string distrusted_folder(const machine::Machine& machine, std::string_view path, Deadline by) {
  return distrusted(machine, path, true, by);
}

std::string distrusted_file(const machine::Machine& machine, std::string_view path, Deadline by) {
  return distrusted(machine, path, false, by);
}

SiteCheck read_site_check(const machine::ChildOutput& output) {
  return trim(output.out).starts_with('{') ? from_json(output) : from_text(output);
}

void collect_site_checks(machine::Machine& machine,
                         const CollectRequest& request,
                         NodeFacts& node) {
  if (request.checks_dir == "none") {
    node.site_checks = Unknown{Why::not_collected, "not asked for"};
    return;
  }
  const auto by = end_of(request, kPatience);
  const auto folder = request.checks_dir.empty() ? std::string(kChecksDir) : request.checks_dir;
  auto names = machine.files().list(folder);
  if (!names && request.checks_dir.empty() && names.error().errno_value == ENOENT) {
    names = std::vector<std::string>{};
  }
  if (!names) {
    node.site_checks = unknown_because(names.error());
    return;
  }
  node.site_checks = run_folder(machine, folder, *std::move(names), by);
}

}  // namespace distdoctor::collect
