#!/bin/bash
# tests/run over fake suites: what its last line and its status say.
set -u
cd "$(dirname "$0")/../.." || exit 1
suites=$(mktemp -d)
trap 'rm -rf "$suites"' EXIT
export DISTDOCTOR_SUITES=$suites
failures=0

fake() { printf '. tests/suites/common.sh\n%s\n' "$2" >"$suites/$1"; }
fake good 'one_case a true; count 2 0 1'
fake bad 'one_case a true; one_case b false'
fake absent 'skip_suite "no such machine"'
fake silent 'true'
fake dies 'count 3 0 0; exit 7'
fake counted 'counted_case x echo "4 passed, 0 failed, 2 skipped"'
fake lies 'counted_case x bash -c "echo 4 passed, 0 failed, 0 skipped; exit 1"'
fake mute 'counted_case x true'
fake words 'one_case "$*" [ "$*" = "full 60" ]'

# expect STATUS LINE ARGS...
expect() {
  local status line wanted=$1 wanted_line=$2
  shift 2
  line=$(bash tests/run "$@" 2>&1 | tail -n 1; exit "${PIPESTATUS[0]}")
  status=$?
  if [ "$status" != "$wanted" ] || [ "$line" != "$wanted_line" ]; then
    echo "tests/run $*: status $status, '$line'; expected $wanted, '$wanted_line'"
    failures=$((failures + 1))
  fi
}
expect 0 "3 passed, 0 failed, 1 skipped" good
expect 1 "4 passed, 1 failed, 1 skipped" good bad
expect 0 "3 passed, 0 failed, 2 skipped" good absent
expect 1 "0 passed, 1 failed, 0 skipped" silent
expect 1 "3 passed, 1 failed, 0 skipped" dies
expect 0 "4 passed, 0 failed, 2 skipped" counted
expect 1 "4 passed, 1 failed, 0 skipped" lies
expect 1 "0 passed, 1 failed, 0 skipped" mute
expect 0 "4 passed, 0 failed, 1 skipped" words full 60 good
expect 2 "tests/run: no suite 'nope'; there are: absent bad counted dies good lies mute silent words" nope
[ $failures -eq 0 ]
