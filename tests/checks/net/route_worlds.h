// What the tests of routing checks change: routes, rules, and the dials that fail for them.
#pragma once

#include "checks/net/path_worlds.h"

#include <string>
#include <vector>

namespace distdoctor::testing {

inline void add_route(World& w, std::size_t node, const Route& route) {
  World::change(w.node(node).routes, [&](std::vector<Route>& routes) { routes.push_back(route); });
}
// Takes away the route of a link, and the default route with it.
inline void drop_route(World& w, std::size_t node, std::string_view network) {
  World::change(w.node(node).routes, [&](std::vector<Route>& routes) {
    std::erase_if(routes, [&](const Route& route) {
      return route.destination == addr(network) || route.prefix == 0;
    });
  });
}
inline void add_rule(World& w, std::size_t node, const PolicyRule& rule) {
  World::change(w.node(node).rules, [&](std::vector<PolicyRule>& rules) {
    rules = {{.priority = 0, .table = 255},
             rule,
             {.priority = 32766, .table = 254},
             {.priority = 32767, .table = 253}};
  });
}

struct ErrorWords {
  const char* error;  // of connect()
  const char* route;  // of `ip route get`; "" where it has an answer
};

// node's dials to the data address of another one fail at once.
inline void at_once(
    World& w, std::size_t node, std::size_t to, Outcome outcome, const ErrorWords& words) {
  each_dial(w, node, to, [&](Dial& dial) {
    if (dial.address != addr(fast(to))) return;
    fail(dial, outcome, false, false);
    dial.source.reset();
    dial.error = std::string("connect: ") + words.error + ", at once";
    dial.route = {.error = words.route};
  });
}
inline void unanswered(World& w, std::size_t from, std::size_t to) {
  fail_data(w, from, to, {.seen = Seen::arrived});
}

inline Verdict routing(const char* code,
                       const char* says,
                       const std::string& node,
                       const std::vector<std::string>& evidence,
                       const std::vector<std::string>& fixes) {
  return {.code = code,
          .severity = Severity::blocker,
          .certainty = Certainty::proved,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = {node},
          .evidence = evidence,
          .fixes = fixes};
}

}  // namespace distdoctor::testing
