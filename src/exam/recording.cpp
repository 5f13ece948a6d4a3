#include "exam/recording.h"

#include "codec/codec.h"

#include <utility>

namespace distdoctor::exam {

static_assert(kMostRecordingBytes == codec::kMaxFileBytes);

Result<ClusterFacts> read_recordings(const std::vector<RecordingFile>& files) {
  std::vector<ClusterFacts> clusters;
  for (const RecordingFile& file : files) {
    DD_TRY(auto cluster, codec::read_facts_file(file.text, file.name));
    clusters.push_back(std::move(cluster));
  }
  return codec::merge(std::move(clusters));
}

std::string write_recording(const ClusterFacts& cluster) {
  return codec::write_cluster(cluster);
}

}  // namespace distdoctor::exam
