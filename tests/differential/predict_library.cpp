// predict_library NAME PRELOAD LIBRARY_PATH FOLDER OBJECT...: the file that the loader would take
// for NAME, from our own rules; OBJECT is who asks, who loaded that, ... and the program.
#include "collect/loader.h"
#include "machine/file_tree.h"

#include <iostream>
#include <span>
#include <string>
#include <vector>

using namespace distdoctor;  // NOLINT(google-build-using-namespace)

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 5) return 2;
  const auto files = machine::RootTree::open("/");
  if (!files) return 1;
  std::vector<collect::Loaded> chain;
  for (const auto& path : std::span(words).subspan(4)) {
    if (auto object = collect::loaded(**files, path)) chain.push_back(*object);
  }
  const collect::LoaderView view{
      .preload = words[1], .library_path = words[2], .folder = words[3], .program = words.back()};
  const auto found = collect::loader_order(**files, view, chain, words[0]);
  std::cout << (found.empty() ? "" : found.front().path) << '\n';
  return 0;
}
