#include "capture/common_words.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

namespace distdoctor::capture {
namespace {

constexpr std::string_view kWords =
    // accounts and hosts of everybody
    "localhost localdomain localdomain4 localdomain6 root nobody daemon admin user users ubuntu "
    "debian centos rocky fedora almalinux opc core vagrant azureuser slurm munge host node nodes "
    // folders
    "checks bin sbin lib lib32 lib64 libexec usr etc var opt tmp run dev shm pts proc sys boot "
    "home srv "
    "mnt "
    "media local share cache data scratch work workspace projects nfs lustre gpfs shared venv "
    "virtualenv env envs conda miniconda3 anaconda3 miniforge3 mambaforge micromamba pyenv "
    "versions "
    "site packages dist info include src targets x86 64 linux gnu aarch64 wsl plugins "
    // files and their endings
    "py sh bash json yaml yml toml cfg conf config xml txt log out err so pth pt null profile "
    "pyvenv "
    "version hosts train main test script job machine stdin stdout stderr socket pipe exe "
    // programs and their words
    "torchrun torch distributed elastic launch launcher launchers runner multiprocess commands "
    "accelerate deepspeed python dash zsh ksh ash srun sbatch salloc scontrol show hostname "
    "hostnames mpirun mpiexec orterun prterun orted prted hydra pmi proxy exec nohup time timeout "
    "stdbuf nice ionice numactl taskset sudo setsid command unbuffer apptainer singularity docker "
    "podman enroot pyxis container containerd kubepods uv nsys ncu poetry ssh sshd systemd init "
    "sleep pause tail head cat awk sed grep echo export set slurmd slurmstepd agent distdoctor "
    "getent vendor jupyter tensorboard c10d etcd v2 v1 static gloo nccl mpi ucc auto cpu gpu gpus "
    "cuda rocm hip true false none no yes any all spawn tcp udp ib eth rank ranks local_rank world "
    "dockerenv containerenv singularity d "
    "size master addr port worker workers server client store "
    // hardware
    "nvidia nvswitch amdgpu mlx4 mlx5 efa irdma bnxt rxe siw infiniband uverbs uvm ctl numa";

const std::set<std::string, std::less<>>& words() {
  static const std::set<std::string, std::less<>> all = [] {
    std::set<std::string, std::less<>> set;
    for (const auto word : split_words(kWords)) set.emplace(word);
    return set;
  }();
  return all;
}

bool digits_only(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "python3", "cu12", "pid4711".
bool counted(std::string_view word) {
  constexpr std::array<std::string_view, 5> kCounted = {"python", "cu", "cp", "rank", "x"};
  return std::ranges::any_of(kCounted, [&](std::string_view begin) {
    const auto rest = after_prefix(word, begin);
    return rest && !rest->empty() && digits_only(*rest);
  });
}

}  // namespace

bool is_common(std::string_view word) {
  const auto lower = to_lower(word);
  return digits_only(word) || words().contains(lower) || counted(lower);
}

}  // namespace distdoctor::capture
