# SPDX-License-Identifier: Apache-2.0
# Results of tests that are shell scripts, which source this file and end with "total".
# shellcheck shell=sh
passed=0 failed=0 skipped=0

# Each prints its argument; ok may have none. fail also prints the lines of a second argument.
ok() {
    passed=$((passed + 1))
    [ $# -eq 0 ] || echo "ok $1"
}
fail() {
    failed=$((failed + 1))
    echo "FAIL $1"
    [ -z "${2:-}" ] || printf '%s\n' "$2" | sed 's/^/     /'
}
skip() {
    skipped=$((skipped + 1))
    echo "skip $1"
}

# Prints the last line, and exits with 1 if anything failed.
total() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}
