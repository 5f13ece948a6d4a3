// nccl_variables [--seed N] [--cases N]: random values of NCCL's variables, read by the real
// library and by our rules. No GPU. Numbers, levels and lists go through the library's own internal
// functions; whether its warnings are printed is asked of a child for each value, since NCCL reads
// that once a process. What differs is printed; the last line counts the cases.
#include <distdoctor/facts/predicted.h>

#include "../programs/real_nccl.h"
#include "rules/nccl/variables.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace distdoctor;  // NOLINT(google-build-using-namespace)

using LoadParam = void (*)(const char*, std::int64_t, std::int64_t, std::int64_t*);
using GetLevel = int (*)(int*, const char*, const char*);
using ParseList = int (*)(const char*, const char* const*, int, const char* const*, int, int*);

using Variables = std::map<std::string, std::string>;

struct Random {
  std::mt19937 engine;

  std::size_t below(std::size_t count) { return engine() % count; }
  template <class Range>
  auto one_of(const Range& range) {
    return range[below(std::size(range))];
  }
};

struct Counts {
  int passed = 0;
  int failed = 0;

  void note(bool same, const Variables& variables, std::string_view real, std::string_view ours) {
    ++(same ? passed : failed);
    if (same) return;
    std::cout << "DIFFERENT\n";
    for (const auto& [name, value] : variables)
      std::cout << "    " << name << "='" << value << "'\n";
    std::cout << "    NCCL: " << real << "\n    ours: " << ours << '\n';
  }
};

void set(const Variables& variables) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
}

std::vector<VariableReading> our_reading(const Variables& variables) {
  Settings settings;
  for (const auto& [name, value] : variables) settings[name] = {.value = value};
  return rules::read_variables(settings);
}

const VariableReading& of(const std::vector<VariableReading>& readings, std::string_view name) {
  return *std::ranges::find(readings, name, &VariableReading::name);
}

// --- random values ---

std::string random_number(Random& random) {
  constexpr std::array kFixed = {"",
                                 "true",
                                 "yes",
                                 "1",
                                 "0",
                                 "022",
                                 "08",
                                 "0x6a",
                                 "8x",
                                 "4M",
                                 " 7",
                                 "7 ",
                                 "+3",
                                 "-010",
                                 "\t1",
                                 "1\r",
                                 "\"1\"",
                                 "0b1",
                                 "1e3",
                                 "--1",
                                 "-",
                                 "0x",
                                 "9223372036854775807",
                                 "9223372036854775808",
                                 "-9223372036854775809",
                                 "off"};
  if (random.below(3) == 0) return random.one_of(kFixed);
  constexpr std::string_view kLetters = "0001234567890xXabefKM+-. \t\"#";
  std::string text;
  for (std::size_t i = random.below(7); i > 0; --i) text += random.one_of(kLetters);
  return text;
}

std::string random_word(Random& random, const std::vector<std::string>& words) {
  std::string word = random.one_of(words);
  switch (random.below(8)) {
    case 0:
      std::ranges::transform(word, word.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
      break;
    case 1:
      word += random.one_of(std::string_view(" \rx1"));
      break;
    case 2:
      word.insert(0, 1, random.one_of(std::string_view(" ^x")));
      break;
    default:
      break;
  }
  return word;
}

std::string random_list(Random& random, const std::vector<std::string>& words) {
  std::string list = random.below(4) == 0 ? "^" : "";
  for (std::size_t i = random.below(4); i > 0; --i) list += random_word(random, words) + ",";
  if (list.ends_with(',') && random.below(4) != 0) list.pop_back();
  return list;
}

// --- what both make of them ---

void compare_number(LoadParam load, Random& random, Counts& counts) {
  constexpr std::int64_t kDefault = 424242;
  constexpr std::int64_t kUnread = -777;
  const Variables variables = {{"NCCL_IB_TC", random_number(random)}};
  set(variables);
  std::int64_t real = kUnread;
  load("NCCL_IB_TC", kDefault, kUnread, &real);
  const auto readings = our_reading(variables);
  const std::string& ours = of(readings, "NCCL_IB_TC").taken_as;
  const std::string text = real == kDefault ? "" : std::to_string(real);
  counts.note(text == ours, variables, text, ours);
}

void compare_level(GetLevel get_level, Random& random, Counts& counts) {
  static const std::vector<std::string> levels = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C",
                                                  "PXN", "PHB", "SYS", "NET", "0",   "3",   "9"};
  const Variables variables = {
      {"NCCL_P2P_DISABLE", random.below(2) == 0 ? random_number(random) : ""},
      {"NCCL_P2P_LEVEL", random_word(random, levels)}};
  set(variables);
  int real = -1;  // not yet read
  get_level(&real, "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL");
  const auto readings = our_reading(variables);
  std::string ours = of(readings, "NCCL_P2P_LEVEL").taken_as;
  if (of(readings, "NCCL_P2P_DISABLE").taken_as == "1") ours = "LOC";
  const std::string text = real < 0 ? "" : levels[static_cast<std::size_t>(real)];
  counts.note(text == ours, variables, text, ours);
}

