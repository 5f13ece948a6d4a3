// Accounts of /etc/passwd (man 5 passwd). A static program has no getpwuid: it would dlopen what
// the machine has, and may hang on a directory service. So users of LDAP appear by number.
#pragma once

#include "machine/file_tree.h"

#include <map>
#include <string>
#include <string_view>

namespace distdoctor::collect {

struct Account {
  std::string name = {};
  std::string home = {};
  bool operator==(const Account&) const = default;
};
using Accounts = std::map<int, Account>;  // by uid; the first line of a uid counts

Accounts parse_passwd(std::string_view text);
Accounts read_accounts(const machine::FileTree& files);
// The name, or the number as text.
std::string user_name(const Accounts& accounts, int uid);

}  // namespace distdoctor::collect
