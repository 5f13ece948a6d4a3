# Sourced by packaging/quickstart and tests/run: which Debian packages each job needs, and their
# installation where that is ours to do (Debian 12, root).
# shellcheck shell=bash

packages_of() {
  case $1 in
    build) echo g++ cmake ninja-build pkg-config libfmt-dev libcli11-dev libtomlplusplus-dev \
      nlohmann-json3-dev libnl-3-dev libnl-route-3-dev libnl-idiag-3-dev libgloo-dev ;;
    unit) echo doctest-dev iproute2 procps ethtool nftables iptables python3 python3-jsonschema ;;
    cli) echo binutils python3 python3-jsonschema ;;
    lab) echo iproute2 iputils-ping iputils-arping procps ethtool openssh-server openssh-client \
      nftables iptables ufw firewalld dbus-daemon conntrack python3 python3-jsonschema python3-torch ;;
    rdma) echo qemu-system-x86 busybox-static cpio kmod python3 openssh-server openssh-client iproute2 nftables procps \
      rdma-core ibverbs-utils ibverbs-providers libibverbs1 ;;
    bisect) echo doctest-dev iproute2 procps openssh-server openssh-client findutils python3 ;;
    lint) echo doctest-dev git clang-19 clang-format-19 clang-tidy-19 shellcheck ;;
    fuzz) echo clang-19 libclang-rt-19-dev ;;
    bench) echo iproute2 procps ethtool nftables openssh-server openssh-client python3 iperf3 ;;
  esac
}

# Prints those of its arguments that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

is_debian_12() {
  # shellcheck disable=SC1091
  [ -r /etc/os-release ] && (. /etc/os-release && [ "${ID-}:${VERSION_ID-}" = debian:12 ])
}

# No package may start a daemon (sshd, firewalld) only because a test wants its program.
apt_install() {
  local policy=/usr/sbin/policy-rc.d made='' log status=0
  log=$(mktemp)
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy && made=1
  fi
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq update && apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install "$@"; } \
    >"$log" 2>&1 </dev/null || status=$?
  if [ -n "$made" ]; then rm -f $policy; fi
  if [ $status -ne 0 ]; then tail -n 5 "$log" >&2; fi
  rm -f "$log"
  return $status
}

# need_packages GROUP...: installs what is missing, or names it and goes on with what is there.
need_packages() {
  local wanted missing group
  wanted=$(for group in "$@"; do packages_of "$group"; done)
  # shellcheck disable=SC2086
  if ! command -v dpkg-query >/dev/null; then
    echo "distdoctor: not a Debian system; wanted here: $(echo $wanted)" >&2
    return 0
  fi
  # shellcheck disable=SC2086
  missing=$(missing_packages $wanted | tr '\n' ' ')
  if [ -z "$missing" ]; then return 0; fi
  if ! is_debian_12 || [ "$(id -u)" -ne 0 ]; then
    echo "distdoctor: going on without these Debian 12 packages (install them as root): $missing" >&2
    return 0
  fi
  echo "distdoctor: installing $missing" >&2
  # shellcheck disable=SC2086
  apt_install $missing || echo "distdoctor: apt-get failed; going on with what is there" >&2
}

# Configures and builds one preset, quietly; on failure the end of the log is shown.
# build_preset PRESET [TARGET...]
build_preset() {
  local preset=$1 log status=0
  shift
  log=$(mktemp)
  {
    cmake --preset "$preset" \
      ${CMAKE_CXX_COMPILER_LAUNCHER:+-DCMAKE_CXX_COMPILER_LAUNCHER="$CMAKE_CXX_COMPILER_LAUNCHER"} &&
      cmake --build "build/$preset" ${1:+--target "$@"}
  } >"$log" 2>&1 || status=$?
  if [ $status -ne 0 ]; then grep -E 'error|FAILED|not found|CMake Error' -A 3 "$log" | head -n 60 >&2; fi
  rm -f "$log"
  return $status
}

if [ -z "${CMAKE_CXX_COMPILER_LAUNCHER-}" ] && command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_NOHASHDIR=1
  # A precompiled header is only cached when these are declared harmless; they are, by our build.
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros}
fi
