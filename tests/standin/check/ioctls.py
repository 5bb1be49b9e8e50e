# SPDX-License-Identifier: Apache-2.0
"""ioctl calls without a driver: the truth file must match the script."""
import collections
import json
import os
import subprocess
import tempfile

import harness
from harness import Skip, check, environment, equal


def run(script, status=0):
    if os.geteuid():
        raise Skip("only root can make device nodes")
    if os.path.exists("/sys/module/nvidia/parameters/standin"):
        raise Skip("the stub driver is loaded")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([harness.build / "ioctls", "--truth", f"{folder}/truth", script], capture_output=True,
                              text=True, env=environment(TMPDIR=folder))
        equal(done.returncode, status, f"exit status of {script} ({done.stderr})")
        if status:
            return equal(set(os.listdir(folder)) - {"truth"}, set(), "files in its folder")
        equal(os.listdir(folder), ["truth"], "files in its folder")
        with open(f"{folder}/truth") as truth:
            return [json.loads(line) for line in truth]


def counts(rows, *fields):
    out = collections.Counter()
    for row in rows:
        if row["type"] == "ioctl":
            out[tuple(row[field] for field in fields)] += row["count"]
    return dict(out)


@check
def no_driver_is_called():
    rows = run("call RM_CONTROL 5 subject=7; call RM_FREE 2 device=nvidia0; ioctl nvidiactl 0xc01046ff 3; call NVKMS")
    equal(counts(rows, "device", "request", "errno", "status"),
          {("nvidiactl", "0xc020462a", 9, None): 5, ("nvidia0", "0xc0104629", 9, None): 2,
           ("nvidiactl", "0xc01046ff", 9, None): 3, ("nvidia-modeset", "0xc0106d00", 9, None): 1}, "calls")
    equal({row["driver"] for row in rows if row["type"] == "open"}, {False}, "open without a driver")


@check
def structures_are_reported():
    rows = run("""call RM_ALLOC 2 subject=0x40 bytes=4096; call RM_ALLOC 3 subject=0x50a0 bytes=8192 size=32; call RM_ALLOC subject=1 size=12
        call RM_ALLOC_MEMORY subject=0x71 bytes=4097; call RM_VID_HEAP_CONTROL subject=2 bytes=5; call RM_VID_HEAP_CONTROL subject=3 bytes=5
        call RM_ALLOC subject=0x3e bytes=3 params=unmapped; call RM_CONTROL arg=unmapped subject=4; call RM_MAP_MEMORY xfer=1 bytes=6""")
    equal(counts(rows, "command", "subject", "bytes", "virtual", "unreadable", "parameters_unreadable", "wrapped"), {
        (43, 0x40, 4096, False, False, False, False): 2, (43, 0x50a0, 8192, True, False, False, False): 3,
        (43, None, None, False, False, None, False): 1, (39, 0x71, 4097, False, False, None, False): 1,
        (74, 2, 5, False, False, None, False): 1, (74, 3, None, False, False, None, False): 1,
        (43, 0x3e, None, False, False, True, False): 1, (42, None, None, False, True, None, False): 1,
        (78, None, 6, False, False, None, True): 1}, "calls")


@check
def calls_are_reported_per_thread():
    rows = run("name first; call RM_FREE 3; threads 4; call RM_FREE 5; end; fork; name child; call RM_FREE 7; end; repeat 2; call RM_FREE; end")
    equal(sorted(counts(rows, "comm", "tid").values()), [5, 5, 5, 5, 5, 7], "calls of each thread")
    equal({row["comm"] for row in rows if row["type"] == "ioctl"}, {"first", "child"}, "names")


@check
def wrong_scripts_are_refused():
    for script in "call NOTHING", "jump", "call RM_FREE sideways=1", "call RM_FREE arg=soft", "killed 5; sleep 1; end":
        run(script, 2)
    run("open nothing", 1)
