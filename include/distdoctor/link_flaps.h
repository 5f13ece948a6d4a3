// Times that a link in use was lost: what the kernel's log and counters tell of it. Look-ups that
// the checks of RDMA and TCP links share.
#pragma once

#include <distdoctor/ages.h>
#include <distdoctor/facts.h>
#include <distdoctor/finding.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor {

// Until then a node sets its links up: drivers load, ports join bonds and get their MTU, and each
// of these takes the link down for a moment. Servers with many cards take minutes.
inline constexpr double kSettlingSeconds = 300;
// A link that was up for less had not yet come up for good: the same happens whenever a driver is
// loaded or an interface is set up anew.
inline constexpr double kLastingSeconds = 30;
// So many losses are no setting up any more, however short the link was up.
inline constexpr std::size_t kStorm = 10;
inline constexpr double kRecentSeconds = 3600;

// --- the kernel's log ---

enum class LinkEvent : std::uint8_t { none, up, down };

// "mlx5_core 0000:18:00.0 eth2: Link down", "igb 0000:01:00.0 eno1: igb: eno1 NIC Link is Down",
// "tg3 0000:02:00.0 eth0: Link is up at 1000 Mbps, full duplex",
// "mlx5_core 0000:18:00.0: Port module event: module 0, Cable unplugged".
inline LinkEvent link_event(std::string_view text) {
  const auto says = [&](std::string_view words) {
    return !std::ranges::search(text, words, [](char a, char b) {
              return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
            }).empty();
  };
  if (says("link down") || says("link is down")) return LinkEvent::down;
  if (says("port module event") && says("unplugged")) return LinkEvent::down;
  return says("link up") || says("link is up") ? LinkEvent::up : LinkEvent::none;
}

// The name stands in the line as a word of its own: "eth1" is neither "eth10" nor "eth1.7".
inline bool names_word(std::string_view text, std::string_view word) {
  const auto part_of_name = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
  };
  for (auto at = text.find(word); !word.empty() && at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const auto end = at + word.size();
    const bool begins = at == 0 || !part_of_name(text[at - 1]);
    if (begins && (end == text.size() || !part_of_name(text[end]))) return true;
  }
  return false;
}

struct LinkDown {
  double ago_s;
  std::string text;
};

// What the log has of one link, oldest first.
struct LinkHistory {
  bool told = false;                   // it speaks of the link at all: the driver is one that does
  std::vector<LinkDown> all = {};      // each time that the link went down
  std::vector<LinkDown> lasting = {};  // those that end a time in which it was up for good
};

// Adds a line of the link to what came before it.
struct LinkWatch {
  LinkHistory history = {};
  std::vector<LinkDown> storm = {};
  std::optional<double> up_since = {};

  void add(LinkEvent event, const KernelLine& line, double now_s) {
    history.told = true;
    if (event == LinkEvent::up) {
      up_since = up_since.value_or(line.uptime_s);
      return;
    }
    history.all.push_back({now_s - line.uptime_s, line.text});
    if (up_since && line.uptime_s >= kSettlingSeconds) {
      const bool lasted = line.uptime_s - *up_since >= kLastingSeconds;
      if (lasted) history.lasting.push_back(history.all.back());
      if (lasted || !storm.empty()) storm.push_back(history.all.back());
    }
    up_since.reset();
  }
};

// Lines of the link are those that `is_of_link` knows. Where the log begins later than the time in
// which the link was up, its end is passed over.
template <class IsOfLink>
LinkHistory history_of(const KernelLog& log, IsOfLink is_of_link) {
  LinkWatch watch;
  for (const KernelLine& line : log.lines) {
    const LinkEvent event = link_event(line.text);
    if (event == LinkEvent::none || line.uptime_s > log.now_s || !is_of_link(line.text)) continue;
    watch.add(event, line, log.now_s);
  }
  if (watch.storm.size() >= kStorm) watch.history.lasting = std::move(watch.storm);
  return std::move(watch.history);
}

// --- counters ---

// The earlier look, once both were after the node had settled; null, and a gap where it was asked
// for and could not be compared.
inline const EarlierCounters* settled_earlier(const NodeFacts& node, Judge& judge) {
  if (!node.earlier.known() && node.earlier.why().text.empty()) return nullptr;  // nobody asked
  const EarlierCounters* earlier = judge.see(node, "earlier", node.earlier);
  if (earlier == nullptr || !node.uptime_s.known()) return nullptr;
  return *node.uptime_s - earlier->ago_s >= kSettlingSeconds ? earlier : nullptr;
}

