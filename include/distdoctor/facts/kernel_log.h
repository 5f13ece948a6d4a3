// The kernel's ring buffer (man 2 syslog, SYSLOG_ACTION_READ_ALL): only lines that checks know.
#pragma once

#include <distdoctor/enum_names.h>

#include <string>
#include <vector>

namespace distdoctor {

struct KernelLine {
  double uptime_s = 0;    // since boot, as the kernel stamped it
  std::string text = {};  // without level and stamp
  bool operator==(const KernelLine&) const = default;
};

struct KernelLog {
  std::vector<KernelLine> lines = {};  // oldest first
  double oldest_s = 0;                 // where the buffer begins: what happened before is not known
  double now_s = 0;                    // uptime when it was read
  bool operator==(const KernelLog&) const = default;
};

template <class V, Is<KernelLine> T>
void fields(V& v, T& x) {
  v("uptime_s", x.uptime_s);
  v("text", x.text);
}
template <class V, Is<KernelLog> T>
void fields(V& v, T& x) {
  v("lines", x.lines);
  v("oldest_s", x.oldest_s);
  v("now_s", x.now_s);
}

}  // namespace distdoctor
