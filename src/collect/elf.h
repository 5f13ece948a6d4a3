// What a program or shared library says about itself (elf(5)), read in small pieces and never run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

// Bytes from an offset on, `limit` at most; fewer at the end, none where nothing can be read.
using ReadPart = std::function<std::string(std::uint64_t offset, std::size_t limit)>;

struct ElfKind {
  int machine = 0;    // e_machine: 62 is x86-64, 183 is aarch64
  bool wide = false;  // of 64 bits
  bool operator==(const ElfKind&) const = default;
};

// Of a little-endian one of 64 bits.
struct Elf {
  ElfKind kind = {};
  std::string soname = {};
  std::vector<std::string> needed = {};
  std::optional<std::string> rpath = {};
  std::optional<std::string> runpath = {};  // where there is one, rpath is as if it was not there
  bool own_folders_only = false;            // DF_1_NODEFLIB
  bool operator==(const Elf&) const = default;
};

std::optional<ElfKind> elf_kind(std::string_view head);  // of the first 20 bytes; none: no ELF
std::optional<Elf> read_elf(const ReadPart& part);

// Names that others can link to and that begin so, in the order of its table.
std::vector<std::string> exported_symbols(const ReadPart& part, std::string_view prefix);

struct ElfSection {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
// Where ".rodata" or its kind lies. None: there is no such section, or the table was stripped.
std::optional<ElfSection> find_section(const ReadPart& part, std::string_view name);

}  // namespace distdoctor::collect
