// "Was this meant?" of a variable's name, for the names that one library reads.
#pragma once

#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

class KnownNames {
 public:
  // `rare` words stand in a name or two only: elsewhere they are as good as unknown.
  explicit KnownNames(std::vector<std::string_view> names,
                      const std::vector<std::string_view>& rare = {});

  [[nodiscard]] bool contains(std::string_view name) const;
  // The name that was meant by one that is not there; none where it is no slip of the pen. Words of
  // these names are no slips, since a later version may have put them together anew.
  [[nodiscard]] std::optional<std::string_view> meant(std::string_view name) const;

 private:
  [[nodiscard]] bool may_hold_a_slip(std::string_view name) const;

  std::vector<std::string_view> names_;
  std::set<std::string_view> words_;
};

}  // namespace distdoctor::rules
