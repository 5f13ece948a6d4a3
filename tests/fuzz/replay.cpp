// Stands in for libFuzzer: feeds each file of the folders that it is given to the target, once.
#include "target.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int replay(const std::filesystem::path& folder) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string text = contents(entry.path());
    // A copy of exactly this size on the heap, so that ASan sees a read past the end.
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++files;
  }
  std::printf("%s: %d inputs\n", folder.c_str(), files);
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (const char* folder : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
    files += replay(folder);
  }
  return files > 0 ? 0 : 1;  // an empty corpus tests nothing
}
