# SPDX-License-Identifier: Apache-2.0
"""Return probes: returns of calls outside the filter, or of calls without usable data, are neither counted nor reported
as lost."""
import copies
import harness
import memory
import system
import tops
import waits
from harness import equal
from programs import Tool, Workload

everything = """
newcontext; launch vecadd 3; copy 3; sync 3; alloc a 1000; free a; freenull; freenull fn=cuMemFreeHost; alloc p 2097152 fn=cuMemCreate; free p
graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 3; graph execdestroy X; graph destroy G
capture begin; launch vecadd 2 stream=1; capture end C; destroycontext; reset
"""

tiers = {tier: tier for tier in ("session", "multi", "tracefs")}


def calls_outside_the_filter(tier, *arguments):
    system.need_tier(tier)
    needle, hay = (Workload(f"name {name}; {everything}", "workload-driver") for name in ("needle", "hay"))
    tool = Tool("-n", "needle", "--by", "pid", "--attach", tier, *arguments)
    for workload in needle, hay:
        workload.go().wait()
    tool.stop()  # a loss fails the case
    equal({row["pid"] for row in tool.rows}, {needle.pid}, "processes")


@harness.case(each=tiers)
def launches(tier):
    calls_outside_the_filter(tier, "-l")


@copies.case
def copy_calls():
    calls_outside_the_filter("multi", "-l")


@waits.case
def waiting_calls():
    calls_outside_the_filter("multi")


@memory.case
def allocations():
    calls_outside_the_filter("multi")


# The process's first call, and calls with a structure that cannot be read.
first_and_unreadable = """
touch {up}; wait {go}
alloc a 4096; repeat 3; alloc b 2097152 fn=cuMemCreate params=unreadable result=1; end; copy 5 dst=a; free a
"""


def trace_unreadable(tier, *arguments):
    """Runs the script. Only the unreadable structures may be reported as lost."""
    system.need_tier(tier)
    workload = Workload(first_and_unreadable, "workload-driver", warm=False).ready()
    tool = Tool("-p", workload.pid, "--attach", tier, *arguments, losses=True)
    workload.go()
    truth = workload.truth()
    tool.finish()
    equal(set(tool.lost), {"arguments_unreadable"}, "losses")
    return tool, truth


@copies.case
def first_calls_and_unreadable_structures():
    tool, _ = trace_unreadable("tracefs", "--by", "memory")
    equal(sum(row["copies"] for row in tool.rows), 5, "copies")
    equal({row["destination"] for row in tool.rows}, {"device"}, "destinations")
    equal(tool.lost["arguments_unreadable"], 3, "unreadable structures")


@tops.case
def all_first_calls_and_unreadable_structures():
    tool, truth = trace_unreadable("session")
    tops.same(tool, truth)
