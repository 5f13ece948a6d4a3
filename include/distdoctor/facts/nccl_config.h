// NCCL's configuration files as they stand on a node (misc/param.cc setEnvFile), line by line.
#pragma once

#include <distdoctor/enum_names.h>
#include <distdoctor/job.h>

#include <string>
#include <vector>

namespace distdoctor {

struct NcclConfigEntry {
  int line = 0;            // from 1
  std::string name = {};   // as NCCL reads it: blanks and "export " stay part of it
  std::string value = {};  // quotes, comments and \r stay part of it; masked
  bool operator==(const NcclConfigEntry&) const = default;
};

struct NcclConfigFile {
  std::string path = {};
  Source source = Source::system_config;  // or user_config
  bool named = false;                     // by NCCL_CONF_FILE, in our own environment
  bool there = false;
  bool readable = false;  // by us; NCCL is silent about a file that it cannot read
  // Lines with a '=' whose name holds "NCCL", in order, the repeated ones too; no other text.
  std::vector<NcclConfigEntry> entries = {};
  bool operator==(const NcclConfigFile&) const = default;
};

template <class V, Is<NcclConfigEntry> T>
void fields(V& v, T& x) {
  v("line", x.line);
  v("name", x.name);
  v("value", x.value);
}
template <class V, Is<NcclConfigFile> T>
void fields(V& v, T& x) {
  v("path", x.path);
  v("source", x.source);
  v("named", x.named);
  v("there", x.there);
  v("readable", x.readable);
  v("entries", x.entries);
}

}  // namespace distdoctor
