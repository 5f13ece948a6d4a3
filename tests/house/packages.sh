#!/bin/bash
# need_packages where it may not install: it names what is missing, in one line, and goes on.
# The dpkg-query is a fake that knows g++ and cmake only.
set -u
cd "$(dirname "$0")/../.." || exit 1
fake=$(mktemp -d)
trap 'rm -rf "$fake"' EXIT
cat >"$fake/dpkg-query" <<'END'
#!/bin/sh
case $4 in g++ | cmake) echo 'install ok installed' ;; *) exit 1 ;; esac
END
chmod +x "$fake/dpkg-query"
export PATH=$fake:$PATH
# shellcheck source=packaging/packages.sh
. packaging/packages.sh
is_debian_12() { false; }
apt_install() { echo "installed $*"; }

said=$(need_packages build 2>&1) || exit 1
[[ $said == *"going on without these Debian 12 packages"*"ninja-build"* ]] || { echo "$said"; exit 1; }
[[ $said != *" g++ "* && $said != *"installed"* && $(wc -l <<<"$said") -eq 1 ]] || { echo "$said"; exit 1; }

is_debian_12() { true; }
id() { echo 0; }
said=$(need_packages fuzz 2>&1) || exit 1
[[ $said == *"installed clang-19 libclang-rt-19-dev"* ]] || { echo "$said"; exit 1; }
