// Causes first. An arrow leads from a finding to each one that its code causes, over any number of
// steps, when their subjects overlap; what has no arrow to it is a root.
#include "diagnose/diagnose.h"
#include "diagnose/subjects.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace distdoctor::diagnose {
namespace {

using Catalogue = std::map<std::string_view, const Code*>;

Catalogue catalogue_of(std::span<const NamedCheck> checks) {
  Catalogue codes;
  for (const NamedCheck& named : checks) {
    for (const Code& code : named.check->codes) codes.emplace(code.id, &code);
  }
  return codes;
}

void reach(const Catalogue& codes, std::string_view from, std::set<std::string_view>& reached) {
  const auto code = codes.find(from);
  if (code == codes.end()) return;
  for (const std::string_view next : code->second->causes) {
    if (reached.insert(next).second) reach(codes, next, reached);
  }
}

// One finding with all that its place depends on.
struct Item {
  Finding finding;
  const Code* code = nullptr;
  std::vector<std::size_t> explains = {};  // indices
  std::vector<std::size_t> parents = {};
  std::size_t codes_explained = 0;
  std::vector<std::size_t> order = {};  // its nodes' places in the job
};

bool may_explain(const Finding& cause, const Finding& consequence) {
  return cause.severity >= consequence.severity &&
         (cause.certainty != Certainty::possible || consequence.certainty == Certainty::possible) &&
         overlap(cause.subjects, consequence.subjects);
}

std::vector<std::size_t> job_order(const Finding& finding, const std::vector<std::string>& peers) {
  std::vector<std::size_t> order;
  for (const std::string& node : nodes_of(finding.subjects)) {
    order.push_back(static_cast<std::size_t>(std::ranges::find(peers, node) - peers.begin()));
  }
  std::ranges::sort(order);
  return order;
}

// Every key that makes one finding stand before another; larger is earlier.
auto weight(const Item& item) {
  return std::tuple(item.finding.severity, item.finding.certainty, item.codes_explained,
                    item.code == nullptr ? 0 : prior(item.code->fault_class));
}
// Ties: no judgement, only an order that does not depend on chance.
auto tie(const Item& item) {
  const Subjects& s = item.finding.subjects;
  return std::tie(item.finding.code, item.order, s.nodes, s.pairs, s.devices, s.ranks,
                  item.finding.summary);
}
bool before(const Item& a, const Item& b) {
  if (weight(a) != weight(b)) return weight(b) < weight(a);
  return tie(a) < tie(b);
}

std::vector<Item> items_of(std::vector<Finding> findings,
                           const Catalogue& codes,
                           const std::vector<std::string>& peers) {
  std::vector<Item> items;
  for (Finding& finding : findings) {
    const auto code = codes.find(finding.code);
    const Code* known = code == codes.end() ? nullptr : code->second;
    auto order = job_order(finding, peers);
    items.push_back({.finding = std::move(finding), .code = known, .order = std::move(order)});
  }
  std::ranges::sort(items, [](const Item& a, const Item& b) { return tie(a) < tie(b); });
  return items;
}

void draw_arrows(std::vector<Item>& items, const Catalogue& codes) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::set<std::string_view> reached;
    reach(codes, items[i].finding.code, reached);
    std::set<std::string_view> explained;
    for (std::size_t j = 0; j < items.size(); ++j) {
      if (i == j || !reached.contains(items[j].finding.code)) continue;
      if (!may_explain(items[i].finding, items[j].finding)) continue;
      items[i].explains.push_back(j);
      items[j].parents.push_back(i);
      explained.insert(items[j].finding.code);
    }
    items[i].codes_explained = explained.size();
  }
}

std::string others(std::size_t count) {
  return count == 1 ? "1 other finding" : std::to_string(count) + " other findings";
}

// Why a root stands before the next one: the first key that differs.
std::string because_of(const Item& item, const Item* next, std::size_t nested) {
  std::string text =
      std::string(slug(item.finding.certainty)) + " " + std::string(slug(item.finding.severity));
  if (nested > 0) text += ", explains " + others(nested);
  if (next == nullptr) return text;
  const auto& [severity, certainty, explained, count] = weight(item);
  const auto& [next_severity, next_certainty, next_explained, next_count] = weight(*next);
  if (severity != next_severity)
    return text + "; the next is only a " + std::string(slug(next_severity));
  if (certainty != next_certainty)
    return text + "; the next is only " + std::string(slug(next_certainty));
  if (explained != next_explained) return text + "; the next explains less";
  if (count != next_count) return text + "; met more often in public reports than the next";
  return text + "; nothing tells it from the next";
}

// One filter ends connections to several ports: mended for the first of them, it still ends the
// others, and the job goes on to those.
bool leaves_more_to_open(const Cause& root, const Cause& consequence) {
  return root.fault_class == FaultClass::firewall &&
         consequence.fault_class == FaultClass::firewall;
}

void take_fixes(const Cause& consequence, Cause& root) {
  auto& fixes = root.finding.fix;
  for (const Fix& fix : consequence.finding.fix) {
    if (std::ranges::find(fixes, fix) == fixes.end()) fixes.push_back(fix);
  }
}

class Ranking {
 public:
  explicit Ranking(std::vector<Item> items) : items_(std::move(items)) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].parents.empty()) roots_.push_back(i);
    }
    std::ranges::sort(
        roots_, [this](std::size_t a, std::size_t b) { return before(items_[a], items_[b]); });
  }

  std::vector<Cause> causes() {
    std::vector<Cause> causes;
    for (std::size_t place = 0; place < roots_.size(); ++place) {
      causes.push_back(root(roots_[place]));
    }
    for (std::size_t place = 0; place < roots_.size(); ++place) {
      const Item* next = place + 1 < roots_.size() ? &items_[roots_[place + 1]] : nullptr;
      causes[place].because =
          because_of(items_[roots_[place]], next, causes[place].explains.size());
    }
    return causes;
  }

 private:
  Cause cause(std::size_t index) const {
    const Item& item = items_[index];
    Cause made{.finding = item.finding};
    if (item.code != nullptr) {
      made.fault_class = item.code->fault_class;
      made.title = item.code->title;
    }
    return made;
  }

  // Takes along the consequences that no better root has taken.
  Cause root(std::size_t index) {
    Cause made = cause(index);
    auto consequences = items_[index].explains;
    std::ranges::sort(consequences, [this](std::size_t a, std::size_t b) {
      return before(items_[a], items_[b]);
    });
    std::set<std::string> elsewhere;
    for (const std::size_t consequence : consequences) {
      if (taken_.insert(consequence).second) {
        made.explains.push_back(cause(consequence));
        made.explains.back().because = "a consequence of " + made.finding.code;
        if (leaves_more_to_open(made, made.explains.back())) take_fixes(made.explains.back(), made);
      } else {
        elsewhere.insert(items_[consequence].finding.code);
      }
    }
    made.also_explains.assign(elsewhere.begin(), elsewhere.end());
    return made;
  }

  std::vector<Item> items_;
  std::vector<std::size_t> roots_;
  std::set<std::size_t> taken_;
};

}  // namespace

std::vector<Cause> rank(std::vector<Finding> findings,
                        std::span<const NamedCheck> checks,
                        const std::vector<std::string>& peers) {
  const Catalogue codes = catalogue_of(checks);
  auto items = items_of(std::move(findings), codes, peers);
  draw_arrows(items, codes);
  return Ranking(std::move(items)).causes();
}

}  // namespace distdoctor::diagnose
