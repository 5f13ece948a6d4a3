// Texts of /proc, sysfs, /etc and getent: any bytes are facts or none, and never trouble.
#include "collect/accounts.h"
#include "collect/identity.h"
#include "collect/kernel.h"
#include "collect/libraries.h"
#include "collect/names.h"
#include "collect/nccl_library.h"
#include "collect/network.h"
#include "collect/processes.h"
#include "collect/rdma.h"
#include "collect/shm.h"
#include "machine/maps.h"
#include "machine/processes.h"
#include "machine/socket_rows.h"
#include "target.h"

#include <cstdlib>
#include <string_view>

namespace {

using namespace distdoctor;  // NOLINT(google-build-using-namespace): all of them are under test

void must(bool holds) {
  if (!holds) std::abort();
}

void read_processes(std::string_view text) {
  const auto stat = machine::parse_process_stat(text);
  must(!stat || !stat->state.empty());
  static_cast<void>(machine::parse_real_uid(text));
  static_cast<void>(machine::parse_command_line(text));
  must(!machine::parse_environment(text).contains(""));
  static_cast<void>(machine::parse_socket_link(text));
  static_cast<void>(collect::parse_ignores_hangup(text));
  for (const auto& path : machine::mapped_files(text)) must(path.starts_with('/'));
  const auto library = collect::mapped_library(text, "libnccl.so");
  must(library.empty() || library.starts_with('/'));
}

void read_network(std::string_view text) {
  must(machine::parse_proc_tcp(text).size() <= text.size());
  static_cast<void>(collect::parse_counter(text, "TcpExt", "ListenDrops"));
  static_cast<void>(collect::parse_arp_cache(text));
  const auto range = collect::parse_port_range(text);
  must(!range || (range->first > 0 && range->first <= range->second && range->second < 65536));
  const auto speed = collect::parse_speed(text, LinkKind::ethernet);
  must(!speed || *speed > 0);
}

void read_rdma(std::string_view text) {
  must(collect::parse_port_state(text).size() <= text.size());
  static_cast<void>(collect::parse_rdma_layer(text));
  const auto rate = collect::parse_rdma_rate(text);
  must(!rate || *rate > 0);
  must(collect::parse_lid(text) >= 0);
  const auto gid = collect::parse_gid(text);
  must(gid.empty() || gid == text);
  must(collect::provider_of_file(text).size() <= text.size());
}

void read_rest(std::string_view text) {
  static_cast<void>(collect::find_mount(text, "/dev/shm"));
  static_cast<void>(collect::mapped_segments(text));
  static_cast<void>(collect::parse_passwd(text));
  static_cast<void>(collect::parse_os_name(text));
  static_cast<void>(collect::container_of_cgroups(text));
  static_cast<void>(collect::parse_ahosts(text));
  static_cast<void>(collect::all_in_ld_cache(text, "libnccl.so.2"));
  static_cast<void>(collect::build_of_bytes(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_processes(text);
  read_network(text);
  read_rdma(text);
  read_rest(text);
  return 0;
}
