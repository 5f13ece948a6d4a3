#include "base/secrets.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace distdoctor {
namespace {

constexpr std::string_view kMask = "***";
constexpr std::string_view kBlanks = " \t\r\n";

constexpr std::array<std::string_view, 50> kNames = {"RANK",
                                                     "WORLD_SIZE",
                                                     "LOCAL_RANK",
                                                     "LOCAL_WORLD_SIZE",
                                                     "NODE_RANK",
                                                     "NNODES",
                                                     "GROUP_RANK",
                                                     "GROUP_WORLD_SIZE",
                                                     "ROLE_RANK",
                                                     "ROLE_NAME",
                                                     "ROLE_WORLD_SIZE",
                                                     "NPROC_PER_NODE",
                                                     "CUDA_VISIBLE_DEVICES",
                                                     "CUDA_DEVICE_ORDER",
                                                     "CUDA_LAUNCH_BLOCKING",
                                                     "NVIDIA_VISIBLE_DEVICES",
                                                     "HIP_VISIBLE_DEVICES",
                                                     "ROCR_VISIBLE_DEVICES",
                                                     "USE_LIBUV",
                                                     "HOSTNAME",
                                                     "LD_LIBRARY_PATH",
                                                     "LD_PRELOAD",
                                                     "TMPDIR",
                                                     "TP_SOCKET_IFNAME",
                                                     "OMP_NUM_THREADS",
                                                     "http_proxy",
                                                     "https_proxy",
                                                     "no_proxy",
                                                     "grpc_proxy",
                                                     "all_proxy",
                                                     "HTTP_PROXY",
                                                     "HTTPS_PROXY",
                                                     "NO_PROXY",
                                                     "ALL_PROXY",
                                                     "SLURM_NODEID",
                                                     "SLURM_PROCID",
                                                     "SLURM_LOCALID",
                                                     "SLURM_NNODES",
                                                     "SLURM_NTASKS",
                                                     "SLURM_NPROCS",
                                                     "SLURM_NODELIST",
                                                     "SLURM_JOBID",
                                                     "SLURM_STEPID",
                                                     "SLURM_TOPOLOGY_ADDR",
                                                     "SLURM_LAUNCH_NODE_IPADDR",
                                                     "SLURM_SRUN_COMM_HOST",
                                                     "SLURM_CLUSTER_NAME",
                                                     "SLURMD_NODENAME",
                                                     "PMIX_RANK",
                                                     "DISTDOCTOR_BACKEND"};

// Of Slurm, MPI and PMI only what places ranks: the rest holds comments, addresses of daemons and
// what plugins put there.
constexpr std::array<std::string_view, 33> kPrefixes = {"MASTER_",
                                                        "NCCL_",
                                                        "RCCL_",
                                                        "GLOO_",
                                                        "TORCH_",
                                                        "TORCHELASTIC_",
                                                        "PET_",
                                                        "UCX_",
                                                        "FI_",
                                                        "OFI_",
                                                        "SLURM_JOB_ID",
                                                        "SLURM_JOB_NODELIST",
                                                        "SLURM_JOB_NUM_NODES",
                                                        "SLURM_JOB_GPUS",
                                                        "SLURM_JOB_PARTITION",
                                                        "SLURM_NTASKS_PER_",
                                                        "SLURM_TASKS_PER_NODE",
                                                        "SLURM_STEP_ID",
                                                        "SLURM_STEP_NODELIST",
                                                        "SLURM_STEP_NUM_",
                                                        "SLURM_STEP_TASKS_PER_NODE",
                                                        "SLURM_STEP_GPUS",
                                                        "SLURM_GPUS",
                                                        "SLURM_CPUS_",
                                                        "SLURM_CPU_BIND",
                                                        "SLURM_GPU_BIND",
                                                        "OMPI_COMM_WORLD_",
                                                        "OMPI_UNIVERSE_SIZE",
                                                        "MV2_COMM_WORLD_",
                                                        "MPI_LOCAL",
                                                        "PMI_RANK",
                                                        "PMI_SIZE",
                                                        "PMI_LOCAL_"};

constexpr std::array<std::string_view, 12> kSecretEnds = {
    "token",      "secret",      "password", "passwd",    "passphrase", "passcode",
    "credential", "credentials", "apikey",   "accesskey", "authkey",    "privatekey"};
constexpr std::array<std::string_view, 10> kSecretWords = {
    "key", "keys", "pwd", "pass", "auth", "authorization", "bearer", "cookie", "jwt", "pat"};

struct TokenShape {
  std::string_view prefix;
  std::size_t least;  // characters with the prefix
};
// As these services document them: Hugging Face, GitHub, GitLab, AWS, OpenAI and kin, Slack, JWT.
constexpr std::array<TokenShape, 13> kTokenShapes = {{{"hf_", 20},
                                                      {"ghp_", 20},
                                                      {"gho_", 20},
                                                      {"ghs_", 20},
                                                      {"github_pat_", 30},
                                                      {"glpat-", 16},
                                                      {"AKIA", 20},
                                                      {"ASIA", 20},
                                                      {"sk-", 24},
                                                      {"xoxb-", 20},
                                                      {"xoxp-", 20},
                                                      {"eyJ", 40},
                                                      {"nvapi-", 20}}};

bool word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

bool secret_word(std::string_view word) {
  const auto ends_it = [&](std::string_view end) { return word.ends_with(end); };
  return std::ranges::any_of(kSecretEnds, ends_it) ||
         std::ranges::find(kSecretWords, word) != kSecretWords.end();
}

// "apiKey" and "HFToken" become "api_key" and "hftoken": a hump is the end of a word.
std::string unhumped(std::string_view name) {
  std::string words;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool upper = name[i] >= 'A' && name[i] <= 'Z';
    const bool after_lower = i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z';
    if (upper && after_lower) words += '_';
    words += name[i] == '-' || name[i] == '.' ? '_' : name[i];
  }
  return to_lower(words);
}

