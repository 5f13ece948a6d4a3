#include "support/check_cases.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void limit(World& w, std::size_t node, std::int64_t soft, std::optional<std::int64_t> hard) {
  World::change(w.node(node).limits,
                [&](auto& limits) { limits["nofile"] = {.soft = soft, .hard = hard}; });
}
// 256 ranks, and node0 has the store.
void many_ranks(World& w) {
  w.cluster.job.ranks_per_node = 64;
}

Verdict low(const char* node,
            Severity severity,
            std::string says,
            const std::string& row,
            const std::string& fix) {
  const bool sure = severity == blocker || says.find("all-to-all") == std::string::npos;
  return {.code = "host-nofile",
          .severity = severity,
          .certainty = sure ? likely : possible,
          .symptom = Symptom::crash,
          .says = std::move(says),
          .blamed = {node},
          .evidence = {std::string(node) + " limits.nofile: " + row +
                       " or more; ulimit -Sn; ulimit -Hn"},
          .fixes = {std::string(node) + ": " + fix}};
}
const std::string kLimits =
    "printf '* soft nofile 1048576\\n* hard nofile 1048576\\n' > "
    "/etc/security/limits.d/99-distdoctor-nofile.conf";
const char* const kStore =
    "may open 256 files, but the store at MASTER_PORT, which keeps a connection of each of 256 "
    "ranks, takes 320";

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: many ranks", many_ranks},
    {"the store of 256 ranks",
     [](World& w) {
       many_ranks(w);
       w.cluster.job.nccl = Use::no;
       limit(w, 0, 256, 524288);
     },
     {low("node0", blocker, kStore, "256 (hard limit: 524288), not 320", "(manual)")}},
    {"WORLD_SIZE counts where the job said it",
     [](World& w) {
       w.cluster.job.nccl = Use::no;
       w.set("WORLD_SIZE", "256");
       limit(w, 0, 256, std::nullopt);
     },
     {low("node0", blocker, kStore, "256 (hard limit: unlimited), not 320", "(manual)")}},
    {"an ssh login is not the job's world",
     [](World& w) {
       many_ranks(w);
       w.cluster.job.nccl = Use::no;
       limit(w, 0, 256, 256);
       w.node(0).context = Context::ssh;
     },
     {low("node0",
          notice,
          "files (as seen from here; the job's own may differ), but the store",
          "256 (hard limit: 256), not 320",
          kLimits)}},
    {"64 sockets to each neighbour",
     [](World& w) {
       w.set("NCCL_SOCKET_NTHREADS", "16");
       w.set("NCCL_NSOCKS_PERTHREAD", "8");
       limit(w, 1, 256, 256);
     },
     {low("node1",
          blocker,
          "a rank with 2 channels of 65 sockets to each of two neighbours takes",
          "256 (hard limit: 256), not 324",
          kLimits)}},
    {"in a container",
     [](World& w) {
       w.set("NCCL_MIN_NCHANNELS", "64");
       limit(w, 1, 256, 256);
       World::change(w.node(1).identity, [](Identity& me) { me.container = "docker"; });
     },
     {low("node1",
          blocker,
          "a rank with 64 channels of 2 sockets",
          "256 (hard limit: 256), not 320",
          "(manual)")}},
    {"AWS: NCCL makes 16 sockets itself",
     [](World& w) {
       w.node(1).world = distdoctor::World{.cloud = "aws"};
       limit(w, 1, 128, 128);
     },
     {low("node1",
          blocker,
          "a rank with 2 channels of 17 sockets",
          "128 (hard limit: 128), not 132",
          kLimits)}},
    {"an all-to-all would need more: a notice",
     [](World& w) {
       many_ranks(w);
       limit(w, 2, 512, 1024);
     },
     {low("node2",
          notice,
          "an all-to-all over sockets with 192 ranks of other nodes takes 832",
          "512 (hard limit: 1024), not 832",
          "(manual)")}},
    {"near miss: just enough for the store",
     [](World& w) {
       many_ranks(w);
       w.cluster.job.nccl = Use::no;
       limit(w, 0, 320, 320);
     }},
    {"near miss: another node than the store's",
     [](World& w) {
       many_ranks(w);
       w.cluster.job.nccl = Use::no;
       limit(w, 1, 256, 256);
     }},
    {"near miss: RDMA carries the data",
     [](World& w) {
       w.set("NCCL_MIN_NCHANNELS", "64");
       w.node(1).devices = Devices{.rdma = {"mlx5_0"}};
       limit(w, 1, 256, 256);
     }},
    {"near miss: one node alone",
     [](World& w) {
       limit(w, 0, 16, 16);
       w.cluster.nodes.resize(1);
     }},
    {"unseen limits are a gap",
     [](World& w) { w.node(1).limits = Unknown{.kind = Why::failed, .text = "getrlimit: EFAULT"}; },
     {},
     {"node1 limits"}},
};

TEST_CASE("host/nofile") {
  run_cases("host/nofile", cases);
}

}  // namespace
}  // namespace distdoctor::testing
