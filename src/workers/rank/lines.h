// The lines between a rank and whoever started it.
#pragma once

#include <distdoctor/worker_line.h>

#include "base/error.h"
#include "workers/rank/backend.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::workers {

class Lines {
 public:
  // Takes stdout for itself: what a library prints there goes to stderr from then on.
  Lines();
  Result<WorkerJob> read_job();
  Result<WorkerMeeting> read_meeting();
  void tell(WorkerLine line);  // with the time since the start

 private:
  std::chrono::steady_clock::time_point start_;
  std::FILE* out_ = nullptr;
};

// By those lines.
class LineMeeting : public Meeting {
 public:
  LineMeeting(Lines& lines, int size) : lines_(lines), size_(size) {}
  Result<std::vector<std::string>> exchange(std::string_view part) override;

 private:
  Lines& lines_;
  int size_;
};

}  // namespace distdoctor::workers
