#include "base/job_places.h"

#include "base/secrets.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace distdoctor {
namespace {

using Environment = std::map<std::string, std::string>;

constexpr std::size_t kLongest = std::size_t{64} << 10;
constexpr std::string_view kMasked = "***";  // what mask_value puts in place of a secret
constexpr int kDeepest = 8;                  // ${A:-${B:-...}}
constexpr std::array<std::string_view, 4> kLists = {"LD_LIBRARY_PATH", "LD_PRELOAD", "PATH",
                                                    "PYTHONPATH"};
constexpr std::array<std::string_view, 7> kOthers = {
    "CUDA_HOME",      "CUDA_PATH",      "VIRTUAL_ENV",    "CONDA_PREFIX",
    "NCCL_CONF_FILE", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"};
constexpr std::array<std::string_view, 3> kOfLoader = {"ORIGIN", "LIB", "PLATFORM"};

bool one_of(std::string_view name, const auto& names) {
  return std::ranges::find(names, name) != names.end();
}

bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::size_t name_end(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, name_character) - text.begin());
}

// Where the brace that is open before `text` closes; npos: nowhere.
std::size_t closing_brace(std::string_view text) {
  int open = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    open += text[i] == '{' ? 1 : 0;
    open -= text[i] == '}' ? 1 : 0;
    if (open == 0) return i;
  }
  return std::string_view::npos;
}

class Filler {
 public:
  Filler(std::string_view own, const Environment& environment)
      : own_(own), environment_(environment) {}

  std::optional<std::string> fill(std::string_view text, int depth = 0) const {
    if (text.contains(kMasked)) return std::nullopt;
    std::string done;
    while (!text.empty() && done.size() <= kLongest) {
      const auto dollar = text.find('$');
      if (text.substr(0, dollar).contains('`')) return std::nullopt;
      done += text.substr(0, dollar);
      if (dollar == std::string_view::npos) return done;
      text.remove_prefix(dollar + 1);
      const auto piece = variable(text, depth);
      if (!piece) return std::nullopt;
      done += *piece;
    }
    return done.size() > kLongest ? std::nullopt : std::optional(std::move(done));
  }

 private:
  // `text` stands behind the '$'; what was read of it is taken off.
  std::optional<std::string> variable(std::string_view& text, int depth) const {
    if (text.starts_with('{')) {
      const auto end = closing_brace(text.substr(1));
      if (end == std::string_view::npos) return std::nullopt;
      const auto inside = text.substr(1, end);
      text.remove_prefix(end + 2);
      return expression(inside, depth);
    }
    const auto name = text.substr(0, name_end(text));
    text.remove_prefix(name.size());
    return one_of(name, kOfLoader) ? std::optional("$" + std::string(name)) : value(name);
  }

  std::optional<std::string> expression(std::string_view inside, int depth) const {
    const auto name = inside.substr(0, name_end(inside));
    const auto rest = inside.substr(name.size());
    if (rest.empty()) {
      if (!one_of(name, kOfLoader)) return value(name);
      return std::string("${").append(name).append("}");
    }
    if (depth == kDeepest || name.empty() || one_of(name, kOfLoader)) return std::nullopt;
    if (names_a_secret(name)) return std::nullopt;
    const auto known = environment_.find(std::string(name));
    const bool set = known != environment_.end() && !known->second.empty();
    if (const auto otherwise = after_prefix(rest, ":-")) {
      return set ? value(name) : fill(*otherwise, depth + 1);
    }
    if (const auto then = after_prefix(rest, ":+")) return set ? fill(*then, depth + 1) : "";
    return std::nullopt;
  }

  // A job's shell stands in another folder, and is another task. No secret gets into a path.
  std::optional<std::string> value(std::string_view name) const {
    const bool elsewhere = name.empty() || names_a_secret(name) || name == "PWD" ||
                           name == "OLDPWD" || name.ends_with("RANK") || name.starts_with("SLURM_");
    if (elsewhere) return std::nullopt;
    const auto found = environment_.find(std::string(name));
    if (found != environment_.end()) return found->second;
    return name == own_ ? std::optional<std::string>("") : std::nullopt;
  }

  std::string_view own_;
  const Environment& environment_;
};

// At the colons that stand in no braces and brackets.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  int open = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    open += text[i] == '{' || text[i] == '(' ? 1 : 0;
    open -= text[i] == '}' || text[i] == ')' ? 1 : 0;
    if (text[i] != ':' || open > 0) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

}  // namespace

bool leads_to_files(std::string_view name) {
  return one_of(name, kLists) || one_of(name, kOthers) ||
         (name.starts_with("NCCL_") && name.ends_with("_PLUGIN"));
}

FilledIn fill_in(std::string_view name, std::string_view written, const Environment& environment) {
  const Filler filler(name, environment);
  if (auto text = filler.fill(written)) return {.text = *std::move(text)};
  FilledIn filled{.whole = false};
  if (!one_of(name, kLists)) return filled;
  std::vector<std::string> kept;
  for (const auto part : parts_of(written)) {
    auto text = filler.fill(part);
    if (text && !text->empty()) kept.push_back(*std::move(text));
  }
  filled.text = join(kept, ":");
  return filled;
}

}  // namespace distdoctor
