#include "probe/size_search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

struct Found {
  int size;
  int rounds;
};
// Plays a path that carries `limit` bytes; `deaf` loses this one size in the first round.
Found search(int link, int limit, int deaf = 0) {
  probe::SizeSearch search(58, link);
  int rounds = 0;
  for (auto sizes = search.next(); !sizes.empty(); sizes = search.next()) {
    REQUIRE(++rounds < 20);
    REQUIRE(sizes.size() <= 32);
    std::erase_if(sizes, [&](int size) { return size > limit || (rounds == 1 && size == deaf); });
    search.came(sizes);
  }
  return {search.passed(), rounds};
}

TEST_CASE("the search finds every limit, common ones at once") {
  struct Row {
    int link, limit, found, rounds;
  };
  for (const Row& row :
       {Row{9000, 9000, 9000, 1}, Row{1500, 1500, 1500, 1}, Row{9000, 1500, 1500, 1},
        Row{9000, 1450, 1450, 1}, Row{1500, 576, 576, 1}, Row{9000, 57, 0, 1}, Row{9000, 58, 58, 4},
        Row{9000, 7321, 7321, 4}, Row{65535, 40000, 40000, 5}}) {
    CAPTURE(row.limit);
    const Found found = search(row.link, row.limit);
    CHECK(found.size == row.found);
    CHECK(found.rounds <= row.rounds);
  }
  for (int limit = 58; limit <= 1500; limit += 7) CHECK(search(1500, limit).size == limit);
}

TEST_CASE("a size that was lost by chance does not hide a larger one that came") {
  CHECK(search(9000, 4000, 1500).size == 4000);
}

}  // namespace
}  // namespace distdoctor::testing
