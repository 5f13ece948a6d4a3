// The files of a captured machine, in memory.
#pragma once

#include "machine/captured.h"
#include "machine/file_tree.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace distdoctor::machine {

// Folders follow from the paths of the files. What is not there is ENOENT, as on the machine.
class MemoryTree : public FileTree {
 public:
  MemoryTree(std::map<std::string, CapturedFile> files,
             std::map<std::string, CapturedFileSystem> file_systems)
      : files_(std::move(files)), file_systems_(std::move(file_systems)) {}

  [[nodiscard]] Result<std::string> read_head(std::string_view path,
                                              std::size_t limit) const override;
  [[nodiscard]] Result<std::string> read_at(std::string_view path,
                                            std::uint64_t offset,
                                            std::size_t limit) const override;
  [[nodiscard]] Result<std::vector<std::string>> list(std::string_view folder) const override;
  [[nodiscard]] Result<std::string> read_link(std::string_view path) const override;
  [[nodiscard]] Result<Links> links_in(std::string_view folder) const override;
  [[nodiscard]] Result<FileInfo> info(std::string_view path) const override;
  [[nodiscard]] Result<FileSystem> file_system(std::string_view path) const override;
  [[nodiscard]] Result<bool> in_use(std::string_view path) const override;
  [[nodiscard]] Result<void> may_use(std::string_view path) const override;
  [[nodiscard]] Result<void> try_open(std::string_view path) const override;

 private:
  // The path without symbolic links; the last part stays one when `last` is false.
  [[nodiscard]] std::string resolved(std::string_view path, bool last) const;
  [[nodiscard]] bool noted(std::string_view path, bool last) const;
  [[nodiscard]] bool is_folder(const std::string& path) const;
  [[nodiscard]] Result<const CapturedFile*> file(std::string_view path) const;

  std::map<std::string, CapturedFile> files_;
  std::map<std::string, CapturedFileSystem> file_systems_;
};

}  // namespace distdoctor::machine
