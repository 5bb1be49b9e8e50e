# SPDX-License-Identifier: Apache-2.0
"""Each static tool counts exactly in a chroot that contains only the tool, /proc, /sys and /dev. The traced processes
and their libraries are outside of this chroot."""
import os
import pathlib
import shutil

import harness
import system
from driver_calls import Calls, same_calls
from harness import Skip, case, equal
from programs import Tool, Workload
from test_kernel_tools import best, script, tools


def alone_with(name):
    """Creates a chroot that contains only this tool. Returns a function that enters it, to be called in a child before
    exec."""
    static = harness.build / "static" / name
    if not static.exists():
        raise Skip(f"{static} does not exist: run make static")
    empty = harness.here / "empty"
    empty.mkdir()
    shutil.copy(static, empty)
    system.private_mounts()
    for folder in "proc", "sys", "dev":
        (empty / folder).mkdir()
        system.mount("/" + folder, empty / folder, None, system.MS_BIND | system.MS_REC)
    harness.binary = pathlib.Path("/", name)

    def enter():
        os.chroot(empty)
        os.chdir("/")
    return enter


def exactly(name):
    arguments, same = tools[name]
    enter = alone_with(name)
    workload = Workload(script)
    tool = Tool(*arguments, losses=True, preexec=enter)
    equal({record["tier"] for record in tool.of_type("attached")}, {best}, f"how {tool} is attached")
    workload.go().wait()
    tool.stop()
    equal(set(tool.lost) - {"ends_unmatched"}, set(), f"losses of {tool}")
    same(tool, workload)


for name in tools:
    def run(name=name):
        exactly(name)
    run.__module__, run.__name__ = "test_one_file", name
    case(run, tool=name, timeout=180)


@case(tool="nvioctl")
def nvioctl():
    """Counts calls by system call tracepoints, without a driver."""
    enter = alone_with("nvioctl")
    workload = Calls("call RM_CONTROL 101 subject=0x20800102; call RM_FREE 13; ioctl null 0xc020462a 7; fork; call RM_FREE 3; end")
    tool = Tool("--attach", "tracepoint", "-r", 0, preexec=enter)
    workload.go().wait()
    same_calls(tool.stop(), workload)
