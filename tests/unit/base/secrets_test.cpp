#include "base/secrets.h"

#include "base/text.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {
namespace {

struct NameRow {
  std::string_view name;
  bool leaves;
};

const std::vector<NameRow> kNameRows = {
    {"MASTER_ADDR", true},
    {"MASTER_PORT", true},
    {"RANK", true},
    {"WORLD_SIZE", true},
    {"LOCAL_WORLD_SIZE", true},
    {"NCCL_SOCKET_IFNAME", true},
    {"NCCL_IB_PKEY", true},
    {"GLOO_SOCKET_IFNAME", true},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", true},
    {"TORCHELASTIC_RUN_ID", true},
    {"PET_NNODES", true},
    {"SLURM_PROCID", true},
    {"SLURM_JOB_NODELIST", true},
    {"SLURM_NTASKS_PER_NODE", true},
    {"OMPI_COMM_WORLD_LOCAL_RANK", true},
    {"UCX_NET_DEVICES", true},
    {"FI_PROVIDER", true},
    {"CUDA_VISIBLE_DEVICES", true},
    {"https_proxy", true},
    {"WANDB_API_KEY", false},
    {"HF_TOKEN", false},
    {"AWS_SECRET_ACCESS_KEY", false},
    {"AWS_SESSION_TOKEN", false},
    {"SLURM_JWT", false},
    {"SLURM_JOB_COMMENT", false},
    {"SLURM_SPANK_X", false},
    {"TORCH_HUB_TOKEN", false},
    {"NCCL_SITE_PASSWORD", false},
    {"DISTDOCTOR_KEY", false},
    {"PMIX_SERVER_URI", false},
    {"RANKING", false},
    {"rank", false},
    {"HOME", false},
    {"PATH", false},
    {"SSH_AUTH_SOCK", false},
    {"", false},
};

struct SecretRow {
  std::string_view name;
  bool secret;
};

const std::vector<SecretRow> kSecretRows = {
    {"--token", true},         {"hftoken", true},     {"--hf_token", true}, {"apiKey", true},
    {"--wandb.api-key", true}, {"DB_PASSWORD", true}, {"pass", true},       {"--tokenizer", false},
    {"max_tokens", false},     {"--keyfile", false},  {"monkey", false},    {"--passes", false},
    {"NCCL_IB_PKEY", false},   {"", false},
};

struct TextRow {
  std::string_view name;
  std::string_view text;
  std::string_view masked;
};

const std::vector<TextRow> kTextRows = {
    {"nothing to hide", "http://proxy:3128", "http://proxy:3128"},
    {"proxy", "http://ann:s3cret@proxy:3128", "http://ann:***@proxy:3128"},
    {"a password with an at", "http://ann:s3@cret@proxy:3128", "http://ann:***@proxy:3128"},
    {"a password with a slash", "http://ann:s3/cret@proxy:3128", "http://ann:***@proxy:3128"},
    {"no scheme", "ann:s3cret@proxy:3128", "ann:***@proxy:3128"},
    {"a user alone", "ann@node0", "ann@node0"},
    {"rsync", "ann@node0:/data", "ann@node0:/data"},
    {"inside another text", "x http://a:b@c y", "x http://a:***@c y"},
    {"assignment", "WANDB_API_KEY=abc python t.py", "WANDB_API_KEY=*** python t.py"},
    {"quoted assignment", "export HF_TOKEN=\"a b\"; ls", "export HF_TOKEN=\"***\"; ls"},
    {"unclosed quote", "HF_TOKEN='a b", "HF_TOKEN='***"},
    {"flag and value", "t.py --token abc --lr 1", "t.py --token *** --lr 1"},
    {"flag without value", "t.py --token --lr 1", "t.py --token --lr 1"},
    {"query", "https://h/p?token=abc&x=1", "https://h/p?token=***&x=1"},
    {"JSON", "{\"api_key\": \"abc\", \"n\": 1}", "{\"api_key\": \"***\", \"n\": 1}"},
    {"header", "Authorization: Bearer abc.def", "Authorization: Bearer ***"},
    {"a token by its shape", "--hub hf_abcdefghijklmnopqrstuv,x", "--hub ***,x"},
    {"not a token", "hf_models/llama", "hf_models/llama"},
    {"an endpoint", "--rdzv_endpoint=node0:29400", "--rdzv_endpoint=node0:29400"},
    {"ends in a separator", "token=", "token="},
    {"empty", "", ""},
};

struct ArgvRow {
  std::string_view name;
  std::vector<std::string> argv;
  std::string_view masked;
};

const std::vector<ArgvRow> kArgvRows = {
    {"none", {"torchrun", "--nnodes", "2"}, "torchrun|--nnodes|2"},
    {"next argument", {"t.py", "--api-key", "a b", "x"}, "t.py|--api-key|***|x"},
    {"same argument", {"t.py", "--api-key=a b"}, "t.py|--api-key=***"},
    {"a flag follows", {"t.py", "--use_auth", "--lr"}, "t.py|--use_auth|--lr"},
    {"a shell's command", {"bash", "-c", "HF_TOKEN=x t.py"}, "bash|-c|HF_TOKEN=*** t.py"},
    {"sshpass", {"sshpass", "-p", "pw", "ssh"}, "sshpass|-p|***|ssh"},
    {"sshpass in one", {"/usr/bin/sshpass", "-ppw", "ssh"}, "/usr/bin/sshpass|-p***|ssh"},
    {"curl", {"curl", "-u", "ann:pw", "h"}, "curl|-u|ann:***|h"},
    {"uid and gid", {"docker", "-u", "1000:1000"}, "docker|-u|1000:1000"},
    {"empty", {}, ""},
};

TEST_CASE("only listed names leave a process, and no secret") {
  for (const NameRow& row : kNameRows) {
    CAPTURE(std::string(row.name));
    CHECK(may_leave_a_process(row.name) == row.leaves);
  }
}

TEST_CASE("what sounds like a secret") {
  for (const SecretRow& row : kSecretRows) {
    CAPTURE(std::string(row.name));
    CHECK(names_a_secret(row.name) == row.secret);
  }
}

TEST_CASE("secrets in a text are masked") {
  for (const TextRow& row : kTextRows) {
    CAPTURE(std::string(row.name));
    CHECK(mask_value(row.text) == row.masked);
  }
}

TEST_CASE("secrets in a command line are masked") {
  for (const ArgvRow& row : kArgvRows) {
    CAPTURE(std::string(row.name));
    CHECK(join(mask_secrets(row.argv), "|") == row.masked);
  }
}

}  // namespace
}  // namespace distdoctor