// What a counter gained. 0, too, where either is not known, or the counter began anew.
inline std::int64_t gained(const std::map<std::string, std::int64_t>& earlier,
                           const std::string& key,
                           const std::optional<std::int64_t>& now) {
  const auto then = earlier.find(key);
  if (then == earlier.end() || !now) return 0;
  return std::max<std::int64_t>(*now - then->second, 0);
}

// --- both ---

struct LinkLosses {
  std::int64_t counted = 0;  // since the earlier look
  double counted_s = 0;      // how long ago that was
  // The counter is the interface's (carrier_down_count), which also counts changes of its settings
  // (MTU, rings): no cable's doing.
  bool of_interface = false;
  std::vector<LinkDown> logged = {};  // in the last `logged_s`
  double logged_s = kRecentSeconds;   // an hour; longer where a counter tells of losses

  [[nodiscard]] bool any() const { return counted > 0 || !logged.empty(); }
  [[nodiscard]] bool by_counter() const {
    return counted > 0 && counted >= static_cast<std::int64_t>(logged.size());
  }
  [[nodiscard]] std::int64_t times() const {
    return by_counter() ? counted : static_cast<std::int64_t>(logged.size());
  }
};

template <class IsOfLink>
void add_logged(const KernelLog& log, IsOfLink is_of_link, LinkLosses& losses) {
  if (losses.counted > 0) losses.logged_s = std::max(kRecentSeconds, losses.counted_s);
  const auto recent = [&](const LinkDown& down) { return down.ago_s <= losses.logged_s; };
  LinkHistory history = history_of(log, is_of_link);
  std::ranges::copy_if(history.lasting, std::back_inserter(losses.logged), recent);
  const bool reaches_back = log.now_s - log.oldest_s >= losses.counted_s;
  // A driver that tells of each loss told of none.
  if (losses.of_interface && history.told && reaches_back &&
      std::ranges::none_of(history.all, recent)) {
    losses.counted = 0;
  }
}

// More than once, and of a long time more than once a day: once is a switch that was started anew.
// Of what the interface counted (another MTU, another ring) only what the log tells, too.
inline bool flaps(const LinkLosses& losses) {
  constexpr double kDay = 86'400;
  const bool by_log = losses.of_interface || !losses.by_counter();
  const auto times = by_log ? static_cast<std::int64_t>(losses.logged.size()) : losses.times();
  return times > 1 &&
         static_cast<double>(times) > (by_log ? losses.logged_s : losses.counted_s) / kDay;
}

// "3 times within the last hour, 10 min ago at last", "once since the earlier look 2 h ago".
inline std::string losses_text(const LinkLosses& losses) {
  std::string text = losses.times() == 1 ? "once" : std::to_string(losses.times()) + " times";
  if (losses.by_counter()) {
    text += " since the earlier look " + ago_text(losses.counted_s);
  } else {
    const bool hour = losses.logged_s == kRecentSeconds;
    text += " within the last " + (hour ? "hour" : age_text(losses.logged_s));
  }
  if (!losses.logged.empty()) text += ", " + ago_text(losses.logged.back().ago_s) + " at last";
  return text;
}

// --- evidence ---

inline std::string see_carrier_downs(const std::string& link) {
  return "cat " + shell_quote("/sys/class/net/" + link + "/carrier_down_count");
}

// `fact` is the counter, `command` reads it.
inline Evidence counted_row(const std::string& host,
                            const LinkLosses& losses,
                            const std::string& fact,
                            const std::string& command) {
  return {.node = host,
          .fact = fact,
          .observed = std::to_string(losses.counted) + " more than " + ago_text(losses.counted_s),
          .expected = "no more",
          .command = command};
}

// The newest line, and how to see the others.
inline Evidence logged_row(const std::string& host, const LinkLosses& losses) {
  return {.node = host,
          .fact = "kernel_log",
          .observed = losses.logged.back().text,
          .expected = "a link that stays up",
          .command = "dmesg -T | grep -iE 'mlx5|link (is )?(up|down)'"};
}

}  // namespace distdoctor
