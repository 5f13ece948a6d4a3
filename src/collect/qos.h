// What a RoCE port does with priorities: DCB as the kernel tells it, and the files that mlx5 of
// MLNX_OFED adds to sysfs ("Quality of Service (QoS)" and "Explicit Congestion Notification (ECN)"
// in NVIDIA's documents of MLNX_OFED 23.10).
#pragma once

#include <distdoctor/facts/network.h>
#include <distdoctor/observed.h>

#include "machine/machine.h"

#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::collect {

// "dscp" or "pcp" of /sys/class/net/IF/qos/trust; empty: neither, or both.
std::string parse_trust(std::string_view text);
// 106 of "Global tclass=106" in /sys/class/infiniband/DEVICE/tc/PORT/traffic_class; none: nothing
// is forced on all packets.
std::optional<int> parse_traffic_class(std::string_view text);

// Unsupported where nothing is told: no DCB, no such files. A card's firmware may keep the kernel
// waiting: once it was late, `late` says so, files alone are read, and where they tell nothing
// either it has timed out.
Observed<LinkQos> read_qos(const machine::Machine& machine,
                           const std::string& link,
                           std::optional<Unknown>& late);

}  // namespace distdoctor::collect
