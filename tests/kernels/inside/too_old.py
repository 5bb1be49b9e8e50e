# SPDX-License-Identifier: Apache-2.0
"""Where the kernel is too old for every tool, each says so itself, and what would do."""
import re
import subprocess

import harness
from harness import case, check, equal


def says_so():
    done = subprocess.run([harness.binary, *(["-b"] if harness.binary.name == "cudatop" else [])], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=60)
    equal(done.returncode, 1, f"exit status ({done.stderr})")
    check(re.search(r"this kernel \(5\.\d+.*\) is too old", done.stderr), done.stderr)


for name in re.search(r"^TOOLS *:= (.*)$", (harness.root / "Makefile").read_text(), re.M)[1].split():
    def run():
        says_so()
    run.__module__, run.__name__ = "too_old", name
    case(run, tool=name, timeout=60)
