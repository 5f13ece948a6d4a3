// Shared libraries for captured machines: what the loader reads of one, and no code.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::testing {

struct ElfImage {
  std::string soname = {};
  std::vector<std::string> needed = {};
  std::optional<std::string> rpath = {};
  std::optional<std::string> runpath = {};
  std::vector<std::string> symbols = {};  // that it exports
  std::string constants = {};             // its .rodata
  int machine = EM_X86_64;
};

namespace elf_image_detail {

template <class T>
void append(const T& value, std::string& bytes) {
  const auto at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

class Names {
 public:
  std::uint32_t add(std::string_view name) {
    const auto at = static_cast<std::uint32_t>(bytes_.size());
    bytes_.append(name).push_back('\0');
    return at;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(1, '\0');
};

inline std::string dynamic_of(const ElfImage& image, std::uint64_t names_at, Names& names) {
  std::string bytes;
  const auto row = [&bytes](std::int64_t tag, std::uint64_t value) {
    Elf64_Dyn dynamic{};
    dynamic.d_tag = tag;
    dynamic.d_un.d_val = value;
    append(dynamic, bytes);
  };
  row(DT_STRTAB, names_at);
  if (!image.soname.empty()) row(DT_SONAME, names.add(image.soname));
  for (const auto& name : image.needed) row(DT_NEEDED, names.add(name));
  if (image.rpath) row(DT_RPATH, names.add(*image.rpath));
  if (image.runpath) row(DT_RUNPATH, names.add(*image.runpath));
  row(DT_NULL, 0);
  return bytes;
}

inline std::string symbols_of(const ElfImage& image, Names& names) {
  std::string bytes(sizeof(Elf64_Sym), '\0');
  for (const auto& name : image.symbols) {
    Elf64_Sym symbol{};
    symbol.st_name = names.add(name);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    symbol.st_shndx = 1;
    append(symbol, bytes);
  }
  return bytes;
}

inline Elf64_Ehdr head_of(int machine, std::uint64_t sections_at, std::size_t sections) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_type = ET_DYN;
  head.e_machine = static_cast<Elf64_Half>(machine);
  head.e_phoff = sizeof head;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = 2;
  head.e_shoff = sections_at;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = static_cast<Elf64_Half>(sections);
  head.e_shstrndx = 4;
  return head;
}

}  // namespace elf_image_detail

inline std::string elf_image(const ElfImage& image) {
  using namespace elf_image_detail;  // NOLINT(google-build-using-namespace)
  constexpr std::uint64_t kNamesAt = 0x1000;
  constexpr std::uint64_t kDynamicAt = 0x2000;
  Names names;
  Names sections;
  const auto dynamic = dynamic_of(image, kNamesAt, names);
  const auto symbols = symbols_of(image, names);
  std::string body = dynamic;
  const auto place = [&body](const std::string& bytes) {
    const auto at = kDynamicAt + body.size();
    body += bytes;
    return at;
  };
  std::vector<Elf64_Shdr> headers(1);
  const auto section = [&](const char* name, std::uint32_t type, const std::string& bytes) {
    Elf64_Shdr header{};
    header.sh_name = sections.add(name);
    header.sh_type = type;
    header.sh_offset = place(bytes);
    header.sh_size = bytes.size();
    header.sh_link = 2;  // of .dynsym: .dynstr
    headers.push_back(header);
  };
  section(".dynsym", SHT_DYNSYM, symbols);
  section(".dynstr", SHT_STRTAB, names.bytes());
  section(".rodata", SHT_PROGBITS, image.constants);
  sections.add(".shstrtab");
  section(".names", SHT_STRTAB, sections.bytes() + std::string(".names\0", 7));
  std::string table;
  for (const auto& header : headers) append(header, table);
  const auto table_at = place(table);

  const auto head = head_of(image.machine, table_at, headers.size());
  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_filesz = kDynamicAt + body.size();
  Elf64_Phdr dynamic_part{};
  dynamic_part.p_type = PT_DYNAMIC;
  dynamic_part.p_offset = kDynamicAt;
  dynamic_part.p_filesz = dynamic.size();
  std::string bytes;
  append(head, bytes);
  append(load, bytes);
  append(dynamic_part, bytes);
  bytes.resize(kNamesAt, '\0');
  bytes += names.bytes();
  bytes.resize(kDynamicAt, '\0');
  return bytes + body;
}

}  // namespace distdoctor::testing
