# SPDX-License-Identifier: Apache-2.0
"""On a kernel that is too old, every tool reports this."""
import re
import subprocess

import harness
from harness import case, check, equal


def reports_old_kernel():
    done = subprocess.run([harness.binary, *(["-b"] if harness.binary.name == "cudatop" else [])], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=60)
    equal(done.returncode, 1, f"exit status ({done.stderr})")
    check(re.search(r"this kernel \(5\.\d+.*\) is too old", done.stderr), done.stderr)


for name in re.search(r"^TOOLS *:= (.*)$", (harness.root / "Makefile").read_text(), re.M)[1].split():
    def run():
        reports_old_kernel()
    run.__module__, run.__name__ = "too_old", name
    case(run, tool=name, timeout=60)
