# Sourced by every suite: how results are counted. tests/run sums what stands in DISTDOCTOR_COUNTS.
# shellcheck shell=bash
# shellcheck source=packaging/packages.sh
. packaging/packages.sh

# count PASSED FAILED SKIPPED
count() { echo "$1 $2 $3" >>"${DISTDOCTOR_COUNTS:-/dev/null}"; }

# skip_suite WHY: ends the suite.
skip_suite() {
  echo "skipped: $*"
  count 0 0 1
  exit 0
}

# one_case NAME COMMAND...: one test case; its output is shown when it fails.
one_case() {
  local name=$1 log
  shift
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    count 1 0 0
    echo "ok      $name"
  else
    count 0 1 0
    echo "FAILED  $name"
    tail -n 60 "$log" | sed 's/^/        /'
  fi
  rm -f "$log"
}

# skip_case NAME WHY
skip_case() {
  count 0 0 1
  echo "skipped $1: $2"
}

# counted_case NAME COMMAND...: a program that runs many cases itself and ends in a line
# "N passed, N failed, N skipped". What it prints is shown as it comes.
counted_case() {
  local name=$1 log status line
  shift
  log=$(mktemp)
  "$@" 2>&1 | tee "$log" | sed 's/^/  /'
  status=${PIPESTATUS[0]}
  line=$(grep -E '[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$log" | tail -n 1)
  rm -f "$log"
  if [[ $line =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped ]]; then
    count "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
    if [ "$status" -eq 0 ] || [ "${BASH_REMATCH[2]}" -ne 0 ]; then return; fi
  fi
  echo "FAILED  $name: it ended with status $status and the line '$line'"
  count 0 1 0
}
