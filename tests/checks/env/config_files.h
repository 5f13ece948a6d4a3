// NCCL's configuration files on the nodes of a World, in force as the prediction stage has them.
#pragma once

#include "checks/env/variables.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {

inline NcclConfigFile system_config(std::vector<NcclConfigEntry> entries) {
  return {.path = "/etc/nccl.conf",
          .source = Source::system_config,
          .there = true,
          .readable = true,
          .entries = std::move(entries)};
}

// A node's files, the earlier one in front; what stands in them is in force where nothing else is.
inline void put_files(World& w, std::size_t node, const std::vector<NcclConfigFile>& files) {
  w.node(node).nccl_config = files;
  Prediction& prediction = w.prediction(node);
  for (const NcclConfigFile& file : files) {
    for (const NcclConfigEntry& entry : file.entries) {
      if (!entry.name.starts_with("NCCL_")) continue;
      prediction.settings.try_emplace(
          entry.name, Setting{entry.value,
                              {.source = file.source,
                               .node = w.node(node).host,
                               .where = file.path + ":" + std::to_string(entry.line)}});
    }
  }
  prediction.variables = rules::read_variables(prediction.settings);
}

// Lines of /etc/nccl.conf on node1, where nothing else names an interface.
inline void put_lines(World& w, std::vector<NcclConfigEntry> entries) {
  w.prediction(1).settings.erase("NCCL_SOCKET_IFNAME");
  put_files(w, 1, {system_config(std::move(entries))});
}

}  // namespace distdoctor::testing
