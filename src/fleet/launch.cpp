#include "fleet/launch.h"

#include <distdoctor/quote.h>

#include "base/hostlist.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace distdoctor::fleet {
namespace {

// $0 is the path, so that no name is ever a part of the script's text.
constexpr std::string_view kScript =
    R"(p=$0; [ -x "$p" ] || p=$(command -v distdoctor) )"
    R"(|| { echo "distdoctor is neither $0 there nor in PATH" >&2; exit 127; }; exec "$p" agent)";

// $1 is the size. A folder counts only when a file in it can be executed. The agent removes its
// file as soon as it runs.
constexpr std::string_view kPushScript =
    R"(p=$0; [ -x "$p" ] || p=$(command -v distdoctor) || p=; [ "$p" ] && exec "$p" agent; )"
    R"(umask 077; for d in "$XDG_RUNTIME_DIR" /dev/shm /tmp; do )"
    R"([ "$d" ] && f=$(mktemp "$d/distdoctor.XXXXXX" 2>/dev/null) || continue; )"
    R"(echo : >"$f" && chmod 700 "$f" && "$f" 2>/dev/null && p=$f && break; rm -f "$f"; )"
    R"(done; [ "$p" ] || { echo "distdoctor: no folder to put it in" >&2; exit 126; }; )"
    R"(trap 'rm -f "$p"' EXIT HUP TERM; echo distdoctor-push/1; head -c "$1" >"$p"; )"
    R"(DISTDOCTOR_PUSHED=1 exec "$p" agent)";

std::vector<std::string> remote_command(const Program& program) {
  std::vector<std::string> words = {"sh", "-c"};
  words.emplace_back(program.push_bytes > 0 ? kPushScript : kScript);
  words.push_back(program.path);
  if (program.push_bytes > 0) words.push_back(std::to_string(program.push_bytes));
  return words;
}

// ssh joins its words with blanks, and the remote login shell splits them again.
std::string for_ssh(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_quote(word));
  return join(quoted, " ");
}

bool is_ssh(std::string_view word) {
  return word.substr(word.rfind('/') + 1) == "ssh";
}

std::vector<std::string> ssh_argv(std::string_view host,
                                  const LaunchOptions& options,
                                  int connect_timeout_s) {
  std::vector<std::string> argv;
  for (const auto word : split_words(options.ssh_command)) argv.emplace_back(word);
  const std::string timeout = fmt::format("ConnectTimeout={}", std::max(connect_timeout_s, 1));
  // What a user's ssh_config may hold for people at a terminal and would break a bare channel.
  for (const char* option : {"BatchMode=yes", timeout.c_str(), "ClearAllForwardings=yes",
                             "RemoteCommand=none", "ForwardX11=no"}) {
    argv.insert(argv.end(), {"-o", option});
  }
  argv.insert(argv.end(), {"-T", "--", std::string(host)});
  return argv;
}

void replace_host(std::string& word, std::string_view host) {
  constexpr std::string_view kPlace = "{host}";
  for (auto at = word.find(kPlace); at != std::string::npos;
       at = word.find(kPlace, at + host.size())) {
    word.replace(at, kPlace.size(), host);
  }
}

Result<std::vector<std::string>> template_argv(std::string_view host,
                                               const std::string& launch_template) {
  DD_TRY(std::vector<std::string> argv, split_shell_words(launch_template));
  for (std::string& word : argv) replace_host(word, host);
  return argv;
}

class WordSplitter {
 public:
  Result<std::vector<std::string>> split(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (quote_ == '\'' ? c != '\'' : c != '\\') {
        step(c);
      } else if (c == '\'') {
        quote_ = '\0';
      } else if (++i < text.size()) {
        add(text[i]);
      }
    }
    if (quote_ != '\0') return failure(kAttempt, "a quote is not closed");
    end_word();
    if (words_.empty()) return failure(kAttempt, "it has no word");
    return std::move(words_);
  }

 private:
  static constexpr std::string_view kAttempt = "read the launch template";

  void step(char c) {
    if (quote_ == '\0' && (c == '\'' || c == '"')) {
      quote_ = c;
      open_ = true;
    } else if (quote_ == '"' && c == '"') {
      quote_ = '\0';
    } else if (quote_ == '\0' && std::string_view(" \t\r\n").contains(c)) {
      end_word();
    } else {
      add(c);
    }
  }
  void add(char c) {
    word_ += c;
    open_ = true;
  }
  void end_word() {
    if (open_) words_.push_back(std::exchange(word_, {}));
    open_ = false;
  }

  std::vector<std::string> words_;
  std::string word_;
  bool open_ = false;
  char quote_ = '\0';
};

}  // namespace

Result<std::vector<std::string>> split_shell_words(std::string_view text) {
  return WordSplitter().split(text);
}

Result<std::vector<std::string>> launch_argv(std::string_view host,
                                             const LaunchOptions& options,
                                             const Program& program,
                                             int connect_timeout_s) {
  if (const auto bad = bad_peer_name(host); !bad.empty()) {
    return failure(fmt::format("launch an agent on '{}'", printable(host)), bad);
  }
  std::vector<std::string> argv;
  if (options.launch_template.empty()) {
    argv = ssh_argv(host, options, connect_timeout_s);
  } else {
    DD_TRY(argv, template_argv(host, options.launch_template));
  }
  const auto remote = remote_command(program);
  if (options.launch_template.empty() || std::ranges::any_of(argv, is_ssh)) {
    argv.push_back(for_ssh(remote));
  } else {
    argv.insert(argv.end(), remote.begin(), remote.end());
  }
  return argv;
}

}  // namespace distdoctor::fleet
