#include "probe/size_search.h"

#include <algorithm>
#include <functional>

namespace distdoctor::probe {
namespace {

// Ethernet, PPPoE, common tunnels, IPv6's and IPv4's smallest: found at once where they are true.
constexpr int kUsual[] = {9000, 8950, 4000, 2044, 1500, 1492, 1480, 1450, 1420, 1400, 1280, 576};
constexpr int kParts = 16;

}  // namespace

SizeSearch::SizeSearch(int smallest, int largest) : smallest_(smallest), lost_(largest + 1) {}

std::vector<int> SizeSearch::next() const {
  std::vector<int> sizes;
  if (over_ || (began_ && (passed_ == 0 || lost_ - passed_ <= 1))) return sizes;
  if (!began_) {
    sizes = {lost_ - 1, smallest_};
    for (const int usual : kUsual) {
      for (const int size : {usual, usual + 1}) {
        if (size > smallest_ && size < lost_ - 1) sizes.push_back(size);
      }
    }
  } else {
    const int steps = std::min(kParts, lost_ - passed_ - 1);
    for (int i = 1; i <= steps; ++i) {
      sizes.push_back(passed_ + (lost_ - passed_) * i / (steps + 1));
    }
  }
  std::ranges::sort(sizes, std::greater());
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  return sizes;
}

void SizeSearch::came(const std::vector<int>& sizes) {
  const std::vector<int> sent = next();
  began_ = true;
  if (!sizes.empty()) passed_ = std::max(passed_, std::ranges::max(sizes));
  // A lost one below the largest that passed was lost by chance.
  for (const int size : sent) {
    if (size > passed_) lost_ = std::min(lost_, size);
  }
  over_ = passed_ == 0;
}

}  // namespace distdoctor::probe
