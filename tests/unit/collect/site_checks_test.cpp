#include "collect/site_checks.h"

#include "machine/machine.h"
#include "support/temporary_folder.h"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

// What one program said: "blocker: its words; fix: ...; (why it is unknown)".
std::string told(const SiteCheck& check) {
  std::string text(slug(check.result));
  if (!check.says.empty()) text += ": " + check.says;
  if (!check.fix.empty()) text += "; fix: " + check.fix;
  if (!check.error.empty()) text += " (" + check.error + ")";
  return text;
}

struct Row {
  const char* name;
  const char* body;  // of a shell script
  const char* told;
};

const std::vector<Row> kScripts = {
    {"ok", "echo 'OK - 4 disks | disks=4'", "ok: OK - 4 disks"},
    {"warning", "echo hot; echo more; exit 1", "degraded: hot"},
    {"critical", "echo; echo '  disk 2 is gone  '; exit 2", "blocker: disk 2 is gone"},
    {"unknown", "echo 'no tool here'; exit 3", "unknown: no tool here (it could not tell)"},
    {"another status", "exit 42", "unknown (it ended with exit status 42)"},
    {"a signal", "kill -SEGV $$", "unknown (it ended with exit status 139, signal 11)"},
    {"only on stderr", "echo broken >&2; exit 2", "blocker: broken"},
    {"nothing", "exit 2", "blocker"},
    {"garbage", "printf 'a\\033[31mb\\200\\n'; exit 1", "degraded: a\\x1b[31mb\\x80"},
    {"a secret", "echo 'GET http://ann:s3cr3t@host/ failed'; exit 2",
     "blocker: GET http://ann:***@host/ failed"},
    {"JSON",
     R"(echo '{"severity": "degraded", "text": "old firmware",'; echo '"fix": "nvme fw 7"}')",
     "degraded: old firmware; fix: nvme fw 7"},
    {"JSON that knows nothing", R"(echo '{"severity": "unknown", "text": "no tool"}')",
     "unknown: no tool (it could not tell)"},
    {"JSON and its exit status agree", R"(echo '{"severity": "blocker", "text": "x"}'; exit 2)",
     "blocker: x"},
    {"JSON and its exit status disagree", R"(echo '{"severity": "ok", "text": "x"}'; exit 2)",
     "unknown: x (its JSON says ok, but it ended with exit status 2)"},
    {"broken JSON", R"(echo '{"severity": "ok"')", "unknown (its JSON: this is no JSON text)"},
    {"broken JSON, and an exit status that says enough",
     R"(echo '{"severity": "blocker", "te'; exit 2)",
     R"(blocker: {"severity": "blocker", "te (its JSON: this is no JSON text))"},
    {"broken JSON, and the exit status of an interpreter's own trouble",
     R"(echo '{"severity": "ok", "te'; exit 1)", "unknown (its JSON: this is no JSON text)"},
    {"JSON with another severity", R"(echo '{"severity": "warn", "text": "x"}')",
     "unknown (its JSON: 'warn' is none of the known names (ok ... unknown))"},
    {"its own session, and nothing to read",
     "cat; test $(cut -d' ' -f6 /proc/$$/stat) = $$ && echo alone", "ok: alone"},
};

class Folder {
 public:
  [[nodiscard]] const std::string& path() const { return folder_.path; }
  void add(const std::string& name, const std::string& body, unsigned mode = 0755) const {
    const auto file = path() + "/" + name;
    std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
    REQUIRE(::chmod(file.c_str(), mode) == 0);
  }
  void mode(unsigned mode) const { REQUIRE(::chmod(path().c_str(), mode) == 0); }

 private:
  testing::TemporaryFolder folder_;
};

Observed<std::vector<SiteCheck>> collected(const std::string& folder, int within_ms = 20'000) {
  const auto machine = machine::Machine::live();
  REQUIRE(machine.has_value());
  NodeFacts node;
  collect_site_checks(**machine, {.checks_dir = folder, .within_ms = within_ms}, node);
  return node.site_checks;
}

std::vector<std::string> names_told(const std::vector<SiteCheck>& checks) {
  std::vector<std::string> lines;
  for (const SiteCheck& check : checks) lines.push_back(check.name + " " + told(check));
  return lines;
}

}  // namespace

