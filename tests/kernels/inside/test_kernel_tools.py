# SPDX-License-Identifier: Apache-2.0
"""Every tool loads, attaches in this kernel's best way, counts exactly, and leaves nothing behind."""
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

# Two threads and a child. Tools that trace all processes count the child; tools with -p do not.
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
    """Each calling thread is reported, its times add up, and threads that synchronized have a wait time."""
    calls = calls_of(tool, workload)
    threads = gaps.sums_by_thread(tool)
    callers = {call["tid"] for call in calls}
    equal(callers - set(threads), set(), f"calling threads that {tool} does not report")
    for tid in {call["tid"] for call in calls if call["kind"] == "sync"}:
        check(threads[tid]["wait_ns"] > 0, f"thread {tid} has no wait time: {threads[tid]}")


def spent(tool, workload):
    """No GPU is known here, so only the activity of processes is checked. A graph launch counts as one launch."""
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
    """The calls that this tool should count."""
    calls = workload.truth()
    return [call for call in calls if "-p" not in tool.arguments or call["pid"] == workload.pid]


def check_counts(tool, workload, name):
    """The tool was attached in the best way, lost nothing, and counted exactly."""
    equal({record["tier"] for record in tool.of_type("attached")}, {best}, f"how {tool} is attached")
    equal(set(tool.lost) - {"ends_unmatched"}, set(), f"losses of {tool}")
    tools[name][1](tool, workload)


def each_tool(function):
    """Registers a case per tool, named after it."""
    for name in tools:
        def run(name=name):
            function(name)
        run.__module__, run.__name__ = function.__module__, name
        case(run, tool=name, timeout=180)


@each_tool
def counts_exactly(name):
    arguments, _ = tools[name]
    workload = Workload(script)
    # `everything` may attach to the library of `watch` during a call. The return of this call is then unmatched.
    one, everything = Tool("-p", workload.pid, *arguments, losses=True), Tool(*arguments, losses=True)
    watch = Workload("launch vecadd 1", "workload-driver")
    workload.go().wait()
    one.finish()
    everything.stop()
    for tool in one, everything:
        check_counts(tool, workload, name)
    leftovers.check_no_breakpoints(watch.pid, "libcuda")
    equal(watch.process.poll(), None, "exit status of a process that was traced")
    equal(leftovers.stale_events({tool.pid for tool in (one, everything)}), [], "uprobe events")


@case
def all_tools_are_here():
    """Covers all tools of the Makefile, except nvioctl and ncclwait, which do not count CUDA calls."""
    makefile = (harness.root / "Makefile").read_text()
    listed = next(line for line in makefile.splitlines() if line.startswith("TOOLS")).split(":=")[1].split()
    check(set(listed) - set(tools) <= {"nvioctl", "ncclwait"}, f"no case for some of {listed}")