// Where the value that begins at `from` ends: at its closing quote, else at a blank.
std::size_t value_end(std::string_view text, std::size_t from, std::string_view stops) {
  if (from >= text.size()) return text.size();
  const char quote = text[from];
  if (quote == '"' || quote == '\'') return std::min(text.find(quote, from + 1), text.size());
  return std::min(text.find_first_of(stops, from), text.size());
}

// The name that ends right before `end`, past a closing quote: token of `token=`, `"token":`.
std::string_view name_before(std::string_view text, std::size_t end) {
  if (end > 0 && (text[end - 1] == '"' || text[end - 1] == '\'')) --end;
  std::size_t begin = end;
  while (begin > 0 && word_character(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

// Walks over a text once and copies it, but for the values of what names a secret.
class Masker {
 public:
  explicit Masker(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '=' || c == ':') {
        after_separator(c);
      } else if (kBlanks.contains(c)) {
        after_blank();
      } else {
        out_ += text_[at_++];
      }
    }
    return std::move(out_);
  }

 private:
  void copy_until(std::size_t end) {
    out_ += text_.substr(at_, end - at_);
    at_ = end;
  }

  void after_separator(char c) {
    const std::string_view name = name_before(text_, at_);
    const bool secret = names_a_secret(name);
    copy_until(at_ + 1);
    if (!secret) return;
    if (c == ':') copy_until(std::min(text_.find_first_not_of(kBlanks, at_), text_.size()));
    if (text_.substr(at_).starts_with("Bearer ") || text_.substr(at_).starts_with("Basic ")) {
      copy_until(text_.find(' ', at_) + 1);
    }
    const auto in_query = static_cast<std::size_t>(name.data() - text_.data());
    const bool query = in_query > 0 && (text_[in_query - 1] == '?' || text_[in_query - 1] == '&');
    mask(query ? "& \t\r\n\"'" : kBlanks);
  }

  // "--token VALUE" inside one text.
  void after_blank() {
    const std::string_view name = name_before(text_, at_);
    const bool flag = name.starts_with('-') && names_a_secret(name);
    copy_until(std::min(text_.find_first_not_of(kBlanks, at_), text_.size()));
    if (flag && at_ < text_.size() && text_[at_] != '-') mask(kBlanks);
  }

  void mask(std::string_view stops) {
    const std::size_t end = value_end(text_, at_, stops);
    if (end == at_) return;
    const bool quoted = text_[at_] == '"' || text_[at_] == '\'';
    if (quoted) out_ += text_[at_];
    out_ += kMask;
    at_ = end;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

// The last '@' of the word counts, so that one inside a password gives nothing away.
std::string mask_user_info(std::string_view word) {
  const std::size_t host = word.rfind('@');
  if (host == std::string_view::npos) return std::string(word);
  const std::size_t scheme = word.find("://");
  const std::size_t user = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t colon = word.find(':', user);
  if (colon == std::string_view::npos || colon >= host) return std::string(word);
  return std::string(word.substr(0, colon + 1)).append(kMask).append(word.substr(host));
}

bool looks_like_token(std::string_view run) {
  return std::ranges::any_of(kTokenShapes, [&](const TokenShape& shape) {
    return run.size() >= shape.least && run.starts_with(shape.prefix);
  });
}

std::string mask_tokens(std::string_view word) {
  std::string out;
  while (!word.empty()) {
    const auto* const end = std::ranges::find_if_not(word, word_character);
    const auto length = static_cast<std::size_t>(end - word.begin());
    const std::string_view run = word.substr(0, length);
    out += looks_like_token(run) ? kMask : run;
    word.remove_prefix(length);
    if (word.empty()) break;
    out += word.front();
    word.remove_prefix(1);
  }
  return out;
}

template <class Change>
std::string by_words(std::string_view text, Change change) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
    const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    out += text.substr(0, begin);
    out += change(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
  return out;
}

// `curl -u ann:pw`; `docker run -u 1000:1000` is none.
std::string mask_user(std::string_view argument) {
  const std::size_t colon = argument.find(':');
  const bool numbers = argument.find_first_not_of("0123456789:") == std::string_view::npos;
  if (colon == std::string_view::npos || numbers) return mask_value(argument);
  return std::string(argument.substr(0, colon + 1)).append(kMask);
}

std::string mask_after(std::string_view flag, std::string_view argument, bool sshpass) {
  const bool secret = flag.starts_with('-') && !flag.contains('=') && names_a_secret(flag);
  if ((secret && !argument.starts_with('-')) || (sshpass && flag == "-p")) {
    return std::string(kMask);
  }
  if (sshpass && argument.starts_with("-p") && argument.size() > 2) {
    return std::string("-p").append(kMask);
  }
  if (flag == "-u" || flag == "--user") return mask_user(argument);
  // All of it is the value, blanks too; after `-c` it is a command that begins with an assignment.
  const std::size_t equals = argument.find('=');
  const bool one_word = equals != std::string_view::npos && flag != "-c" &&
                        std::ranges::all_of(argument.substr(0, equals), word_character);
  if (one_word && names_a_secret(argument.substr(0, equals))) {
    return std::string(argument.substr(0, equals + 1)).append(kMask);
  }
  return mask_value(argument);
}

}  // namespace

bool names_a_secret(std::string_view name) {
  const std::string words = unhumped(name);
  return std::ranges::any_of(split(words, '_'), secret_word);
}

bool may_leave_a_process(std::string_view name) {
  const auto begins_it = [&](std::string_view prefix) { return name.starts_with(prefix); };
  const bool listed =
      std::ranges::find(kNames, name) != kNames.end() || std::ranges::any_of(kPrefixes, begins_it);
  return listed && !names_a_secret(name);
}

std::string mask_value(std::string_view text) {
  const std::string no_passwords = by_words(text, mask_user_info);
  return by_words(Masker(no_passwords).run(), mask_tokens);
}

std::vector<std::string> mask_secrets(const std::vector<std::string>& argv) {
  std::vector<std::string> masked;
  masked.reserve(argv.size());
  bool sshpass = false;
  std::string_view before;
  for (const std::string& argument : argv) {
    masked.push_back(mask_after(before, argument, sshpass));
    sshpass = sshpass || argument.ends_with("sshpass");
    before = argument;
  }
  return masked;
}

}  // namespace distdoctor