TEST_CASE("what real programs say, by exit status or as JSON") {
  const Folder folder;
  for (const Row& row : kScripts) {
    CAPTURE(row.name);
    folder.add("check", row.body);
    const auto checks = collected(folder.path());
    REQUIRE(checks.known());
    REQUIRE(checks->size() == 1);
    CHECK(told(checks->front()) == row.told);
    CHECK(checks->front().name == "check");
    CHECK(checks->front().path == folder.path() + "/check");
  }
}

TEST_CASE("names in order; one that hangs or floods costs its own answer and no other's") {
  const Folder folder;
  folder.add("10-hangs", "echo begun; sleep 100");
  folder.add("20-floods", "yes flood");
  folder.add("30-fine", "echo fine");
  folder.add("40-much", "head -c 1000000 /dev/zero | tr '\\0' x; exit 1");
  folder.add(".hidden", "exit 2");
  const auto checks = collected(folder.path(), 4'500);
  REQUIRE(checks.known());
  REQUIRE(checks->size() == 5);
  CHECK(checks->at(0).name == ".hidden");
  CHECK(told(checks->at(1)) == "unknown (it did not end in time)");
  CHECK(told(checks->at(2)) == "unknown (it did not end in time)");
  CHECK(told(checks->at(3)) == "ok: fine");
  CHECK(checks->at(4).result == SiteResult::degraded);
  CHECK(checks->at(4).says.size() < 500);
}

TEST_CASE("leftovers of editors and packages are not run, and named") {
  const Folder folder;
  for (const char* name :
       {".x", "a~", "b.bak", "c.rpmsave", "d.rpmnew", "e.dpkg-old", "f.dpkg-dist"}) {
    folder.add(name, "touch \"$0.ran\"; exit 2");
  }
  folder.add("g.bak.sh", "exit 1");
  const auto checks = collected(folder.path());
  REQUIRE(checks.known());
  REQUIRE(checks->size() == 8);
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(told(checks->at(i)) ==
          "unknown (passed over: by its name a leftover of an editor or a package)");
    CHECK_FALSE(std::filesystem::exists(checks->at(i).path + ".ran"));
  }
  CHECK(told(checks->at(7)) == "degraded");
}

TEST_CASE("only an executable regular file is run that nobody else can change") {
  const Folder folder;
  folder.add("a-plain", "exit 2", 0644);
  folder.add("b-everybody", "exit 2", 0757);
  std::filesystem::create_directory(folder.path() + "/c-folder");
  std::filesystem::create_symlink("/bin/true", folder.path() + "/d-link");
  std::filesystem::create_symlink("d-nowhere", folder.path() + "/e-link");
  std::filesystem::create_symlink("f-circle", folder.path() + "/f-circle");
  std::ofstream(folder.path() + "/g-no-program") << "\x7f" << "ELF";
  REQUIRE(::chmod((folder.path() + "/g-no-program").c_str(), 0755) == 0);
  const auto checks = collected(folder.path());
  REQUIRE(checks.known());
  const auto at = [&](const char* name) { return folder.path() + "/" + name; };
  CHECK(
      names_told(*checks) ==
      std::vector<std::string>{
          "a-plain unknown (passed over: " + at("a-plain") + ": it is not executable)",
          "b-everybody unknown (passed over: " + at("b-everybody") + ": everybody may write to it)",
          "c-folder unknown (passed over: " + at("c-folder") + ": it is not a regular file)",
          "d-link ok",
          "e-link unknown (passed over: stat: cannot statx '" + at("d-nowhere") +
              "': No such file or directory)",
          "f-circle unknown (passed over: " + at("f-circle") + " leads nowhere)",
          "g-no-program unknown (Exec format error)"});
}

