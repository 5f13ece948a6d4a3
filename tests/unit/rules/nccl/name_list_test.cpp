#include "rules/nccl/name_list.h"

#include <doctest/doctest.h>

#include <string>

using namespace distdoctor::rules;  // NOLINT(google-build-using-namespace)

TEST_CASE("parse_name_list") {
  CHECK(parse_name_list("mlx5_0:1,mlx5_1") ==
        NameList{.elements = {{"mlx5_0", 1}, {"mlx5_1", kAnyPort}}});
  CHECK(parse_name_list("^=eth0,,ib0") ==
        NameList{.exclude = true, .exact = true, .elements = {{"eth0"}, {"ib0"}}});
  CHECK(parse_name_list("=^eth0") == NameList{.exact = true, .elements = {{"^eth0"}}});
  CHECK(parse_name_list("").elements.empty());
  CHECK(parse_name_list(":1,:2").elements.empty());
  CHECK(parse_name_list("a,b,c", 2).elements.size() == 2);
  CHECK(parse_name_list(std::string(100, 'x')).elements.at(0).name.size() == 63);
}

TEST_CASE("ports are read as atoi reads them") {
  struct Row {
    const char* text;
    int port;
  };
  for (const Row& row : {Row{"a:", 0}, Row{"a:1x", 1}, Row{"a: 2", 2}, Row{"a:x", 0},
                         Row{"a:-3", -3}, Row{"a:+4", 4}, Row{"a:1:2", 1}}) {
    CAPTURE(row.text);
    CHECK(parse_name_list(row.text).elements.at(0).port == row.port);
  }
  CHECK(parse_name_list("a:99999999999999999999999").elements.at(0).port > 0);
}

TEST_CASE("NameList::takes") {
  CHECK(parse_name_list("eth1").takes("eth10"));
  CHECK_FALSE(parse_name_list("=eth1").takes("eth10"));
  CHECK_FALSE(parse_name_list("eth10").takes("eth1"));
  CHECK(parse_name_list("mlx5_0:1").takes("mlx5_0", 1));
  CHECK_FALSE(parse_name_list("mlx5_0:1").takes("mlx5_0", 2));
  CHECK(parse_name_list("mlx5_0").takes("mlx5_0", 2));
  CHECK(parse_name_list("").takes("anything"));
  CHECK_FALSE(parse_name_list("^").takes("anything"));
}
