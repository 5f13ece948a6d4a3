#include "support/check_cases.h"
#include "support/fake_isolations.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict verdict(const char* code,
                Ailment ailment,
                const std::string& says,
                const std::string& set,
                std::vector<std::string> fixes) {
  const bool slow = ailment == Ailment::slow;
  return {.code = code,
          .severity = slow ? degraded : blocker,
          .certainty = proved,
          .symptom = slow ? Symptom::slow : Symptom::crash,
          .says = says,
          .evidence = proof_rows(ailment, set),
          .fixes = std::move(fixes)};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"RDMA fails, TCP works",
     [](World& w) {
       isolate(w, {.layer = Layer::ib,
                   .ailment = Ailment::fails,
                   .workaround = {{"NCCL_NET", "Socket"}, {"NCCL_NET_PLUGIN", "none"}}});
     },
     {verdict("collective-ib-broken",
              Ailment::fails,
              "RDMA between the nodes fails",
              " -x NCCL_NET=Socket -x NCCL_NET_PLUGIN=none",
              {"*: NCCL_NET=Socket NCCL_NET_PLUGIN=none", "*: (manual)"})}},
    {"the plugin fails",
     [](World& w) {
       isolate(w, {.layer = Layer::plugin,
                   .ailment = Ailment::fails,
                   .workaround = {{"NCCL_NET_PLUGIN", "none"}}});
     },
     {verdict("collective-plugin-broken",
              Ailment::fails,
              "the network plugin fails",
              " -x NCCL_NET_PLUGIN=none",
              {"*: NCCL_NET_PLUGIN=none", "*: (manual)"})}},
    {"rails are apart",
     [](World& w) {
       isolate(w, {.layer = Layer::rail,
                   .ailment = Ailment::fails,
                   .workaround = {{"NCCL_CROSS_NIC", "0"}}});
     },
     {verdict("collective-rails-apart",
              Ailment::fails,
              "cards of different rails fails",
              " -x NCCL_CROSS_NIC=0",
              {"*: NCCL_CROSS_NIC=0", "*: (manual)"})}},
    {"PXN slows it",
     [](World& w) {
       isolate(w, {.layer = Layer::pxn,
                   .ailment = Ailment::slow,
                   .workaround = {{"NCCL_PXN_DISABLE", "1"}}});
     },
     {verdict("collective-pxn",
              Ailment::slow,
              "(PXN) is slow: 2.0 GB/s, and 12.0 GB/s without it",
              " -x NCCL_PXN_DISABLE=1",
              {"*: NCCL_PXN_DISABLE=1", "*: (manual)"})}},
    {"one card is bad",
     [](World& w) {
       isolate(w, {.layer = Layer::hca,
                   .ailment = Ailment::fails,
                   .names = {"mlx5_3"},
                   .workaround = {{"NCCL_IB_HCA", "^=mlx5_3"}}});
     },
     {verdict("collective-hca-bad",
              Ailment::fails,
              "traffic by mlx5_3 fails",
              " -x NCCL_IB_HCA=^=mlx5_3",
              {"*: NCCL_IB_HCA=^=mlx5_3", "*: (manual)"})}},
    {"another card is faster",
     [](World& w) {
       isolate(w, {.layer = Layer::hca,
                   .ailment = Ailment::slow,
                   .names = {"mlx5_0"},
                   .workaround = {{"NCCL_IB_HCA", "=mlx5_4"}}});
     },
     {verdict("collective-hca-wrong",
              Ailment::slow,
              "NCCL takes mlx5_0, though NCCL_IB_HCA==mlx5_4 is faster: 2.0 GB/s, and 12.0 GB/s",
              " -x NCCL_IB_HCA==mlx5_4",
              {"*: NCCL_IB_HCA==mlx5_4"})}},
    {"near miss: half of the proof is lost",
     [](World& w) {
       isolate(w, {.layer = Layer::ib, .ailment = Ailment::fails});
       lose_the_sound_run(w);
     }},
    {"near miss: another layer",
     [](World& w) { isolate(w, {.layer = Layer::gdr, .ailment = Ailment::fails}); }},
};

TEST_CASE("collective/rdma") {
  run_cases("collective/rdma", cases);
}

}  // namespace
}  // namespace distdoctor::testing
