#include "collect/accounts.h"

#include "base/text.h"

namespace distdoctor::collect {

Accounts parse_passwd(std::string_view text) {
  Accounts accounts;
  for (const auto line : split_lines(text)) {
    const auto parts = split(line, ':');
    if (parts.size() < 6) continue;
    const auto uid = parse_int<int>(parts[2]);
    if (uid) accounts.emplace(*uid, Account{std::string(parts[0]), std::string(parts[5])});
  }
  return accounts;
}

Accounts read_accounts(const machine::FileTree& files) {
  return parse_passwd(files.read("/etc/passwd").value_or(""));
}

std::string user_name(const Accounts& accounts, int uid) {
  const auto found = accounts.find(uid);
  return found != accounts.end() ? found->second.name : std::to_string(uid);
}

}  // namespace distdoctor::collect