TEST_CASE("a folder that others can change runs nothing, and an absent one is no gap by default") {
  const Folder folder;
  folder.add("check", "exit 2");
  folder.mode(0777);
  const auto checks = collected(folder.path());
  REQUIRE_FALSE(checks.known());
  CHECK(checks.why().kind == Why::denied);
  CHECK(checks.why().text == "none was run: " + folder.path() + ": everybody may write to it");
  CHECK(collected(folder.path() + "/nowhere").why().kind == Why::failed);
  CHECK(collected("none").why().text == "not asked for");
}

TEST_CASE("no more than so many are run") {
  const Folder folder;
  for (std::size_t i = 0; i < kMostSiteChecks + 2; ++i) {
    folder.add(std::to_string(100 + i), "exit 0");
  }
  const auto checks = collected(folder.path());
  REQUIRE(checks.known());
  REQUIRE(checks->size() == kMostSiteChecks + 1);
  CHECK(told(checks->back()) == "unknown (2 files were passed over: 64 are run at most)");
}

TEST_CASE("on paper: owners, groups, folders on the way") {
  struct Owned {
    const char* stat;  // of the file
    std::string root;  // why root does not run it
    std::string ann;
  };
  const std::string file = "/checks/a: ";
  const std::vector<Owned> rows = {
      {"0 0 755 regular file", "", ""},
      {"0 0 775 regular file", "", ""},
      {"0 50 775 regular file", file + "group 50 may write to it, and we are root", ""},
      {"1000 1000 755 regular file", file + "it belongs to uid 1000, neither root nor us", ""},
      {"1001 0 755 regular file", file + "it belongs to uid 1001, neither root nor us",
       file + "it belongs to uid 1001, neither root nor us"},
      {"0 0 757 regular file", file + "everybody may write to it",
       file + "everybody may write to it"},
      {"0 0 644 regular file", file + "it is not executable", file + "it is not executable"},
      {"0 0 755 fifo", file + "it is not a regular file", file + "it is not a regular file"},
      {"what?", "stat says something else", "stat says something else"},
  };
  for (const Owned& row : rows) {
    CAPTURE(row.stat);
    for (const int uid : {0, 1000}) {
      machine::CapturedMachine captured{.uid = uid};
      captured.files["/checks/a"].text = "#!/bin/sh\n";
      captured.children["stat -c %u %g %a %F -- / /checks /checks/a"].out =
          std::string("0 0 755 directory\n0 0 1777 directory\n") + row.stat + "\n";
      const auto machine = machine::Machine::captured(captured);
      CHECK(distrusted_file(*machine, "/checks/a", Deadline::after(std::chrono::seconds(9))) ==
            (uid == 0 ? row.root : row.ann));
    }
  }
}

TEST_CASE("on paper: what was run then is told again") {
  machine::CapturedMachine captured;
  captured.files["/checks/a"].text = "#!/bin/sh\n";
  captured.children["stat -c %u %g %a %F -- / /checks"].out =
      "0 0 755 directory\n0 0 755 directory\n";
  captured.children["stat -c %u %g %a %F -- / /checks /checks/a"].out =
      "0 0 755 directory\n0 0 755 directory\n0 0 755 regular file\n";
  captured.children["/checks/a"] = {.exit_code = 1, .out = "warm\n"};
  NodeFacts node;
  collect_site_checks(*machine::Machine::captured(captured), {.checks_dir = "/checks"}, node);
  REQUIRE(node.site_checks.known());
  REQUIRE(node.site_checks->size() == 1);
  CHECK(told(node.site_checks->front()) == "degraded: warm");
  NodeFacts other;
  collect_site_checks(*machine::Machine::captured({}), {}, other);
  REQUIRE(other.site_checks.known());
  CHECK(other.site_checks->empty());
}
