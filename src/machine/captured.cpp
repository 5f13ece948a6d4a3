#include "base/text.h"
#include "machine/machine.h"
#include "machine/memory_tree.h"

#include <cerrno>
#include <utility>

namespace distdoctor::machine {
namespace {

template <class T>
Result<T> answered(const Observed<T>& rows, std::string_view what) {
  if (rows.known()) return *rows;
  const auto& [kind, text] = rows.why();
  const int code = kind == Why::denied        ? EACCES
                   : kind == Why::timed_out   ? ETIMEDOUT
                   : kind == Why::unsupported ? EOPNOTSUPP
                                              : 0;
  const auto reason = text.empty() ? "it was not captured" : text;
  return std::unexpected(Error{
      .attempt = "read captured " + std::string(what), .reason = reason, .errno_value = code});
}

class CapturedDoors : public Machine {
 public:
  CapturedDoors(CapturedMachine captured, std::shared_ptr<const FileTree> files)
      : Machine(std::move(files)), captured_(std::move(captured)) {}

  [[nodiscard]] const Environment& environment() const override { return captured_.environment; }
  [[nodiscard]] Self self() const override {
    return {.hostname = captured_.hostname,
            .release = captured_.release,
            .uid = captured_.uid,
            .now_s = captured_.now_s,
            .uptime_s = captured_.uptime_s};
  }
  [[nodiscard]] Result<std::map<std::string, Limit>> limits() const override {
    return captured_.limits;
  }
  [[nodiscard]] Result<std::vector<Link>> links() const override {
    return answered(captured_.links, "links");
  }
  [[nodiscard]] Result<std::vector<Route>> routes() const override {
    return answered(captured_.routes, "routes");
  }
  [[nodiscard]] Result<std::vector<PolicyRule>> rules() const override {
    return answered(captured_.rules, "rules");
  }
  [[nodiscard]] Result<std::vector<Neighbour>> neighbours() const override {
    return answered(captured_.neighbours, "neighbours");
  }
  [[nodiscard]] Result<Sockets> sockets() const override {
    DD_TRY(auto rows, answered(captured_.sockets, "sockets"));
    return Sockets{.rows = std::move(rows)};
  }

  [[nodiscard]] Result<RouteAnswer> route_to(const Address& destination,
                                             const std::optional<Address>& source) const override {
    const auto found = captured_.routes_to.find(route_key(destination, source));
    if (found != captured_.routes_to.end()) return found->second;
    return failure("find the route to " + destination.text(), "it was not captured");
  }

  [[nodiscard]] Result<LinkQos> qos(const std::string& interface) const override {
    const auto found = captured_.qos.find(interface);
    if (found != captured_.qos.end()) return found->second;
    return std::unexpected(errno_error("read the captured priorities of", interface, EOPNOTSUPP));
  }

  [[nodiscard]] Result<std::string> kernel_log() const override {
    return answered(captured_.kernel_log, "kernel log");
  }

  [[nodiscard]] Result<ChildOutput> run(const Child& child, Deadline /*deadline*/) const override {
    const auto command = join(child.argv, " ");
    const auto found = captured_.children.find(command);
    if (found != captured_.children.end()) return found->second;
    return std::unexpected(errno_error("run", command, ENOENT));
  }

 private:
  CapturedMachine captured_;
};

}  // namespace

std::string route_key(const Address& destination, const std::optional<Address>& source) {
  return destination.text() + (source ? " from " + source->text() : "");
}

std::unique_ptr<Machine> Machine::captured(CapturedMachine captured,
                                           std::unique_ptr<FileTree> files) {
  std::shared_ptr<const FileTree> tree = std::move(files);
  if (!tree) {
    tree =
        std::make_shared<MemoryTree>(std::move(captured.files), std::move(captured.file_systems));
  }
  return std::make_unique<CapturedDoors>(std::move(captured), std::move(tree));
}

}  // namespace distdoctor::machine
