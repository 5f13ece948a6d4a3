#include "rules/nccl/variables.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace)
using namespace distdoctor::rules;  // NOLINT(google-build-using-namespace)

namespace {

std::string words(const VariableReading& reading) {
  return reading.name + "=" + reading.taken_as + (reading.as_default ? " default" : "") +
         (reading.trap == VariableTrap::none ? "" : " " + std::string(slug(reading.trap)));
}

std::vector<std::string> read(const std::vector<std::pair<std::string, std::string>>& variables) {
  Settings settings;
  for (const auto& [name, value] : variables) settings[name] = {.value = value};
  std::vector<std::string> lines;
  for (const VariableReading& reading : read_variables(settings)) lines.push_back(words(reading));
  return lines;
}

std::string read_one(const std::string& name, const std::string& value) {
  const auto lines = read({{name, value}});
  return lines.empty() ? "" : lines.front().substr(name.size() + 1);
}

struct Row {
  std::string value;
  std::string expected;
};

void check_rows(const std::string& name, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.value);
    CHECK(read_one(name, row.value) == row.expected);
  }
}

}  // namespace

TEST_CASE("the names are in order, each once") {
  const auto rows = nccl_variables();
  CHECK(std::ranges::is_sorted(rows, {}, &VariableRow::name));
  CHECK(std::ranges::adjacent_find(rows, {}, &VariableRow::name) == rows.end());
  for (const VariableRow& row : rows) {
    CAPTURE(row.name);
    CHECK(row.name.starts_with("NCCL_"));
    CHECK_FALSE(meant_variable(row.name));
  }
}

TEST_CASE("numbers: strtoll with base 0") {
  check_rows("NCCL_IB_DISABLE", {{"1", "1"},
                                 {"0", "0 default"},
                                 {"true", "0 default word"},
                                 {"yes", "0 default word"},
                                 {"on", "0 default word"},
                                 {"\"1\"", "0 default word"},
                                 {"  ", "0 default word"},
                                 {"false", "0 default"},
                                 {"No", "0 default"},
                                 {"off", "0 default"},
                                 {"", " default"},
                                 {" 1", "1"},
                                 {"1\r", "1"},
                                 {"1 # no IB", "1"},
                                 {"***", ""}});
  check_rows("NCCL_IB_TC", {{"0x6a", "106"},
                            {"-1", "-1"},
                            {"022", "18 octal"},
                            {"08", "0 octal"},
                            {"-010", "-8 octal"},
                            {"07", "7"},
                            {"00", "0"},
                            {"8x", "8 rest"},
                            {"1e3", "1 rest"},
                            {"0x", "0 rest"},
                            {"0xg", "0 rest"},
                            {"auto", "0 word"},
                            {"--1", "0 word"},
                            {"99999999999999999999", " default unknown"}});
  check_rows("NCCL_BUFFSIZE", {{"4194304", "4194304 default"}, {"4M", "4 rest"}});
}

TEST_CASE("NCCL_P2P_DISABLE counts as 1 alone") {
  check_rows("NCCL_P2P_DISABLE", {{"1", "1"},
                                  {"0x1", "1"},
                                  {"01", "1"},
                                  {"0", "0 default"},
                                  {"2", "0 default exact"},
                                  {"-1", "0 default exact"},
                                  {"true", "0 default word"},
                                  {"", " default"}});
}

TEST_CASE("levels: upper case, or an old digit") {
  for (const char* name : {"NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL"}) {
    check_rows(name, {{"LOC", "LOC"},
                      {"SYS", "SYS"},
                      {"0", "LOC"},
                      {"1", "PIX"},
                      {"2", "PXB"},
                      {"3", "PHB"},
                      {"5", "SYS"},
                      {"9", "SYS"},
                      {"nvl", " default unknown"},
                      {"SYS\r", " default unknown"},
                      {"NET", " default unknown"},
                      {"-1", " default unknown"},
                      {"", " default"}});
  }
}

TEST_CASE("what keeps NCCL silent") {
  check_rows("NCCL_DEBUG", {{"INFO", "INFO"},
                            {"warn", "WARN"},
                            {"DEBUG", " default silenced"},
                            {"1", " default silenced"},
                            {"warning", " default silenced"},
                            {"INFO\r", " default silenced"},
                            {"0", " default"},
                            {"NONE", " default"},
                            {"", " default"}});
  const auto with = [](const std::string& level, const std::string& subsystems) {
    return read({{"NCCL_DEBUG", level}, {"NCCL_DEBUG_SUBSYS", subsystems}}).back();
  };
  CHECK(with("WARN", "init,net") == "NCCL_DEBUG_SUBSYS=init,net");
  CHECK(with("WARN", "INIT,bogus") == "NCCL_DEBUG_SUBSYS=INIT,bogus");
  CHECK(with("WARN", "bogus") == "NCCL_DEBUG_SUBSYS= silenced");
  CHECK(with("WARN", "") == "NCCL_DEBUG_SUBSYS= silenced");
  CHECK(with("INFO", "INIT NET") == "NCCL_DEBUG_SUBSYS= silenced");
  CHECK(with("INFO", "^bogus") == "NCCL_DEBUG_SUBSYS=bogus");
  CHECK(with("INFO", "^ALL") == "NCCL_DEBUG_SUBSYS= silenced");
  CHECK(with("VERSION", "bogus") == "NCCL_DEBUG_SUBSYS=");
  CHECK(read_one("NCCL_DEBUG_SUBSYS", "bogus").empty());
}

