# SPDX-License-Identifier: Apache-2.0
"""Every tool of the suite loads, attaches in the best way of this kernel, counts exactly, and is gone afterwards."""
import os

import copies
import gaps
import graphs
import harness
import leftovers
import memory
import tops
import truth
import waits
from harness import case, check, equal
from programs import Tool, Workload

best = os.environ.get("GPUSNOOP_TIER")

# Two threads, and a child: a process of its own to those who trace all, and nobody to those who trace one.
script = """
launch vecadd 101 grid=3,2; threads 2; launch saxpy 53 stream=own; copy 17 bytes=70001; copy 5 fn=cudaMemset bytes=99; end
alloc a 10007; alloc b 4096; free b; copy 3 dst=a fn=cudaMemcpyAsync kind=1 stream=1; sync 7; sync 2 fn=cudaStreamQuery
capture begin stream=1; launch reduce 3 stream=1; capture end stream=1; graph 11; launch vecadd 3 result=719
graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 5; graph execdestroy X
fork; launch saxpy 29; alloc c 4097; copy 13 bytes=5; sync 3; end
"""


def launches(tool, workload):
    calls = [call for call in calls_of(tool, workload) if call["kind"] in ("kernel", "graph", "host")]
    truth.same_counts(tool, calls, by=("pid", "kernel"))


def copied(tool, workload):
    copies.same(tool, calls_of(tool, workload), by=("pid", "kind"))


def waited(tool, workload):
    waits.same_waits(tool, calls_of(tool, workload), by=("pid", "function", "wait"))


def allocated(tool, workload):
    calls = calls_of(tool, workload)
    memory.same_calls(tool, calls)
    if "-p" not in tool.arguments:
        memory.same_unfreed(tool, workload)


def graphed(tool, workload):
    graphs.same_graphs(tool, workload)


def topped(tool, workload):
    tops.same(tool, calls_of(tool, workload))


def timed(tool, workload):
    """Each thread that called has its time, which adds up, and waited for the device if it did."""
    calls = calls_of(tool, workload)
    threads = gaps.sums_by_thread(tool)
    callers = {call["tid"] for call in calls}
    equal(callers - set(threads), set(), f"threads that called, and {tool} does not have")
    for tid in {call["tid"] for call in calls if call["kind"] == "sync"}:
        check(threads[tid]["wait_ns"] > 0, f"{tid} waited: {threads[tid]}")


def spent(tool, workload):
    """No device is known here: what each process did. A graph's launch is one."""
    calls = [call for call in calls_of(tool, workload) if truth.layer_wanted(call, "driver")]
    for pid in {call["pid"] for call in calls}:
        its = [call for call in calls if call["pid"] == pid]
        launched = sum(truth.weight(call) for call in its if call["kind"] in ("kernel", "graph") and not call["recorded"])
        copied = sum(copies.sums(call, False)["bytes"] for call in its if copies.is_copy(call))
        row = next((row for row in tool.rows if row.get("pid") == pid), {})
        equal((row.get("launches"), row.get("copy_bytes")), (launched, copied), f"process {pid} in {tool}")


tools = {"cudatop": ([], topped), "cudalaunch": (["--by", "pid,kernel"], launches), "cudamemcpy": (["--by", "pid,kind", "-r", 0], copied),
         "cudasync": (["--by", "pid,api,wait"], waited), "gpualloc": (["--by", "pid,kind"], allocated),
         "cudagraph": ([], graphed), "cudagap": (["--by", "thread", "-r", 0], timed),
         "gpuspend": (["--by", "pid", "--nvml", "off"], spent)}


def calls_of(tool, workload):
    """What this tool should have seen."""
    calls = workload.truth()
    return [call for call in calls if "-p" not in tool.arguments or call["pid"] == workload.pid]


def exactly(name):
    arguments, same = tools[name]
    workload = Workload(script)
    # A library of another process that starts meanwhile is probed while its calls are under way.
    one, everything = Tool("-p", workload.pid, *arguments, losses=True), Tool(*arguments, losses=True)
    for tool in one, everything:
        equal({record["tier"] for record in tool.of_type("attached")}, {best}, f"how {tool} is attached")
    watch = Workload("launch vecadd 1", "workload-driver")
    workload.go().wait()
    one.finish()
    everything.stop()
    for tool in one, everything:
        equal(set(tool.lost) - {"ends_unmatched"}, set(), f"losses of {tool}")
        same(tool, workload)
    leftovers.check_no_breakpoints(watch.pid, "libcuda")
    equal(watch.process.poll(), None, "exit status of a process that was traced")
    equal(leftovers.stale_events({tool.pid for tool in (one, everything)}), [], "uprobe events")


for name in tools:
    def run(name=name):
        exactly(name)
    run.__module__, run.__name__ = "test_kernel_tools", name
    case(run, tool=name, timeout=180)


@case
def all_tools_are_here():
    """The list of tools is the Makefile's, but those that count no calls of CUDA, which have cases of their own."""
    makefile = (harness.root / "Makefile").read_text()
    listed = next(line for line in makefile.splitlines() if line.startswith("TOOLS")).split(":=")[1].split()
    check(set(listed) - set(tools) <= {"nvioctl", "ncclwait"}, f"no case for some of {listed}")
