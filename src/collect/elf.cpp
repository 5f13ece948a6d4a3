#include "collect/elf.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>

namespace distdoctor::collect {
namespace {

constexpr std::size_t kMostHeaders = 512;
constexpr std::size_t kMostDynamic = std::size_t{64} << 10;
constexpr std::size_t kMostNeeded = 512;
constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kMostSymbols = std::size_t{4} << 20;  // bytes of the table, and of its names

template <class T>
std::optional<T> take(std::string_view bytes, std::size_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// `count` rows of a table, as far as they are there.
template <class T>
std::vector<T> rows(std::string_view bytes, std::size_t count) {
  std::vector<T> all;
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = take<T>(bytes, i * sizeof(T));
    if (!row) break;
    all.push_back(*row);
  }
  return all;
}

std::string_view text_in(std::string_view bytes, std::uint64_t at) {
  if (at >= bytes.size()) return "";
  // One byte more than counts, so that a longer one shows.
  const auto rest = bytes.substr(static_cast<std::size_t>(at), kLongestText + 1);
  return rest.substr(0, rest.find('\0'));
}

std::optional<Elf64_Ehdr> header(const ReadPart& part) {
  const auto head = part(0, sizeof(Elf64_Ehdr));
  const auto kind = elf_kind(head);
  if (!kind || !kind->wide || head[EI_DATA] != ELFDATA2LSB) return std::nullopt;
  return take<Elf64_Ehdr>(head, 0);
}

// --- what the loader reads ---

std::vector<Elf64_Phdr> segments(const ReadPart& part, const Elf64_Ehdr& head) {
  const std::size_t count = std::min<std::size_t>(head.e_phnum, kMostHeaders);
  if (head.e_phentsize != sizeof(Elf64_Phdr)) return {};
  return rows<Elf64_Phdr>(part(head.e_phoff, count * sizeof(Elf64_Phdr)), count);
}

// Where an address of the loaded image lies in the file.
std::optional<std::uint64_t> offset_of(const std::vector<Elf64_Phdr>& all, std::uint64_t address) {
  for (const auto& segment : all) {
    const bool inside = segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
                        address - segment.p_vaddr < segment.p_filesz;
    if (inside) return segment.p_offset + (address - segment.p_vaddr);
  }
  return std::nullopt;
}

std::vector<Elf64_Dyn> dynamic_rows(const ReadPart& part, const std::vector<Elf64_Phdr>& all) {
  const auto found = std::ranges::find(all, std::uint32_t{PT_DYNAMIC}, &Elf64_Phdr::p_type);
  if (found == all.end()) return {};
  const auto size = std::min<std::uint64_t>(found->p_filesz, kMostDynamic);
  const auto bytes = part(found->p_offset, static_cast<std::size_t>(size));
  auto dynamic = rows<Elf64_Dyn>(bytes, bytes.size() / sizeof(Elf64_Dyn));
  const auto end = std::ranges::find(dynamic, Elf64_Sxword{DT_NULL}, &Elf64_Dyn::d_tag);
  dynamic.erase(end, dynamic.end());
  return dynamic;
}

class Texts {
 public:
  Texts(const ReadPart& part, std::uint64_t start) : part_(part), start_(start) {}
  [[nodiscard]] std::string at(std::uint64_t offset) const {
    if (offset > UINT64_MAX - start_) return "";
    return std::string(text_in(part_(start_ + offset, kLongestText), 0));
  }

 private:
  const ReadPart& part_;
  std::uint64_t start_;
};

void take_row(const Elf64_Dyn& row, const Texts& texts, Elf& elf) {
  const auto value = row.d_un.d_val;
  switch (row.d_tag) {
    case DT_NEEDED:
      if (elf.needed.size() < kMostNeeded) elf.needed.push_back(texts.at(value));
      break;
    case DT_SONAME:
      elf.soname = texts.at(value);
      break;
    case DT_RPATH:
      elf.rpath = texts.at(value);
      break;
    case DT_RUNPATH:
      elf.runpath = texts.at(value);
      break;
    case DT_FLAGS_1:
      elf.own_folders_only = (value & DF_1_NODEFLIB) != 0;
      break;
    default:
      break;
  }
}

// --- sections ---

std::vector<Elf64_Shdr> sections(const ReadPart& part, const Elf64_Ehdr& head) {
  const std::size_t count = std::min<std::size_t>(head.e_shnum, kMostHeaders);
  if (head.e_shentsize != sizeof(Elf64_Shdr)) return {};
  return rows<Elf64_Shdr>(part(head.e_shoff, count * sizeof(Elf64_Shdr)), count);
}

std::string bytes_of(const ReadPart& part, const Elf64_Shdr& section, std::size_t limit) {
  return part(section.sh_offset,
              static_cast<std::size_t>(std::min<std::uint64_t>(section.sh_size, limit)));
}

bool is_exported(const Elf64_Sym& symbol) {
  const auto binding = ELF64_ST_BIND(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK);
}

}  // namespace

std::optional<ElfKind> elf_kind(std::string_view head) {
  if (!head.starts_with(ELFMAG)) return std::nullopt;
  const auto machine = take<std::uint16_t>(head, offsetof(Elf64_Ehdr, e_machine));
  if (!machine) return std::nullopt;
  return ElfKind{.machine = *machine, .wide = head[EI_CLASS] == ELFCLASS64};
}

std::optional<Elf> read_elf(const ReadPart& part) {
  const auto head = header(part);
  if (!head) return std::nullopt;
  Elf elf{.kind = {.machine = head->e_machine, .wide = true}};
  const auto all = segments(part, *head);
  const auto dynamic = dynamic_rows(part, all);
  const auto table = std::ranges::find(dynamic, Elf64_Sxword{DT_STRTAB}, &Elf64_Dyn::d_tag);
  if (table == dynamic.end()) return elf;
  const auto start = offset_of(all, table->d_un.d_ptr);
  if (!start) return elf;
  const Texts texts(part, *start);
  for (const auto& row : dynamic) take_row(row, texts, elf);
  return elf;
}

std::vector<std::string> exported_symbols(const ReadPart& part, std::string_view prefix) {
  const auto head = header(part);
  if (!head) return {};
  const auto all = sections(part, *head);
  const auto table = std::ranges::find(all, std::uint32_t{SHT_DYNSYM}, &Elf64_Shdr::sh_type);
  if (table == all.end() || table->sh_link >= all.size()) return {};
  const auto symbols = bytes_of(part, *table, kMostSymbols);
  const auto names = bytes_of(part, all[table->sh_link], kMostSymbols);
  std::vector<std::string> found;
  for (const auto& symbol : rows<Elf64_Sym>(symbols, symbols.size() / sizeof(Elf64_Sym))) {
    const auto name = text_in(names, symbol.st_name);
    const bool wanted = is_exported(symbol) && name.starts_with(prefix);
    if (wanted && name.size() <= kLongestText) found.emplace_back(name);
  }
  return found;
}

std::optional<ElfSection> find_section(const ReadPart& part, std::string_view name) {
  const auto head = header(part);
  if (!head) return std::nullopt;
  const auto all = sections(part, *head);
  if (head->e_shstrndx >= all.size()) return std::nullopt;
  const auto names = bytes_of(part, all[head->e_shstrndx], kMostDynamic);
  for (const auto& section : all) {
    if (text_in(names, section.sh_name) != name) continue;
    return ElfSection{.offset = section.sh_offset, .size = section.sh_size};
  }
  return std::nullopt;
}

}  // namespace distdoctor::collect
