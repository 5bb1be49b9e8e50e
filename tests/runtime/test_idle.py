# SPDX-License-Identifier: Apache-2.0
"""Wake-ups of idle tools, computed from their timers instead of measured, so that a busy machine does not matter."""
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
    """Contents of /proc/PID/fdinfo for each open descriptor."""
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError):  # a descriptor that was closed meanwhile
            with open(path) as file:
                yield file.read()


def few_wakeups():
    running = Tool("-p", os.getpid(), losses=True)
    intervals = [int(seconds) + int(nanoseconds) / 1e9
                 for text in descriptors(running.pid)
                 for seconds, nanoseconds in re.findall(r"^it_interval: \((\d+), (\d+)\)", text, re.MULTILINE)]
    running.stop()
    name, periodic = harness.binary.name, [1 / interval for interval in intervals if interval]
    check(periodic, f"{name} has timers: {intervals}")
    check(sum(periodic) <= 10, f"{name} has timers with more than 10 wake-ups a second: {periodic}")


for tool in tools:
    def run():
        few_wakeups()
    run.__module__, run.__name__ = "test_idle", tool
    case(run, tool=tool)
