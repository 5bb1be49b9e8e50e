# SPDX-License-Identifier: Apache-2.0
"""Default tables fit a terminal. tests/unit/golden tests columns, and usage_test.cpp wrong ones."""
import harness
from driver_calls import Calls
from harness import case, check
from programs import Tool, Workload

widest = 100
tools = (["cudatop", "-b"], ["cudalaunch"], ["cudamemcpy"], ["cudasync"], ["gpualloc"], ["cudagraph"],
         ["cudagraph", "--summary"], ["cudagap"])


def start(name, *arguments):
    harness.binary = harness.build / name
    return Tool(*arguments, json=False, losses=True)


def check_table(tool):
    lines = [line for line in tool.finish().text.splitlines() if line]
    check(len(lines) >= 2, f"no table of {tool}: {lines}")
    check(max(map(len, lines)) <= widest, f"wider than {widest} columns: {lines}")


@case(tool="cudatop")
def default_tables():
    workload = Workload("""
    launch vecadd 101 grid=3,2; copy 17 bytes=70001; alloc a 10007; free a; sync 7; graph create G; graph add G kernel 3
    graph instantiate G X; graph launch X 5; graph update X G update_result=8; graph execdestroy X
    """)
    started = [start(name, "-p", workload.pid, *arguments) for name, *arguments in tools]
    workload.go().wait()
    for tool in started:
        check_table(tool)


@case(tool="nvioctl")
def default_table_of_nvioctl():
    calls = Calls("call RM_CONTROL 101 subject=0x20800102; call RM_FREE 3")
    tool = start("nvioctl", "-p", calls.pid, "--attach", "tracepoint")
    calls.go().wait()
    check_table(tool)
