#include "capture/capture.h"

#include "codec/read.h"
#include "codec/write.h"

#include <cerrno>
#include <utility>

namespace distdoctor::capture {
namespace {

struct Page {
  std::string schema = std::string(kSchema);
  machine::CapturedMachine machine = {};
};

template <class V, Is<Page> T>
void fields(V& v, T& x) {
  v("schema", x.schema);
  v("machine", x.machine);
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<machine::CapturedMachine> read_file(const std::string& folder, const std::string& name) {
  DD_TRY(const auto tree, machine::RootTree::open(folder));
  DD_TRY(const auto text, tree->read("/" + name, kMostBytes));
  return read(text, name);
}

}  // namespace

std::string write(const machine::CapturedMachine& captured) {
  return codec::indented(codec::write_json(Page{.machine = captured}));
}

Result<machine::CapturedMachine> read(std::string_view text, std::string_view name) {
  const auto attempt = "read " + std::string(name);
  Page page{.schema = {}};
  DD_TRY(codec::read_json(text, page, attempt, kMostBytes));
  if (page.schema != kSchema) {
    return failure(attempt, "its schema is not " + std::string(kSchema), "schema");
  }
  return std::move(page.machine);
}

namespace {

Result<std::unique_ptr<machine::Machine>> open_captured(const std::string& path) {
  if (auto root = machine::RootTree::open(path + "/root")) {
    DD_TRY(auto captured, read_file(path, "machine.json"));
    return machine::Machine::captured(std::move(captured), *std::move(root));
  }
  DD_TRY(auto captured, read_file(folder_of(path), path.substr(path.rfind('/') + 1)));
  return machine::Machine::captured(std::move(captured));
}

}  // namespace

// Files are opened below their folder, by names that a person has not said.
Result<std::unique_ptr<machine::Machine>> open(const std::string& path) {
  auto machine = open_captured(path);
  if (machine) return machine;
  Error error = machine.error();
  error.attempt = "read the captured machine " + path;
  return std::unexpected(std::move(error));
}

}  // namespace distdoctor::capture