TEST_CASE("families and lists of algorithms") {
  check_rows("NCCL_SOCKET_FAMILY", {{"AF_INET6", "AF_INET6"},
                                    {"inet6", " default unknown"},
                                    {"AF_INET ", " default unknown"},
                                    {"", " default"}});
  check_rows("NCCL_ALGO", {{"Ring", "Ring"},
                           {"tree,nvlstree", "tree,nvlstree"},
                           {"^NVLS", "^NVLS"},
                           {"allreduce:ring;AllGather:tree", "allreduce:ring;AllGather:tree"},
                           {"Ring;Tree", " refused"},
                           {"AllToAll:ring", " refused"},
                           {"Rings", " refused"},
                           {"Ring, Tree", " refused"},
                           {"", " default"}});
  check_rows("NCCL_PROTO", {{"simple", "simple"},
                            {"^LL128", "^LL128"},
                            {"LL128,Simple", "LL128,Simple"},
                            {"Simple\r", " refused"},
                            {"LL64", " refused"}});
}

TEST_CASE("names that nobody reads, and what was meant") {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"},
      {"NCCL_SOCKET_IF_NAME", "NCCL_SOCKET_IFNAME"},
      {"NCCL_SOKET_IFNAME", "NCCL_SOCKET_IFNAME"},
      {"NCCL_SOCKET_IFNMAE", "NCCL_SOCKET_IFNAME"},
      {"NCCL_IFNAME_SOCKET", "NCCL_SOCKET_IFNAME"},
      {"NCCL_IB_HCAS", "NCCL_IB_HCA"},
      {"NCCL_IB_DISABLED", "NCCL_IB_DISABLE"},
      {"NCCL_DISABLE_IB", "NCCL_IB_DISABLE"},
      {"NCCL_P2P_DISABLED", "NCCL_P2P_DISABLE"},
      {"NCCL_IB_GID_INDX", "NCCL_IB_GID_INDEX"},
      {"NCCL_DEBG", "NCCL_DEBUG"},
      {"NCCL_IB_TIMEOUTS", "NCCL_IB_TIMEOUT"},
      {"NCCL_BUFSIZE", "NCCL_BUFFSIZE"}};
  for (const auto& [name, meant] : rows) {
    CAPTURE(name);
    CHECK(meant_variable(name).value_or("") == meant);
  }
  CHECK(read({{"NCCL_IB_HCAS", "mlx5"}}) ==
        std::vector<std::string>{"NCCL_IB_HCAS=NCCL_IB_HCA misspelt"});
}

TEST_CASE("what others read, or a later NCCL may read, is no slip") {
  for (const char* name : {"NCCL_VERSION",
                           "NCCL_HOME",
                           "NCCL_ROOT_DIR",
                           "NCCL_INCLUDE_DIR",
                           "NCCL_LIB_DIR",
                           "NCCL_ASYNC_ERROR_HANDLING",
                           "NCCL_BLOCKING_WAIT",
                           "NCCL_DESYNC_DEBUG",
                           "NCCL_ENABLE_TIMING",
                           "NCCL_HEARTBEAT_TIMEOUT_SEC",
                           "NCCL_TIMEOUT",
                           "NCCL_TESTS_DEVICE",
                           "NCCL_OFI_TUNER_TYPE",
                           "NCCL_OFI_DISABLE_GDR_REQUIRED_CHECK",
                           "NCCL_TUNER_CONFIG_PATH",
                           "NCCL_FASTRAK_IFNAME",
                           "NCCL_FASTRAK_NUM_FLOWS",
                           "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME",
                           "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE",
                           "NCCL_IBEXT_DISABLE",
                           "NCCL_UCX_TLS",
                           "NCCL_NET_GDR",
                           "NCCL_IB_CUDA_SUPPORT",
                           "NCCL_ENABLE_DMABUF_SUPPORT",
                           "RCCL_MSCCL_ENABLE",
                           "NCCL_LL_THRESHOLD",
                           "NCCL_RMA_ENABLE",
                           "NCCL_PIT_ENABLE",
                           "NCCL_IB_XL",
                           "NCCL_NEW_THING",
                           "NCCL_",
                           "NCCL_X",
                           "NCCL_IB_ENABLE",
                           "NCCL_SHM_ENABLE",
                           "NCCL_P2P_ENABLE",
                           "NCCL_NET_CHUNK_SIZE",
                           "TORCH_NCCL_BLOCKING_WAIT"}) {
    CAPTURE(name);
    CHECK_FALSE(meant_variable(name));
  }
  CHECK(read({{"NCCL_VERSION", "2.18.1-1"}, {"FI_PROVIDER", "efa"}}).empty());
}
