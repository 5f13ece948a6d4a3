#include "base/secrets.h"
#include "base/text.h"
#include "collect/accounts.h"
#include "collect/collectors.h"

#include <algorithm>
#include <optional>
#include <string>

namespace distdoctor::collect {
namespace {

constexpr std::size_t kMostCommand = 400;  // bytes of an owner's command line

class Owners {
 public:
  explicit Owners(const machine::Machine& machine)
      : holders_(machine.socket_owners()),
        processes_(machine.processes()),
        accounts_(read_accounts(machine.files())) {}

  [[nodiscard]] std::optional<Owner> of(const machine::SocketRow& row) const {
    const auto pid = holders_.owner(row.inode);
    const auto* const process = pid ? processes_.find(*pid) : nullptr;
    if (process == nullptr) return std::nullopt;
    return Owner{.pid = *pid,
                 .command = command(*process),
                 .user = user_name(accounts_, process->uid),
                 .uid = process->uid,
                 .age_s = process->age_s};
  }

  // In a pid namespace of our own, a holder may live outside of it; then some listener has none.
  [[nodiscard]] bool all_visible(const std::vector<machine::SocketRow>& rows) const {
    if (!holders_.complete()) return false;
    return processes_.whole_machine ||
           std::ranges::all_of(rows, [this](const machine::SocketRow& row) {
             return !row.listening || holders_.owner(row.inode).has_value();
           });
  }

 private:
  static std::string command(const machine::Process& process) {
    if (process.argv.empty()) return process.name;
    return shortened(join(mask_secrets(process.argv), " "), kMostCommand);
  }

  const machine::SocketOwners& holders_;
  const machine::Processes& processes_;
  Accounts accounts_;
};

Listener listener(const machine::SocketRow& row, const Owners& owners) {
  return {.address = row.local,
          .port = row.local_port,
          .queued = row.receive_queue,
          .backlog = row.send_queue,
          .owner = owners.of(row)};
}

Connection connection(const machine::SocketRow& row, const Owners& owners) {
  return {.state = row.state,
          .local = row.local,
          .local_port = row.local_port,
          .remote = row.remote,
          .remote_port = row.remote_port,
          .retransmits = row.retransmits,
          .owner = owners.of(row)};
}

}  // namespace

void collect_sockets(machine::Machine& machine,
                     const CollectRequest& /*request*/,
                     NodeFacts& node) {
  const auto sockets = machine.sockets();
  if (!sockets) {
    node.sockets = unknown_because(sockets.error());
    return;
  }
  const Owners owners(machine);
  SocketFacts facts{.truncated = sockets->truncated,
                    .owners_visible = owners.all_visible(sockets->rows)};
  for (const auto& row : sockets->rows) {
    if (row.listening)
      facts.listeners.push_back(listener(row, owners));
    else
      facts.connections.push_back(connection(row, owners));
  }
  node.sockets = std::move(facts);
}

}  // namespace distdoctor::collect
