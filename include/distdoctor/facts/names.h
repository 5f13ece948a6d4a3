// What a name resolves to on a node, by source: hosts file and DNS are told apart.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/enum_names.h>
#include <distdoctor/observed.h>

#include <string>
#include <vector>

namespace distdoctor {

struct Resolution {
  std::string name = {};
  // In the resolver's order, each once. An empty list: this source does not know the name.
  Observed<std::vector<Address>> files = {};  // getent -s files ahosts NAME
  Observed<std::vector<Address>> dns = {};    // getent -s dns ahosts NAME
  Observed<std::vector<Address>> all = {};    // getent ahosts NAME: what the job sees
  bool operator==(const Resolution&) const = default;
};

template <class V, Is<Resolution> T>
void fields(V& v, T& x) {
  v("name", x.name);
  v("files", x.files);
  v("dns", x.dns);
  v("all", x.all);
}

}  // namespace distdoctor
