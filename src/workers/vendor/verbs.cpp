// `vendor verbs`: opens each RDMA device as a program would, prepares a queue and memory, and
// gives all back. Prints Verbs.
#include <distdoctor/facts/verbs.h>

#include "base/fd.h"
#include "base/text.h"
#include "codec/write.h"
#include "workers/vendor/verb.h"
#include "workers/vendor/verbs_library.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::vendor {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr int kMostPorts = 16;

std::vector<int> active_ports(const VerbsLibrary& verbs, ibv::Context* context) {
  std::vector<int> active;
  for (int port = 1; port <= kMostPorts; ++port) {
    ibv::PortAttributes attributes{};
    if (verbs.query_port(context, static_cast<std::uint8_t>(port), &attributes) != 0) break;
    if (attributes.state == ibv::kPortActive) active.push_back(port);
  }
  return active;
}

void fail(VerbsDevice& device, std::string_view call) {
  device.step_error_code = errno;
  device.step_error = failed(call, device.step_error_code);
}

struct Block {
  std::size_t bytes;
  std::string_view call;
};
constexpr Block kBlocks[] = {{64 * kKiB, "ibv_reg_mr of 64 KiB"},
                             {4096 * kKiB, "ibv_reg_mr of 4 MiB"}};

// What counts as locked memory: the queue's pages, then the block.
void prepare(const VerbsLibrary& verbs, ibv::Context* context, VerbsDevice& device) {
  const Held<ibv::ProtectionDomain> domain(verbs.alloc_pd(context), verbs.dealloc_pd);
  if (domain == nullptr) return fail(device, "ibv_alloc_pd");
  constexpr int kEntries = 16;
  const Held<ibv::CompletionQueue> queue(verbs.create_cq(context, kEntries, nullptr, nullptr, 0),
                                         verbs.destroy_cq);
  if (queue == nullptr) return fail(device, "ibv_create_cq");
  for (const Block& block : kBlocks) {
    std::vector<char> memory(block.bytes);
    const Held<ibv::MemoryRegion> region(
        verbs.reg_mr(domain.get(), memory.data(), memory.size(), ibv::kLocalWrite), verbs.dereg_mr);
    if (region == nullptr) return fail(device, block.call);
    device.registered_bytes = static_cast<std::int64_t>(block.bytes);
  }
}

VerbsDevice look(const VerbsLibrary& verbs, ibv::Device* found) {
  VerbsDevice device{.name = found->name.data()};
  const Opened opened = open_device(verbs, found);
  if (opened.context == nullptr) {
    device.error_code = opened.error_code;
    device.error = failed("ibv_open_device", opened.error_code);
    return device;
  }
  device.active_ports = active_ports(verbs, opened.context.get());
  prepare(verbs, opened.context.get(), device);
  return device;
}

// What libibverbs writes to stderr, a file while this lives.
class Warnings {
 public:
  Warnings() : file_(::memfd_create("warnings", MFD_CLOEXEC)) { ::dup2(file_.get(), 2); }

  [[nodiscard]] std::vector<std::string> lines() const {
    std::string text(kMostWarnings, '\0');
    const auto length = ::pread(file_.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    std::vector<std::string> lines;
    for (const auto line : split_lines(text)) {
      if (!trim(line).empty()) lines.emplace_back(printable(trim(line)));
    }
    return lines;
  }

 private:
  static constexpr std::size_t kMostWarnings = 4096;
  Fd file_;
};

}  // namespace

int verbs(Arguments /*arguments*/) {
  const Warnings warnings;
  Verbs facts;
  if (const auto library = load_verbs()) {
    facts.library = library->path;
    const Devices devices(*library);
    for (int i = 0; i < devices.count(); ++i) {
      facts.devices.push_back(look(*library, devices.at(i)));
    }
  } else {
    facts.error = library.error().reason;
  }
  facts.warnings = warnings.lines();
  std::puts(codec::write_json(facts).c_str());
  return 0;
}

}  // namespace distdoctor::vendor
