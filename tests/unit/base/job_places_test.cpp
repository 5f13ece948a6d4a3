#include "base/job_places.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;  // NOLINT(google-build-using-namespace)

namespace {

struct Row {
  std::string_view name;  // of the variable
  std::string_view written;
  std::string text;
  bool whole = true;
};

const std::map<std::string, std::string> kEnvironment = {
    {"LD_LIBRARY_PATH", "/own:/lib64"}, {"OFI", "/opt/ofi"},        {"EMPTY", ""}, {"PWD", "/here"},
    {"JOB_API_KEY", "hunter2"},         {"SLURM_JOB_TMP", "/tmp/1"}};

const std::vector<Row> kRows = {
    {"LD_LIBRARY_PATH", "/a:/b", "/a:/b"},
    {"LD_LIBRARY_PATH", "/a:$LD_LIBRARY_PATH", "/a:/own:/lib64"},
    {"LD_LIBRARY_PATH", "/a${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", "/a:/own:/lib64"},
    {"LD_LIBRARY_PATH", "${OFI}/lib:$ORIGIN/../lib:${LIB}", "/opt/ofi/lib:$ORIGIN/../lib:${LIB}"},
    {"LD_LIBRARY_PATH", "$(module path):/b:$NOWHERE/lib:${X:+:}", "/b", false},
    {"LD_LIBRARY_PATH", "`x`:/b", "/b", false},
    {"LD_LIBRARY_PATH", "$PWD/lib:/b", "/b", false},
    {"LD_LIBRARY_PATH", "$SLURM_JOB_TMP/lib", "", false},
    {"LD_PRELOAD", "$LD_PRELOAD", ""},  // of itself, and nobody has set it
    {"LD_PRELOAD", "${LD_PRELOAD:-/x.so}", "/x.so"},
    {"LD_LIBRARY_PATH", "${LD_LIBRARY_PATH:-/x}", "/own:/lib64"},
    {"PATH", "${EMPTY:-/x}:${EMPTY:+/y}", "/x:"},
    {"NCCL_NET_PLUGIN", "$OFI/lib/libnccl-net.so", "/opt/ofi/lib/libnccl-net.so"},
    {"NCCL_NET_PLUGIN", "$EFA/lib/libnccl-net.so", "", false},
    {"NCCL_NET_PLUGIN", "${OFI%/}/x.so", "", false},
    {"NCCL_NET_PLUGIN", "${OFI", "", false},
    {"NCCL_NET_PLUGIN", "a$", "", false},
    {"NCCL_TOPO_FILE", "$LOCAL_RANK.xml", "", false},
    {"NCCL_TOPO_FILE", "/run/$JOB_API_KEY/topo.xml", "", false},
    {"LD_LIBRARY_PATH", "/a:${JOB_API_KEY:+$JOB_API_KEY}:/b", "/a:/b", false},
    {"LD_LIBRARY_PATH", "/usr/lib:***@12/lib", "/usr/lib", false},  // masked on its way
};

}  // namespace

TEST_CASE("what a script sets a path to, in an environment") {
  for (const Row& row : kRows) {
    CAPTURE(std::string(row.written));
    const auto filled = fill_in(row.name, row.written, kEnvironment);
    CHECK(filled.text == row.text);
    CHECK(filled.whole == row.whole);
  }
}

TEST_CASE("a deep or a long one is none") {
  std::string deep = "/x";
  for (int i = 0; i < 20; ++i) deep = "${A:-" + deep + "}";
  CHECK_FALSE(fill_in("NCCL_NET_PLUGIN", deep, {}).whole);
  const std::map<std::string, std::string> large = {{"A", std::string(40'000, 'a')}};
  CHECK_FALSE(fill_in("NCCL_NET_PLUGIN", "$A$A", large).whole);
}

TEST_CASE("which variables lead to files") {
  for (const char* name : {"LD_LIBRARY_PATH", "PATH", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN",
                           "NCCL_TOPO_FILE", "NCCL_CONF_FILE", "CONDA_PREFIX"}) {
    CHECK(leads_to_files(name));
  }
  for (const char* name : {"NCCL_NET", "NCCL_DEBUG_FILE", "MASTER_ADDR", "LD_DEBUG"}) {
    CHECK_FALSE(leads_to_files(name));
  }
}
