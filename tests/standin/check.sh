#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Self-test of the stand-in: check.sh [FOLDER] (default: build/standin).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec env PYTHONDONTWRITEBYTECODE=1 python3 "$here/check/main.py" "$(realpath "${1:-build/standin}")"
