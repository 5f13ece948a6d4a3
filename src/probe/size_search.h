// Finds the largest packet that passes by sending many sizes at once and closing in; pure.
#pragma once

#include <vector>

namespace distdoctor::probe {

class SizeSearch {
 public:
  // IP packet sizes in bytes: `smallest` is sent to see whether anything passes at all.
  SizeSearch(int smallest, int largest);

  // What to send next, the largest first; empty: it is over.
  [[nodiscard]] std::vector<int> next() const;
  // What came back of the sizes that next() asked for.
  void came(const std::vector<int>& sizes);
  // The largest that passed; 0: none did.
  [[nodiscard]] int passed() const { return passed_; }

 private:
  int smallest_;
  int passed_ = 0;
  int lost_;  // the smallest that did not pass; at first one more than the largest
  bool began_ = false;
  bool over_ = false;
};

}  // namespace distdoctor::probe
