#include "machine/netlink.h"

#include "base/deadline.h"

#include <fmt/format.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

namespace distdoctor::machine {
namespace {

// The kernel answers in microseconds, unless somebody holds its lock; a thread of its own waits.
constexpr std::chrono::seconds kPatience{5};

using Socket = std::unique_ptr<nl_sock, decltype([](nl_sock* sock) { nl_socket_free(sock); })>;
using Message = std::unique_ptr<nl_msg, decltype([](nl_msg* msg) { nlmsg_free(msg); })>;

struct Reception {
  const TakeMessage* take = nullptr;
  bool ended = false;
  int error = 0;  // an errno
};

int on_valid(nl_msg* message, void* argument) {
  auto& reception = *static_cast<Reception*>(argument);
  if ((*reception.take)(nlmsg_hdr(message))) return NL_OK;
  reception.ended = true;
  return NL_STOP;
}

int on_end(nl_msg* /*message*/, void* argument) {
  static_cast<Reception*>(argument)->ended = true;
  return NL_STOP;
}

int on_error(sockaddr_nl* /*from*/, nlmsgerr* error, void* argument) {
  auto& reception = *static_cast<Reception*>(argument);
  reception.error = -error->error;
  reception.ended = true;
  return NL_STOP;
}

std::unexpected<Error> refused(const NetlinkRequest& request, int errno_value) {
  return std::unexpected(errno_error("ask netlink for", request.what, errno_value));
}

void listen_to(nl_sock* socket, Reception& reception) {
  nl_socket_disable_seq_check(socket);
  nl_socket_disable_auto_ack(socket);
  nl_socket_modify_cb(socket, NL_CB_VALID, NL_CB_CUSTOM, on_valid, &reception);
  nl_socket_modify_cb(socket, NL_CB_FINISH, NL_CB_CUSTOM, on_end, &reception);
  nl_socket_modify_cb(socket, NL_CB_ACK, NL_CB_CUSTOM, on_end, &reception);
  nl_socket_modify_err_cb(socket, NL_CB_CUSTOM, on_error, &reception);
}

Result<void> send(nl_sock* socket, const NetlinkRequest& request) {
  const int flags = NLM_F_REQUEST | (request.dump ? NLM_F_DUMP : 0);
  const Message message(nlmsg_alloc_size(request.body.size() + 256));
  if (!message) return refused(request, ENOMEM);
  auto* const header = nlmsg_put(message.get(), NL_AUTO_PORT, NL_AUTO_SEQ, request.type, 0, flags);
  if (header == nullptr) return refused(request, ENOMEM);
  auto* const body = const_cast<char*>(request.body.data());
  if (nlmsg_append(message.get(), body, request.body.size(), NLMSG_ALIGNTO) != 0) {
    return refused(request, ENOMEM);
  }
  if (nl_send_auto(socket, message.get()) < 0) return refused(request, errno);
  return {};
}

}  // namespace

void netlink_append(std::string& body, int type, std::span<const std::uint8_t> value) {
  rtattr header{};
  header.rta_len = static_cast<unsigned short>(RTA_LENGTH(value.size()));
  header.rta_type = static_cast<unsigned short>(type);
  body += netlink_bytes(header);
  body.append(value.begin(), value.end());
  body.resize(NLMSG_ALIGN(body.size()));
}

Result<void> netlink_ask(const NetlinkRequest& request, const TakeMessage& take) {
  const Socket socket(nl_socket_alloc());
  if (!socket) return refused(request, ENOMEM);
  Reception reception{.take = &take};
  listen_to(socket.get(), reception);
  errno = 0;
  if (nl_connect(socket.get(), request.protocol) != 0) {
    return refused(request, errno != 0 ? errno : EPROTONOSUPPORT);
  }
  nl_socket_set_nonblocking(socket.get());
  DD_TRY(send(socket.get(), request));
  const auto deadline = Deadline::after(kPatience);
  while (!reception.ended) {
    pollfd readable{nl_socket_get_fd(socket.get()), POLLIN, 0};
    if (deadline.expired()) return refused(request, ETIMEDOUT);
    if (::poll(&readable, 1, deadline.remaining_ms()) <= 0) continue;
    const int status = nl_recvmsgs_default(socket.get());
    if (status == -NLE_DUMP_INTR) return refused(request, EINTR);
    if (status < 0 && status != -NLE_AGAIN && !reception.ended) return refused(request, EIO);
    if (!request.dump) reception.ended = reception.ended || status >= 0;
  }
  if (reception.error != 0) return refused(request, reception.error);
  return {};
}

std::string text_of(nlattr* attribute) {
  if (attribute == nullptr) return "";
  const std::string_view bytes(static_cast<const char*>(nla_data(attribute)),
                               static_cast<std::size_t>(nla_len(attribute)));
  return std::string(bytes.substr(0, bytes.find('\0')));
}

std::optional<std::uint32_t> number_of(nlattr* attribute) {
  if (attribute == nullptr) return std::nullopt;
  switch (nla_len(attribute)) {
    case 1:
      return nla_get_u8(attribute);
    case 2:
      return nla_get_u16(attribute);
    case 4:
      return nla_get_u32(attribute);
    default:
      return std::nullopt;
  }
}

std::optional<Address> address_of(nlattr* attribute) {
  const int length = attribute == nullptr ? 0 : nla_len(attribute);
  if (length != 4 && length != 16) return std::nullopt;
  Address address{.v6 = length == 16};
  std::memcpy(address.bytes.data(), nla_data(attribute), static_cast<std::size_t>(length));
  return address;
}

std::string mac_of(nlattr* attribute) {
  if (attribute == nullptr) return "";
  const auto* const bytes = static_cast<const std::uint8_t*>(nla_data(attribute));
  return fmt::format("{:02x}", fmt::join(bytes, bytes + nla_len(attribute), ":"));
}

}  // namespace distdoctor::machine
