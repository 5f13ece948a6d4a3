// A node with AWS's EFA has what NCCL needs to use it.
#include <distdoctor/check.h>
#include <distdoctor/followed.h>

#include "found.h"

namespace distdoctor::checks {
namespace {

using namespace software;  // NOLINT(google-build-using-namespace): the look-ups of this folder

std::vector<std::string> efa_devices(const NodeFacts& node) {
  std::vector<std::string> names;
  for (const RdmaDevice& device : node.rdma->devices) {
    if (device.driver == "efa") names.push_back(device.name);
  }
  return names;
}

// NCCL itself knows no EFA: it needs a plugin, and that needs libfabric.
std::string missing(const Found& one) {
  if (net_plugin(one) == nullptr) return "no network plugin for NCCL (aws-ofi-nccl)";
  if (net_plugin(one)->version.starts_with("aws-ofi-nccl") && one.software->libfabric.empty()) {
    return "no libfabric for " + net_plugin(one)->path;
  }
  return "";
}

// What a container that was started without them lacks; empty: some device may be opened.
std::string closed(const NodeFacts& node) {
  std::string why;
  for (const RdmaDevice& device : node.rdma->devices) {
    if (device.driver != "efa") continue;
    if (device.uverbs_there && device.uverbs_usable) return "";
    if (!why.empty()) continue;
    const std::string path = device.uverbs.empty() ? "/dev/infiniband/uverbs*" : device.uverbs;
    why = path + (device.uverbs_there ? " may not be opened" : " is not there");
  }
  return why;
}

Finding about(const Case& c,
              const Found& one,
              const std::vector<std::string>& devices,
              const std::string& lacks) {
  return {
      .code = "software-efa-not-usable",
      .severity = capped(c, {one}, Severity::degraded),
      .certainty = live(one) ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {one.host()}},
      .summary = fmt::format("{} has the EFA device{} {}, but {}: NCCL goes over TCP", one.host(),
                             devices.size() == 1 ? "" : "s", fmt::join(devices, ", "), lacks)};
}

// Our own world need not be that of the ranks.
void judge_nodes(const Case& c,
                 const Found& one,
                 const std::vector<std::string>& devices,
                 Judge& judge) {
  const auto why = closed(*one.node);
  if (why.empty()) return;
  Finding finding = about(c, one, devices, why);
  finding.severity = capped_by_context(finding.severity, one.node->context);
  finding.certainty = Certainty::likely;
  finding.evidence.push_back(row_of(one, "EFA", why, "a device node that the job may open",
                                    "ls -l /dev/infiniband; fi_info -p efa"));
  finding.fix = {by_hand(one.host(),
                         "start the container with --device=/dev/infiniband/uverbs0 and the others "
                         "(Kubernetes: request vpc.amazonaws.com/efa); on the host the udev rules "
                         "of rdma-core let all users open them")};
  judge.report(std::move(finding));
}

void judge_node(const Case& c, const Found& one, Judge& judge) {
  const auto devices = efa_devices(*one.node);
  if (devices.empty()) return;
  const auto lacks = missing(one);
  if (lacks.empty()) return judge_nodes(c, one, devices, judge);
  if (!plugin_was_looked_for(c, *one.node, judge)) return;
  Finding finding = about(c, one, devices, lacks);
  finding.evidence.push_back(
      row_of(one, "EFA", lacks, "libnccl-net.so of aws-ofi-nccl, and libfabric",
             "ls /opt/amazon/ofi-nccl/lib* /opt/amazon/efa/lib*; ldconfig -p | grep -E "
             "'nccl-net|fabric'"));
  finding.fix = {by_hand(one.host(),
                         "install AWS's EFA installer and aws-ofi-nccl, in the image that the job "
                         "runs, and put their folders on the job's LD_LIBRARY_PATH")};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return judge.skip("the job does without NCCL");
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  bool any = false;
  for (const Found& one : with_nccl(found_on(c, judge))) {
    if (judge.see(*one.node, "rdma", one.node->rdma) == nullptr) continue;
    any = any || !efa_devices(*one.node).empty();
    judge_node(c, one, judge);
  }
  if (!any) judge.skip("no node with NCCL has an EFA device");
}

constexpr Page kPage{
    .meaning =
        "The node has EFA, AWS's fabric. NCCL can use it only through the plugin aws-ofi-nccl and "
        "libfabric, which open /dev/infiniband/uverbsN; without one of them it goes over TCP, "
        "several times slower.",
    .confirm =
        "NCCL_DEBUG=INFO prints `Using network Socket` in place of `NET/OFI Selected provider is "
        "efa`; `fi_info -p efa` finds nothing.",
    .fix =
        "Use an image with both, such as AWS's deep learning containers, or install them; their "
        "folders must be on the LD_LIBRARY_PATH of the job.",
    .verify = "NCCL_DEBUG=INFO prints `NET/OFI Selected provider is efa`."};
constexpr std::string_view kCauses[] = {"net-slow-interface"};
constexpr Code kCodes[] = {{.id = "software-efa-not-usable",
                            .fault_class = FaultClass::efa_not_available,
                            .worst = Severity::degraded,
                            .title = "EFA is there, and NCCL cannot use it",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check software_efa_plugin{.title = "EFA has its plugin", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
