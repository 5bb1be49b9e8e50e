# SPDX-License-Identifier: Apache-2.0
"""Each static tool counts exactly in a chroot that contains only the tool, /proc, /sys and /dev. The traced processes
and their libraries are outside of this chroot."""
import os
import pathlib
import shutil

import harness
import system
from driver_calls import Calls, same_calls
from harness import Skip, case
from programs import Tool, Workload
from test_kernel_tools import check_counts, each_tool, script, tools


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


@each_tool
def counts_exactly(name):
    enter = alone_with(name)
    workload = Workload(script)
    tool = Tool(*tools[name][0], losses=True, preexec=enter)
    workload.go().wait()
    check_counts(tool.stop(), workload, name)


@case(tool="nvioctl")
def nvioctl():
    """Counts calls by system call tracepoints, without a driver."""
    enter = alone_with("nvioctl")
    workload = Calls("call RM_CONTROL 101 subject=0x20800102; call RM_FREE 13; ioctl null 0xc020462a 7; fork; call RM_FREE 3; end")
    tool = Tool("--attach", "tracepoint", "-r", 0, preexec=enter)
    workload.go().wait()
    same_calls(tool.stop(), workload)
