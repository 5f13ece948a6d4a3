// The schemas of packaging/schema are generated: DISTDOCTOR_UPDATE_GOLDEN=1 writes them anew.
#include "codec/codec.h"
#include "codec/report.h"
#include "support/builders.h"
#include "support/diagnoses.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::codec;  // NOLINT(google-build-using-namespace): a test of it

namespace {

namespace fs = std::filesystem;

const fs::path kSchemas = fs::path(DISTDOCTOR_SOURCE_DIR) / "packaging" / "schema";

std::string file_of(std::string_view schema) {
  std::string name(schema);
  name.replace(name.find('/'), 1, "-");
  return name + ".schema.json";
}

std::string slurp(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Whether Debian's jsonschema takes the text as an instance of the schema; its complaint goes to
// the terminal.
bool valid(std::string_view schema, const std::string& text, std::string_view redirect = "") {
  static const fs::path kFolder =
      fs::temp_directory_path() / ("distdoctor-schema-test-" + std::to_string(::getpid()));
  fs::create_directories(kFolder);
  const fs::path instance = kFolder / (file_of(schema) + ".instance");
  std::ofstream(instance) << text;
  const std::string command =
      "/usr/bin/python3 -c 'import json, jsonschema, sys; "
      "schema, x = (json.load(open(p)) for p in sys.argv[1:]); "
      "jsonschema.Draft202012Validator.check_schema(schema); "
      "jsonschema.Draft202012Validator(schema).validate(x)' " +
      (kSchemas / file_of(schema)).string() + " " + instance.string() + std::string(redirect);
  const bool good = std::system(command.c_str()) == 0;  // NOLINT(concurrency-mt-unsafe)
  fs::remove_all(kFolder);
  return good;
}

bool have_jsonschema() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  return std::system("/usr/bin/python3 -c 'import jsonschema' 2>/dev/null") == 0;
}

ClusterFacts wired() {
  ClusterFacts cluster = testing::healthy_cluster(2);
  cluster.pairs[0].paths[0].wire = std::vector<WireSpeed>{{1, 2.5, 0.7}, {8, 3, 0.7}};
  return cluster;
}

}  // namespace

TEST_CASE("packaging/schema is what the code says") {
  for (const std::string_view schema : {kReportSchema, kFactsSchema, kClusterSchema}) {
    CAPTURE(schema);
    const fs::path path = kSchemas / file_of(schema);
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (std::getenv("DISTDOCTOR_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(path) << json_schema(schema);
    }
    const bool fresh = slurp(path) == json_schema(schema);
    CHECK_MESSAGE(fresh, "stale: run the tests with DISTDOCTOR_UPDATE_GOLDEN=1");
  }
}

TEST_CASE("what is written fits its schema, and what does not is told apart") {
  if (!have_jsonschema()) {
    MESSAGE("skipped: /usr/bin/python3 has no jsonschema (python3-jsonschema)");
    return;
  }
  const ClusterFacts cluster = testing::healthy_cluster(2);
  const NodeFacts empty{.host = "node9"};
  CHECK(valid(kReportSchema, write_report("check", testing::dropped_port_diagnosis(), 2)));
  CHECK(valid(kReportSchema, write_report("check", Diagnosis{}, 0)));
  const std::string bisected =
      write_report("bisect", Diagnosis{}, 0, {Experiment{}}, {Isolation{}}, wired().pairs);
  CHECK(valid(kReportSchema, bisected));
  CHECK(bisected.find("\"isolations\"") != std::string::npos);
  CHECK(bisected.find("\"speeds\"") != std::string::npos);
  CHECK(valid(kClusterSchema, write_cluster(wired())));
  CHECK(valid(kClusterSchema, write_cluster(cluster)));
  CHECK(valid(kFactsSchema, write_facts(empty, nullptr)));
  CHECK(valid(kFactsSchema, write_facts(cluster.nodes[0], cluster.predicted.nodes.data())));
  std::string broken = write_facts(empty, nullptr);
  broken.replace(broken.find("\"reached\": false"), 16, "\"reached\": 3");
  CHECK_FALSE(valid(kFactsSchema, broken, " 2>/dev/null"));
}
