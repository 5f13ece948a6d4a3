// RDMA devices as sysfs shows them, and what a program needs to open them.
#pragma once

#include <distdoctor/facts/rdma.h>

#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::collect {

// "ACTIVE" of "4: ACTIVE", "LinkUp" of "5: LinkUp".
std::string parse_port_state(std::string_view text);
// Of "InfiniBand" and "Ethernet"; `other` of all else (EFA's is "Unspecified").
RdmaLayer parse_rdma_layer(std::string_view text);
// 100 of "100 Gb/sec (4X EDR)".
std::optional<double> parse_rdma_rate(std::string_view text);
// 28 of "0x1c"; 0 of what is no LID.
int parse_lid(std::string_view text);
// Empty of a zero one, which is an unused place of the table.
std::string parse_gid(std::string_view text);
// "mlx5" of "libmlx5-rdmav34.so", which libibverbs loads, or of "mlx5.driver", which names it.
std::string provider_of_file(std::string_view name);

}  // namespace distdoctor::collect