void compare_list(ParseList parse, Random& random, Counts& counts) {
  static const std::vector<std::string> words = {"LL", "LL128", "Simple"};
  constexpr std::array kFunctions = {"Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                     "AllReduce"};
  constexpr std::array kProtocols = {"LL", "LL128", "Simple"};
  std::string text = random.below(8) == 0 ? ";" : "";
  for (std::size_t i = 1 + random.below(2); i > 0; --i) {
    const std::string list = random_list(random, words);
    if (list.empty()) continue;
    if (random.below(3) == 0) text += std::string(random.one_of(kFunctions)) + ":";
    text += list + ";";
  }
  if (text.ends_with(';') && random.below(3) != 0) text.pop_back();
  const Variables variables = {{"NCCL_PROTO", text}};
  std::array<int, kFunctions.size() * kProtocols.size()> found{};
  const int result = parse(text.c_str(), kFunctions.data(), static_cast<int>(kFunctions.size()),
                           kProtocols.data(), static_cast<int>(kProtocols.size()), found.data());
  const auto readings = our_reading(variables);
  const bool refused = of(readings, "NCCL_PROTO").trap == VariableTrap::refused;
  counts.note((result != 0) == refused, variables, result == 0 ? "taken" : "refused",
              refused ? "refused" : "taken");
}

// --- what is printed ---

// Whether a fresh NCCL prints a warning, in a child: there is no such interface.
bool real_warns(const testing::Library& library, const Variables& variables) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return false;
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    set(variables);
    setenv("NCCL_SOCKET_IFNAME", "nosuch0", 1);
    std::array<char, 128> id{};
    library.exported<int (*)(void*)>("ncclGetUniqueId")(id.data());
    std::fflush(nullptr);
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text.contains("NCCL WARN");
}

bool we_say_it_warns(const Variables& variables) {
  const auto readings = our_reading(variables);
  const std::string& level = of(readings, "NCCL_DEBUG").taken_as;
  if (level.empty() || level == "VERSION") return false;
  return std::ranges::none_of(readings, [](const VariableReading& reading) {
    return reading.trap == VariableTrap::silenced;
  });
}

void compare_silence(const testing::Library& library, Random& random, Counts& counts) {
  static const std::vector<std::string> levels = {"VERSION", "WARN", "INFO", "ABORT", "TRACE",
                                                  "DEBUG",   "1",    "",     "NONE"};
  static const std::vector<std::string> subsystems = {"INIT", "NET",   "ENV", "ALL", "RAS",
                                                      "COLL", "BOGUS", "all", ""};
  Variables variables = {{"NCCL_DEBUG", random_word(random, levels)}};
  if (random.below(3) != 0) variables["NCCL_DEBUG_SUBSYS"] = random_list(random, subsystems);
  const bool real = real_warns(library, variables);
  const bool ours = we_say_it_warns(variables);
  counts.note(real == ours, variables, real ? "warns" : "silent", ours ? "warns" : "silent");
}

int option(int argc, char** argv, std::string_view name, int otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == name) return std::atoi(argv[i + 1]);
  }
  return otherwise;
}

void compare_all(const testing::Library& library, int cases, Random& random, Counts& counts) {
  const auto load = library.internal<LoadParam>("_Z13ncclLoadParamPKcllPl");
  const auto get_level = library.internal<GetLevel>("_Z12ncclGetLevelPiPKcS1_");
  const auto parse = library.internal<ParseList>("_Z9parseListPKcPS0_iS1_iPi");
  for (int i = 0; i < cases; ++i) {
    if (load != nullptr) compare_number(load, random, counts);
    if (get_level != nullptr) compare_level(get_level, random, counts);
    if (parse != nullptr) compare_list(parse, random, counts);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* name : {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}) unsetenv(name);
  const int seed = option(argc, argv, "--seed", 1);
  const int cases = option(argc, argv, "--cases", 240);
  Random random{.engine = std::mt19937(static_cast<unsigned>(seed))};
  Counts counts;
  const auto library = testing::load();
  constexpr int kCheap = 4;  // a child takes as long as hundreds of the others
  for (int i = 0; i < cases / kCheap; ++i) compare_silence(library, random, counts);
  compare_all(library, cases, random, counts);
  std::cout << "seed " << seed << ", NCCL ";
  testing::print_version(library);
  std::cout << counts.passed << " passed, " << counts.failed << " failed, 0 skipped\n";
  return counts.failed == 0 ? 0 : 1;
}
