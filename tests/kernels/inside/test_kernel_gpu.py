# SPDX-License-Identifier: Apache-2.0
"""The finding "xid" of tests/gpu, tested with the stub of NVIDIA's kernel driver."""
import re
import subprocess
import sys

import harness
from harness import case, check
from test_kernel_driver import load

gpu = harness.root / "tests/gpu"


@case(tool="nvioctl", timeout=120)
def xid():
    """tests/gpu/rehearse covers the other findings, but not this one, which needs a kernel with kprobes and modules."""
    sys.path.append(str(gpu))
    import findings
    load("575.51.02")
    build = harness.here / "build"
    subprocess.run([gpu / "rehearsal/pose", build / "standin", harness.standin], check=True)
    (build / "standin/libcuda.so.1").symlink_to(harness.standin / "libcuda.so.1")
    (build / "nvioctl").symlink_to(harness.build / "nvioctl")
    (what, value), = findings.xid(findings.Given(build, None, None, None))
    calls = re.fullmatch(r"31 [^,]+, (\d+) calls before it", value)
    check(calls and int(calls[1]) >= 4, f"{what}: {value}")
