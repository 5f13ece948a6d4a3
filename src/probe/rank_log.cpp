#include "probe/rank_log.h"

#include "base/nccl_log.h"
#include "base/text.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

namespace distdoctor::probe {
namespace {

constexpr std::size_t kMostBytes = std::size_t{8} << 20;
constexpr std::size_t kMostLines = 200;
constexpr std::size_t kLongestLine = 400;

std::string read_all(const Fd& fd) {
  std::string text;
  std::array<char, 65536> block{};
  for (off_t place = 0; text.size() < kMostBytes;) {
    const auto got = ::pread(fd.get(), block.data(), block.size(), place);
    if (got <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(got));
    place += got;
  }
  return text;
}

// What a line says beside its process and, of a connection, its ranks and channel.
std::string_view gist_of(std::string_view line) {
  const auto via = line.find(nccl_log::kVia);
  if (via != std::string_view::npos) return line.substr(via);
  const auto nccl = line.find(" NCCL ");
  return nccl == std::string_view::npos ? line : line.substr(nccl);
}

}  // namespace

void RankLog::ask_for(std::map<std::string, std::string>& switches) {
  file_ = Fd(::memfd_create("distdoctor-rank-log", MFD_CLOEXEC));
  if (!file_.valid()) return;
  switches["NCCL_DEBUG"] = "INFO";
  switches["NCCL_DEBUG_SUBSYS"] = "INIT,ENV";
  switches["NCCL_DEBUG_FILE"] =
      "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_.get());
}

void RankLog::close() {
  if (file_.valid()) lines_ = telling_lines(read_all(file_));
  file_.reset();
}

std::vector<std::string> telling_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::set<std::string_view> seen;
  for (const auto line : split(text, '\n')) {
    const bool telling = std::ranges::any_of(nccl_log::kMarks, [&](std::string_view mark) {
      return line.find(mark) != std::string_view::npos;
    });
    if (!telling || !seen.insert(gist_of(line)).second) continue;
    lines.emplace_back(printable(line.substr(0, kLongestLine)));
    if (lines.size() == kMostLines) break;
  }
  return lines;
}

}  // namespace distdoctor::probe
