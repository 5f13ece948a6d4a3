#include "rules/torch/rendezvous.h"

#include <distdoctor/meeting.h>

#include "base/text.h"
#include "rules/torch/endpoint.h"

#include <algorithm>
#include <utility>

namespace distdoctor::rules {

namespace {

constexpr std::string_view kNameLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

// "$NAME" or "${NAME}" at the head of `text`; the rest is left in `text`. "" for anything else.
std::string_view take_name(std::string_view& text) {
  text.remove_prefix(1);
  const bool braces = text.starts_with('{');
  if (braces) text.remove_prefix(1);
  const auto length = std::min(text.find_first_not_of(kNameLetters), text.size());
  const auto name = text.substr(0, length);
  text.remove_prefix(length);
  if (!braces) return name;
  if (!text.starts_with('}')) return {};
  text.remove_prefix(1);
  return name;
}

// None where only the job's own shell knows what a '$' means.
std::optional<std::string> expand(std::string_view text, const Settings& settings) {
  std::string expanded;
  while (!text.empty()) {
    const auto dollar = std::min(text.find_first_of("$`"), text.size());
    expanded += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (text.empty()) break;
    if (text.front() == '`') return std::nullopt;
    const auto found = settings.find(std::string(take_name(text)));
    if (found == settings.end()) return std::nullopt;
    expanded += found->second.value;
  }
  return expanded;
}

bool is_torchrun(const Launch& launch) {
  return launch.kind == LauncherKind::torchrun || launch.kind == LauncherKind::torch_launch;
}

// Without a number that we can read, torchrun's own default tells: it is made for one node.
bool meets_nobody(const Launch& launch) {
  const bool by_default = is_torchrun(launch) && !launch.nnodes_max && launch.master_addr.empty() &&
                          launch.rdzv_endpoint.empty();
  return for_one_node(launch) || by_default;
}

std::optional<std::uint16_t> port_of(const Settings& settings) {
  const auto found = settings.find("MASTER_PORT");
  return found == settings.end() ? std::nullopt
                                 : parse_int<std::uint16_t>(trim(found->second.value));
}

std::optional<Rendezvous> from_variables(const Settings& settings) {
  const auto found = settings.find("MASTER_ADDR");
  if (found == settings.end() || found->second.value.empty()) return std::nullopt;
  return Rendezvous{.host = found->second.value, .port = port_of(settings)};
}

// What somebody said to us counts where the command line does not say it.
std::optional<Rendezvous> from_option(const Settings& settings) {
  const auto found = settings.find("MASTER_ADDR");
  const bool said = found != settings.end() && found->second.origin.source <= Source::option;
  return said ? from_variables(settings) : std::nullopt;
}

std::optional<Rendezvous> at_endpoint(const Launch& launch, const Settings& settings) {
  std::string written = launch.standalone ? "localhost" : launch.rdzv_endpoint;
  if (written.empty() && !launch.master_addr.empty()) {  // accelerate makes one of these
    written = launch.master_addr;
    if (!launch.master_port.empty()) written += ":" + launch.master_port;
  }
  const auto text = expand(written, settings);
  const auto endpoint = text ? parse_endpoint(*text, kC10dPort) : std::nullopt;
  if (!endpoint) return std::nullopt;
  return Rendezvous{.host = endpoint->host,
                    .port = endpoint->port,
                    .endpoint = true,
                    .is_host = launch.rdzv_is_host};
}

std::optional<std::uint16_t> master_port(const Launch& launch, const Settings& settings) {
  if (launch.master_port.empty()) return kMasterPort;
  const auto text = expand(launch.master_port, settings);
  return text ? parse_int<std::uint16_t>(trim(*text)) : std::nullopt;
}

// torchrun does not read MASTER_ADDR and MASTER_PORT of its environment: it overwrites them.
std::optional<Rendezvous> at_master(const Launch& launch, const Settings& settings) {
  if (!launch.rdzv_endpoint.empty()) {  // --rdzv-backend=static --rdzv-endpoint=...
    const auto text = expand(launch.rdzv_endpoint, settings);
    const auto endpoint = text ? parse_endpoint(*text, kMasterPort) : std::nullopt;
    if (!endpoint) return std::nullopt;
    return Rendezvous{.host = endpoint->host, .port = endpoint->port};
  }
  if (!launch.master_addr.empty()) {
    auto host = expand(launch.master_addr, settings);
    if (!host || host->empty()) return from_option(settings);
    return Rendezvous{.host = *std::move(host), .port = master_port(launch, settings)};
  }
  if (auto said = from_option(settings)) return said;
  if (!is_torchrun(launch)) return std::nullopt;  // a config file or a host list of theirs
  return Rendezvous{.host = "127.0.0.1", .port = master_port(launch, settings)};
}

}  // namespace

const Launch* deciding_launch(const JobSpec& job, std::string_view node) {
  const Launch* best = nullptr;
  const auto rank = [&](const Launch& launch) {
    return launch.origin.node == node ? 2 : launch.origin.node.empty() ? 1 : 0;
  };
  for (const Launch& launch : job.launches) {
    if (!starts_ranks_of_a_node(launch)) continue;
    if (job.peers.size() > 1 && meets_nobody(launch)) continue;
    if (best == nullptr || rank(launch) > rank(*best)) best = &launch;
  }
  return best;
}

std::optional<Rendezvous> rendezvous_of(const JobSpec& job, std::string_view node) {
  const Launch* launch = deciding_launch(job, node);
  if (launch == nullptr) return from_variables(job.settings);
  if (launch->standalone || launch->rdzv_backend == "c10d") {
    return at_endpoint(*launch, job.settings);
  }
  // etcd and its like: the endpoint is a service that no rank opens.
  const bool stat = launch->rdzv_backend.empty() || launch->rdzv_backend == "static";
  return stat ? at_master(*launch, job.settings) : std::nullopt;
}

}  // namespace distdoctor::rules
