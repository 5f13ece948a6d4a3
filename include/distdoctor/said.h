// A variable in force on a node, or its absence, as evidence shows it.
#pragma once

#include <distdoctor/setting_text.h>
#include <distdoctor/views.h>

#include <string>

namespace distdoctor {

// "NCCL_SOCKET_IFNAME=^docker0 (--env)", or that nothing was set.
inline std::string said(const Prediction& prediction, const std::string& name) {
  const Setting* setting = find_setting(prediction, name);
  return setting == nullptr ? name + " not set" : name + "=" + setting_text(*setting);
}

inline std::string see_setting(const Prediction& prediction, const std::string& name) {
  const Setting* setting = find_setting(prediction, name);
  return setting == nullptr ? "printenv " + name : setting_command(name, *setting);
}

}  // namespace distdoctor
