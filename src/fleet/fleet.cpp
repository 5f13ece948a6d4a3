#include "fleet/fleet.h"

#include "fleet/events.h"
#include "fleet/here.h"
#include "fleet/peer.h"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): beside its siblings

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

namespace distdoctor::fleet {
namespace {

using std::chrono::milliseconds;

// Peers end their own waits at the deadline; this is for their word of it to arrive here.
constexpr milliseconds kGrace{300};
constexpr milliseconds kLook{20};
// Peers of one job are alike: once a remote one has greeted and few are missing, these have this
// much longer, and twice the time that it took.
constexpr milliseconds kStragglers{3000};
constexpr std::string_view kNothingSaid = "the agent said nothing in time";

NodeFacts known_of(const PeerState& state) {
  NodeFacts node{.host = state.host,
                 .reached = true,
                 .channel = state.channel,
                 .version = state.version,
                 .context = state.context};
  node.clock_offset_ms = state.clock_offset_ms;
  node.clock_error_ms = state.clock_error_ms;
  return node;
}

class Crew final : public Fleet {
 public:
  Crew(const std::vector<std::string>& hosts,
       LaunchOptions options,
       const std::atomic<bool>* interrupted)
      : hosts_(hosts), options_(std::move(options)), told_from_outside_(interrupted) {
    for (const std::string& host : hosts_) {
      PeerState state{.host = host, .not_reached = std::string(kNothingSaid)};
      states_.push_back(std::move(state));
      hellos_.emplace_back();
      index_.emplace(host, peers_.size());
      peers_.push_back(std::make_unique<Peer>(peers_.size(), hosts_, options_, events_));
    }
  }
  ~Crew() override { Crew::close(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  Crew(Crew&&) = delete;
  Crew& operator=(Crew&&) = delete;

  void meet(Deadline deadline) {
    for (const auto& peer : peers_) peer->start(deadline);
    waiting_to_meet_ = peers_.size();
    await_peers(Deadline::at(deadline.moment() + kGrace));
    if (waiting_to_meet_ > 0 && !interrupted()) {
      for (std::size_t i = 0; i < peers_.size(); ++i) {
        if (!states_[i].reached) peers_[i]->give_up();
      }
      await_peers(Deadline::after(kGrace));
    }
    if (interrupted()) name_the_interrupted();
    find_doubles();
  }

  [[nodiscard]] std::vector<PeerState> peers() const override { return states_; }
  std::vector<Observed<Answer>> ask(std::span<const Ask> asks, Deadline deadline) override;

  void interrupt() override {
    interrupted_ = true;
    events_.push({.what = Interrupted{}});
  }

  void close() override {
    for (const auto& peer : peers_) peer->close();
    for (const auto& peer : peers_) peer->join();
  }

 private:
  struct Waiting {
    std::map<std::uint64_t, std::size_t> places;  // of the answers, by the ask's id
    std::map<std::uint64_t, std::size_t> peers;
  };

  void send(const Ask& ask, std::size_t place, Deadline deadline, Observed<Answer>& answer);
  void receive(Event& event, std::vector<Observed<Answer>>& answers);
  // Whatever still waits gets this answer.
  void answer_all(const Unknown& why, std::vector<Observed<Answer>>& answers) const;
  bool learn(const Event& event);
  void name_the_interrupted();
  void find_doubles();

  void await_peers(Deadline last) {
    const auto begun = Deadline::Clock::now();
    while (waiting_to_meet_ > 0 && !interrupted() && !last.expired()) {
      const auto event = pop(last);
      if (!event || !learn(*event)) continue;
      const bool few = --waiting_to_meet_ <= std::max<std::size_t>(1, peers_.size() / 4);
      if (!few || !any_remote()) continue;
      last = last.capped(kStragglers + 2 * (Deadline::Clock::now() - begun));
    }
  }
  [[nodiscard]] bool any_remote() const {
    return std::ranges::any_of(
        states_, [](const PeerState& state) { return state.reached && !state.local; });
  }
  // Ctrl-C from either side.
  [[nodiscard]] bool interrupted() const {
    return interrupted_ || (told_from_outside_ != nullptr && *told_from_outside_);
  }
  // Wakes now and then where only a flag may tell of Ctrl-C.
  std::optional<Event> pop(Deadline deadline) {
    return events_.pop(told_from_outside_ == nullptr ? deadline : deadline.capped(kLook));
  }

  const std::vector<std::string> hosts_;
  const LaunchOptions options_;
  const std::atomic<bool>* const told_from_outside_;
  Events events_;
  std::atomic<bool> interrupted_ = false;
  std::vector<PeerState> states_;
  std::vector<AgentHello> hellos_;
  std::map<std::string, std::size_t, std::less<>> index_;
  Waiting waiting_;
  std::size_t waiting_to_meet_ = 0;
  std::uint64_t next_id_ = 1;
  std::vector<std::unique_ptr<Peer>> peers_;  // last: their threads use the others
};

// Whether the event says how the meeting with a peer went.
bool Crew::learn(const Event& event) {
  if (const auto* met = std::get_if<Met>(&event.what)) {
    states_[event.peer] = met->state;
    hellos_[event.peer] = met->hello;
    return true;
  }
  const auto* lost = std::get_if<Lost>(&event.what);
  if (lost == nullptr) return false;
  const bool first = !states_[event.peer].reached;
  states_[event.peer] = lost->state;
  return first;
}

void Crew::name_the_interrupted() {
  for (PeerState& state : states_) {
    if (!state.reached && state.not_reached == kNothingSaid) state.not_reached = "interrupted";
  }
}

void Crew::find_doubles() {
  std::map<std::pair<std::string, std::uint64_t>, std::string> places;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const AgentHello& hello = hellos_[i];
    if (!states_[i].reached || hello.boot_id.empty() || hello.net_namespace == 0) continue;
    const auto [first, fresh] =
        places.try_emplace({hello.boot_id, hello.net_namespace}, states_[i].host);
    if (!fresh) states_[i].same_as = first->second;
  }
}

void Crew::send(const Ask& ask, std::size_t place, Deadline deadline, Observed<Answer>& answer) {
  const auto found = index_.find(ask.host);
  if (found == index_.end()) {
    answer = Unknown{Why::failed, "no peer has this name"};
    return;
  }
  const PeerState& state = states_[found->second];
  if (!state.reached) {
    answer = Unknown{Why::failed, state.not_reached};
    return;
  }
  const std::uint64_t id = next_id_++;
  waiting_.places[id] = place;
  waiting_.peers[id] = found->second;
  peers_[found->second]->ask(id, ask.request, deadline, known_of(state));
}

void Crew::receive(Event& event, std::vector<Observed<Answer>>& answers) {
  if (auto* done = std::get_if<Done>(&event.what)) {
    const auto place = waiting_.places.find(done->id);
    if (place == waiting_.places.end()) return;
    answers[place->second] = std::move(done->answer);
    waiting_.places.erase(place);
    waiting_.peers.erase(done->id);
    return;
  }
  learn(event);
  if (!std::holds_alternative<Lost>(event.what)) return;
  // What was asked after the peer had ended its asks.
  std::erase_if(waiting_.peers, [&](const auto& row) {
    if (row.second != event.peer) return false;
    answers[waiting_.places.at(row.first)] = Unknown{Why::failed, states_[event.peer].not_reached};
    waiting_.places.erase(row.first);
    return true;
  });
}

std::vector<Observed<Answer>> Crew::ask(std::span<const Ask> asks, Deadline deadline) {
  const Unknown late{Why::timed_out, "no answer by the deadline"};
  const Unknown cut_short{Why::not_collected, "interrupted"};
  // Asked once: Ctrl-C may come between two looks.
  if (interrupted()) return {asks.size(), cut_short};
  std::vector<Observed<Answer>> answers(asks.size(), late);
  waiting_ = {};
  for (std::size_t i = 0; i < asks.size(); ++i) send(asks[i], i, deadline, answers[i]);
  Deadline last = Deadline::at(deadline.moment() + kGrace);
  bool told = false;
  while (!waiting_.places.empty() && !last.expired()) {
    if (interrupted() && !std::exchange(told, true)) {
      for (const auto& peer : peers_) peer->end_asks(cut_short);
      last = last.capped(kGrace);
    }
    if (auto event = pop(last)) receive(*event, answers);
  }
  if (told) answer_all(cut_short, answers);
  return answers;
}

void Crew::answer_all(const Unknown& why, std::vector<Observed<Answer>>& answers) const {
  for (const auto& [id, place] : waiting_.places) answers[place] = why;
}

}  // namespace

std::unique_ptr<Fleet> Fleet::open(const std::vector<std::string>& peers,
                                   const LaunchOptions& options,
                                   Deadline deadline,
                                   const std::atomic<bool>* interrupted) {
  // A launcher that ends while we write to it must be an error, not our end. posix_spawn gives
  // children the default back.
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): it cannot fail
  auto crew = std::make_unique<Crew>(
      peers.empty() ? std::vector<std::string>{own_hostname()} : peers, options, interrupted);
  crew->meet(deadline);
  return crew;
}

}  // namespace distdoctor::fleet
