# SPDX-License-Identifier: Apache-2.0
"""What a tool takes while nothing happens, by what it has set up and not by the clock: a busy machine changes nothing."""
import contextlib
import glob
import os
import re

import harness
from harness import case, check
from programs import Tool

tools = ("cudatop", "cudalaunch", "cudamemcpy", "cudasync", "gpualloc", "cudagraph", "cudagap", "ncclwait",
         "gpuspend")


def descriptors(pid):
    """What the kernel says of each open one."""
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError):  # what is open for a moment only
            with open(path) as file:
                yield file.read()


def wakes_up_seldom():
    running = Tool("-p", os.getpid(), losses=True)
    intervals = [int(seconds) + int(nanoseconds) / 1e9
                 for text in descriptors(running.pid)
                 for seconds, nanoseconds in re.findall(r"^it_interval: \((\d+), (\d+)\)", text, re.MULTILINE)]
    running.stop()
    name, periodic = harness.binary.name, [1 / interval for interval in intervals if interval]
    check(periodic, f"{name} has timers: {intervals}")
    check(sum(periodic) <= 10, f"{name} wakes up ten times a second at most by itself: {periodic}")


for tool in tools:
    def run():
        wakes_up_seldom()
    run.__module__, run.__name__ = "test_idle", tool
    case(run, tool=tool)
