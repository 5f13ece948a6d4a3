#include "checks/env/config_files.h"

namespace distdoctor::testing {
namespace {

using enum Severity;

Verdict damaged(const std::string& code,
                Severity severity,
                const std::string& says,
                const std::vector<std::string>& rows,
                const std::vector<std::string>& fixes) {
  return {.code = code,
          .severity = severity,
          .certainty = Certainty::likely,
          .symptom = code == "env-nccl-conf-ifname" ? Symptom::hang : Symptom::slow,
          .says = says,
          .blamed = {"node1"},
          .evidence = rows,
          .fixes = fixes};
}

std::string row(int line, const std::string& observed, const std::string& expected) {
  const std::string number = std::to_string(line);
  return "node1 /etc/nccl.conf:" + number + ": " + observed + ", not " + expected + "; sed -n " +
         number + "p /etc/nccl.conf | cat -A";
}

const std::string kNothingThere = "no such line: nothing here has the name that is meant";
const std::string kNoReturns = "node1: sed -i 's/\\r$//' -- /etc/nccl.conf";

void no_interface(World& w) {
  World::change(w.prediction(1).nccl, [](NcclChoice& choice) {
    choice.bootstrap = std::nullopt;
    choice.bootstrap_error = "no socket interface found";
  });
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a file as it should be",
     [](World& w) {
       put_lines(w, {{1, "NCCL_SOCKET_IFNAME", "=eth1"},
                     {2, "NCCL_DEBUG", "INFO"},
                     {4, "NCCL_IB_HCA", "=mlx5_0,mlx5_1"},
                     {5, "NCCL_TOPO_FILE", "/etc/t.xml"}});
     }},
    {"nobody looked",
     [](World& w) { w.node(1).nccl_config = Unknown{.text = "no answer"}; },
     {},
     {"node1 nccl_config"}},
    {"carriage returns, and no interface is found",
     [](World& w) {
       put_lines(w, {{1, "NCCL_SOCKET_IFNAME", "eth1\r"}});
       no_interface(w);
     },
     {damaged("env-nccl-conf-ifname",
              blocker,
              "NCCL_SOCKET_IFNAME in /etc/nccl.conf is not what it looks like: the carriage return "
              "at its end is part of the value",
              {row(1, "NCCL_SOCKET_IFNAME=eth1\r", "NCCL_SOCKET_IFNAME=eth1")},
              {kNoReturns})}},
    {"carriage returns, and what NCCL takes is not known",
     [](World& w) {
       put_lines(w, {{1, "NCCL_SOCKET_IFNAME", "eth1\r"}});
       w.prediction(1).nccl = Unknown{.text = "no links"};
     },
     {damaged("env-nccl-conf-ifname",
              blocker,
              "carriage return",
              {row(1, "NCCL_SOCKET_IFNAME=eth1\r", "NCCL_SOCKET_IFNAME=eth1")},
              {kNoReturns})}},
    {"carriage returns, and another name of the list is found",
     [](World& w) { put_lines(w, {{1, "NCCL_SOCKET_IFNAME", "eth1,eth2\r"}}); },
     {damaged("env-nccl-conf-ifname",
              degraded,
              "carriage return",
              {row(1, "NCCL_SOCKET_IFNAME=eth1,eth2\r", "NCCL_SOCKET_IFNAME=eth1,eth2")},
              {kNoReturns})}},
    {"carriage returns of other lines; numbers bear them",
     [](World& w) {
       put_lines(
           w,
           {{1, "NCCL_IB_TC", "106\r"}, {2, "NCCL_IB_HCA", "mlx5_0\r"}, {3, "NCCL_NET", "IB\r"}});
     },
     {damaged("env-nccl-conf-value",
              degraded,
              "NCCL_IB_HCA in /etc/nccl.conf",
              {row(2, "NCCL_IB_HCA=mlx5_0\r", "NCCL_IB_HCA=mlx5_0"),
               row(3, "NCCL_NET=IB\r", "NCCL_NET=IB")},
              {kNoReturns})}},
    {"quotes",
     [](World& w) {
       put_lines(w, {{3, "NCCL_SOCKET_IFNAME", "\"=eth1\""}});
       no_interface(w);
     },
     {damaged("env-nccl-conf-ifname",
              blocker,
              "the quotes are part of the value",
              {row(3, "NCCL_SOCKET_IFNAME=\"=eth1\"", "NCCL_SOCKET_IFNAME==eth1")},
              {"node1: sed -i '3s|.*|NCCL_SOCKET_IFNAME==eth1|' -- /etc/nccl.conf"})}},
    {"a comment behind the value",
     [](World& w) {
       put_lines(w, {{3, "NCCL_IB_HCA", "mlx5_0 # rail 0"}, {4, "NCCL_IB_TC", "106 # dscp"}});
     },
     {damaged("env-nccl-conf-value",
              degraded,
              "the comment behind it is part of the value",
              {row(3, "NCCL_IB_HCA=mlx5_0 # rail 0", "NCCL_IB_HCA=mlx5_0")},
              {"node1: sed -i '3s|.*|NCCL_IB_HCA=mlx5_0|' -- /etc/nccl.conf"})}},
    {"blanks around a value with what sed would take for its own",
     [](World& w) { put_lines(w, {{3, "NCCL_TOPO_FILE", " /a&b|c"}}); },
     {damaged("env-nccl-conf-value",
              degraded,
              "the blanks around it are part of the value",
              {row(3, "NCCL_TOPO_FILE= /a&b|c", "NCCL_TOPO_FILE=/a&b|c")},
              {"node1: (manual)"})}},
    {"a value that NCCL refuses",
     [](World& w) { put_lines(w, {{3, "NCCL_PROTO", "\"Simple\""}}); },
     {damaged("env-nccl-conf-value",
              blocker,
              "the quotes",
              {row(3, "NCCL_PROTO=\"Simple\"", "NCCL_PROTO=Simple")},
              {"node1: sed -i '3s|.*|NCCL_PROTO=Simple|' -- /etc/nccl.conf"})}},
    {"export before the interface",
     [](World& w) { put_lines(w, {{3, "export NCCL_SOCKET_IFNAME", "eth1"}}); },
     {damaged("env-nccl-conf-ifname",
              degraded,
              "NCCL takes all before the '=' for the name",
              {row(3, "export NCCL_SOCKET_IFNAME=eth1", "NCCL_SOCKET_IFNAME=eth1")},
              {"node1: sed -i '3s|.*|NCCL_SOCKET_IFNAME=eth1|' -- /etc/nccl.conf"})}},
    {"blanks around the '=': one finding, and the line as NCCL reads it",
     [](World& w) { put_lines(w, {{3, "NCCL_SOCKET_IFNAME ", " eth1"}}); },
     {damaged("env-nccl-conf-ifname",
              degraded,
              "NCCL takes all before the '=' for the name",
              {row(3, "NCCL_SOCKET_IFNAME = eth1", "NCCL_SOCKET_IFNAME=eth1")},
              {"node1: sed -i '3s|.*|NCCL_SOCKET_IFNAME=eth1|' -- /etc/nccl.conf"})}},
    {"export before an interface that is not there: the job works without the line",
     [](World& w) { put_lines(w, {{3, "export NCCL_SOCKET_IFNAME", "eth9"}}); },
     {damaged("env-nccl-conf-ifname",
              notice,
              "NCCL takes all before the '=' for the name",
              {row(3, "export NCCL_SOCKET_IFNAME=eth9", kNothingThere)},
              {"node1: sed -i 3d -- /etc/nccl.conf"})}},
    {"quotes around an interface that is not there",
     [](World& w) {
       put_lines(w, {{3, "NCCL_SOCKET_IFNAME", "\"=eth9\""}});
       no_interface(w);
     },
     {damaged("env-nccl-conf-ifname",
              blocker,
              "the quotes are part of the value",
              {row(3, "NCCL_SOCKET_IFNAME=\"=eth9\"", kNothingThere)},
              {"node1: sed -i 3d -- /etc/nccl.conf"})}},
    {"export before a list that leaves interfaces out",
     [](World& w) { put_lines(w, {{3, "export NCCL_SOCKET_IFNAME", "^lo,docker"}}); },
     {damaged("env-nccl-conf-ifname",
              degraded,
              "NCCL takes all before the '=' for the name",
              {row(3, "export NCCL_SOCKET_IFNAME=^lo,docker", "NCCL_SOCKET_IFNAME=^lo,docker")},
              {"node1: sed -i '3s|.*|NCCL_SOCKET_IFNAME=^lo,docker|' -- /etc/nccl.conf"})}},
    {"a blank before what steers no traffic",
     [](World& w) { put_lines(w, {{3, " NCCL_DEBUG", "INFO"}}); },
     {damaged("env-nccl-conf-ignored",
              notice,
              "ignores the line",
              {row(3, " NCCL_DEBUG=INFO", "NCCL_DEBUG=INFO")},
              {"node1: sed -i '3s|.*|NCCL_DEBUG=INFO|' -- /etc/nccl.conf"})}},
    {"blanks and export before others",
     [](World& w) {
       put_lines(w, {{3, " NCCL_DEBUG", "INFO"},
                     {4, "NCCL_IB_TC ", " 106"},
                     {5, "\xef\xbb\xbfNCCL_IB_SL", "1"}});
     },
     {damaged("env-nccl-conf-ignored",
              degraded,
              "ignores the line",
              {row(3, " NCCL_DEBUG=INFO", "NCCL_DEBUG=INFO"),
               row(4, "NCCL_IB_TC = 106", "NCCL_IB_TC=106"),
               row(5, "\xef\xbb\xbfNCCL_IB_SL=1", "NCCL_IB_SL=1")},
              {"node1: sed -i '3s|.*|NCCL_DEBUG=INFO|' -- /etc/nccl.conf",
               "node1: sed -i '4s|.*|NCCL_IB_TC=106|' -- /etc/nccl.conf",
               "node1: sed -i '5s|.*|NCCL_IB_SL=1|' -- /etc/nccl.conf"})}},
    {"near miss: comments that NCCL takes for names",
     [](World& w) {
       put_lines(w, {{1, " # NCCL_DEBUG", "INFO"}, {2, "// see NCCL_DEBUG and more", "x"}});
     }},
    {"near miss: the environment goes before a broken line",
     [](World& w) {
       put_files(w, 1,
                 {system_config({{1, "NCCL_SOCKET_IFNAME", "eth1\r"},
                                 {2, "export NCCL_SOCKET_IFNAME", "eth1"}})});
     }},
    {"near miss: a later line of the same name",
     [](World& w) {
       put_lines(w, {{1, "NCCL_SOCKET_IFNAME", "=eth1"}, {2, "NCCL_SOCKET_IFNAME", "\"eth1\""}});
     }},
    {"near miss: a masked value",
     [](World& w) { put_lines(w, {{1, "NCCL_PROXY_TOKEN", "\"***\""}}); }},
    {"nobody knows whether NCCL is used",
     [](World& w) {
       put_lines(w, {{1, "NCCL_SOCKET_IFNAME", "eth1\r"}});
       no_interface(w);
       w.cluster.job.nccl = Use::maybe;
     },
     {damaged("env-nccl-conf-ifname",
              notice,
              "carriage return",
              {row(1, "NCCL_SOCKET_IFNAME=eth1\r", "NCCL_SOCKET_IFNAME=eth1")},
              {kNoReturns})}},
    {"near miss: Gloo reads none of them",
     [](World& w) {
       put_lines(w, {{1, "NCCL_SOCKET_IFNAME", "eth1\r"}});
       w.cluster.job.nccl = Use::no;
     }},
    {"the job names another file than the one that was read",
     [](World& w) {
       say_on(w, 1, "NCCL_CONF_FILE", "/opt/nccl.conf");
       NcclConfigFile own = system_config({{1, "NCCL_IB_HCA", "mlx5\r"}});
       own.source = Source::user_config;
       own.path = "/users/ann/.nccl.conf";
       put_files(w, 1, {own});
     },
     {},
     {"node1 nccl_config"}},
};

TEST_CASE("env/nccl_config") {
  run_cases("env/nccl_config", cases);
}

}  // namespace
}  // namespace distdoctor::testing
