// Recorded facts: --save writes them, --facts reads them.
#pragma once

#include <distdoctor/facts.h>

#include "base/error.h"

#include <cstddef>
#include <string>
#include <vector>

namespace distdoctor::exam {

struct RecordingFile {
  std::string name;  // for errors
  std::string text;
};
// A larger file is no recording of ours.
inline constexpr std::size_t kMostRecordingBytes = std::size_t{256} << 20;

// One or several, clusters or single nodes, as one cluster.
Result<ClusterFacts> read_recordings(const std::vector<RecordingFile>& files);
std::string write_recording(const ClusterFacts& cluster);

}  // namespace distdoctor::exam
