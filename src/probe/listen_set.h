// One listening set: its listeners, the clients in hand, and what has come. It never waits; the
// owner polls its descriptors and calls in, one thread at a time.
#pragma once

#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "base/fd.h"
#include "probe/drains.h"
#include "probe/endpoint.h"
#include "probe/syn_watch.h"
#include "probe/udp_sink.h"
#include "probe/wire.h"

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::probe {

class ListenSet {
 public:
  // All that is asked for is open when it returns; else answer().error says what failed.
  explicit ListenSet(const ListenRequest& request);
  ~ListenSet() { close("the agent ended"); }
  ListenSet(const ListenSet&) = delete;
  ListenSet& operator=(const ListenSet&) = delete;
  ListenSet(ListenSet&&) = delete;
  ListenSet& operator=(ListenSet&&) = delete;

  [[nodiscard]] ListenAnswer& answer() { return answer_; }
  [[nodiscard]] ReportAnswer& report() { return report_; }
  [[nodiscard]] bool watches() const { return request_.watch_arrivals; }

  void add_descriptors(std::vector<pollfd>& all) const;
  // The next moment at which tick() has something to do.
  [[nodiscard]] Deadline next() const;
  void tick();
  void ready(const pollfd& event);
  void saw(const SeenSyn& syn);
  void close(const std::string& why);

 private:
  struct Listening {
    Fd fd;
    std::uint16_t port;
    bool bulk;
  };
  struct Client {
    Fd fd;
    Address peer;
    std::uint16_t port;
    bool bulk;
    Deadline until;
    std::string in = {};
    std::uint64_t body = 0;  // bytes of bulk data still to come
    std::uint64_t taken = 0;
    bool done = false;
  };

  void open_spread();
  void open_outside();
  void open_fixed();
  void open_sinks();
  bool listen_on(std::uint16_t port, bool bulk);
  void accept_all(const Listening& listening);
  void read_from(Client& client);
  void greet(Client& client);
  void serve_bulk(Client& client);
  void answer_bulk(Client& client, const BulkRequest& request);
  void reply(Client& client, const std::string& bytes);
  void pour_out(Client& client, std::uint64_t most_ms);
  // A client that is not one of our probes. On the job's own port that is the end of it.
  void foreign(Client& client);

  ListenRequest request_;
  ListenAnswer answer_ = {};
  ReportAnswer report_ = {};
  Deadline until_;
  std::vector<Listening> listening_;
  std::vector<Client> clients_;
  std::unique_ptr<UdpSink> sink_;
  Drains drains_;
};

}  // namespace distdoctor::probe
