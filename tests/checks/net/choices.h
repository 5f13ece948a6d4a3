// Other links and other choices for the rows of the checks of NCCL's and Gloo's interfaces.
#pragma once

#include "support/builders.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::testing {

inline Choice pick(const std::string& interface, std::string_view address) {
  return {interface, addr(address)};
}

inline void add_link(World& w,
                     std::size_t index,
                     const std::string& name,
                     std::string_view address,
                     LinkKind kind = LinkKind::ethernet) {
  Link link = make_link(name, 9, 1500, address);
  link.kind = kind;
  link.mac = "02:00:00:00:" + std::to_string(10 + index) + ":09";
  World::change(w.node(index).links, [&](std::vector<Link>& links) { links.push_back(link); });
}

// The first is the bootstrap's, too; none: NCCL finds no interface.
inline void nccl_takes(World& w, std::size_t index, const std::vector<Choice>& choices) {
  NcclChoice nccl{.net_socket = choices};
  if (choices.empty()) {
    nccl.bootstrap_error = "no socket interface found";
    nccl.net_socket_error = "no interface found";
  } else {
    nccl.bootstrap = choices.front();
  }
  w.prediction(index).nccl = nccl;
}

inline void gloo_takes(World& w,
                       std::size_t index,
                       const Choice& choice,
                       GlooReason reason = GlooReason::hostname) {
  w.prediction(index).gloo = GlooChoice{.devices = {choice}, .reason = reason};
}

inline void use_gloo(World& w, Use gloo = Use::yes) {
  w.cluster.job.nccl = Use::no;
  w.cluster.job.gloo = gloo;
}

inline void recommend(World& w, const std::string& name, const std::string& value) {
  w.cluster.predicted.recommended.env["*"][name] = value;
  w.cluster.predicted.recommended.reasons[name] = "all nodes meet there";
}

// How it went when one node dialled an address of another.
inline Dial& dialled(World& w,
                     std::size_t from,
                     std::size_t to,
                     std::string_view address,
                     Outcome outcome,
                     Purpose purpose = Purpose::nccl_bootstrap) {
  auto& dials = w.pair(from, to).dials;
  dials.push_back(good_dial(purpose, address, 40834, mgmt(from)));
  dials.back().outcome = outcome;
  dials.back().syn_arrived = {};
  return dials.back();
}

}  // namespace distdoctor::testing
