#!/bin/bash
# glibc_limit.sh FILE none|VERSION: fails when FILE wants a symbol of a newer glibc than VERSION (of
# any libc at all: none), and says which.
set -eu
file=$1 limit=$2
wanted=$(objdump -T "$file" 2>/dev/null | sed -n 's/.*\*UND\*.*GLIBC_\([0-9.]*\)[) ]*\(.*\)/\1 \2/p')
if [ "$limit" = none ]; then
  if [ -n "$wanted" ]; then
    echo "$wanted"
    exit 1
  fi
  exit 0
fi
# A dynamic helper that wants nothing at all means that objdump could not read it.
[ -n "$wanted" ] || exit 1
echo "$wanted" | while read -r version symbol; do
  if [ "$(printf '%s\n%s\n' "$version" "$limit" | sort -V | tail -n 1)" != "$limit" ]; then
    echo "$symbol wants GLIBC_$version, newer than $limit"
    exit 1
  fi
done
