#include "exam/plan_text.h"

#include <distdoctor/enum_names.h>

#include "base/text.h"

namespace distdoctor::exam {
namespace {

void listen_line(const probe::PlannedListen& listen, std::ostream& out) {
  const ListenRequest& request = listen.request;
  out << "listen  " << printable(listen.host) << "  " << request.address.text();
  if (request.port) {
    out << " port " << *request.port << " (the job's own, for at most 2 s)";
  } else {
    out << " on " << request.spread << " ports spread over ip_local_port_range";
  }
  out << '\n';
}

void rdma_line(const probe::PlannedRdma& path, std::ostream& out) {
  out << "rdma    " << printable(path.from) << " -> " << printable(path.to) << "  "
      << printable(path.sender.device) << ':' << path.sender.port << " -> "
      << printable(path.receiver.device) << ':' << path.receiver.port << "  RC messages of";
  std::string_view separator = " ";
  for (const std::int64_t size : path.sender.sizes) {
    out << separator << size;
    separator = " and ";
  }
  out << " bytes\n";
}

std::string_view to_whom(const std::string& to) {
  return to.empty() ? std::string_view("(no peer)") : std::string_view(to);
}

void dial_line(const probe::PlannedDial& dial, std::ostream& out) {
  out << "dial    " << printable(dial.from) << " -> " << printable(to_whom(dial.to)) << "  "
      << dial.target.address.text();
  if (dial.listen.empty()) out << " port " << dial.target.port;
  out << "  " << slug(dial.target.purpose) << '\n';
}

void path_line(const probe::PlannedPath& path, std::ostream& out) {
  out << "path    " << printable(path.from) << " -> " << printable(to_whom(path.to)) << "  "
      << path.target.source.text() << " -> " << path.target.destination.text() << "  "
      << slug(path.target.purpose) << ": round trip, path MTU, loss\n";
}

}  // namespace

void show_plan(const probe::ProbePlan& plan, std::ostream& out) {
  for (const probe::Round& round : plan.rounds) {
    for (const auto& listen : round.listens) listen_line(listen, out);
    for (const auto& dial : round.dials) dial_line(dial, out);
    for (const auto& path : round.paths) path_line(path, out);
  }
  for (const auto& path : plan.rdma) rdma_line(path, out);
  for (const auto& duplicates : plan.duplicates) {
    for (const Choice& choice : duplicates.request.choices) {
      out << "arp     " << printable(duplicates.host) << "  " << printable(choice.interface)
          << "  who else has " << choice.address.text() << '\n';
    }
  }
  for (const Untried& row : plan.left_out) {
    out << "not     " << printable(row.node) << "  " << printable(row.what) << ": "
        << printable(row.why.text) << '\n';
  }
}

}  // namespace distdoctor::exam
