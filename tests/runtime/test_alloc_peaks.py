# SPDX-License-Identifier: Apache-2.0
"""gpualloc: peak memory, and space in its tables for new allocations."""
import memory
from harness import equal
from memory import case
from programs import Tool, Workload

two = 2097152

scripts = {
    "churn": "churn 3000 held=100 fail=5 fn=cuMemAlloc_v2,cuMemAllocPitch_v2,cuArrayCreate_v2,cuMemAllocAsync,cuMemCreate,cuMemHostAlloc",
    "contexts": "newcontext; alloc a 5000; newcontext; alloc b 700; destroycontext; alloc c 10; free a; destroycontext; alloc d 3000\n"
                "newcontext; alloc e 2000 fn=cuMemAllocAsync; alloc f 900; destroycontext; alloc g 4000; free e; alloc h 2900",
    "reset": "newcontext; alloc a 5000; destroycontext; alloc b 6000; alloc p 70 fn=cuMemAllocAsync; reset; launch scale 1; alloc c 100",
    "physical": f"reserve R {8 * two}; alloc a {two} fn=cuMemCreate; map m handle=a at=R; free a; alloc b {two} fn=cuMemCreate; free b\n"
                f"unmap m; alloc c {two} fn=cuMemCreate; free c; alloc d 8192 fn=cuMemCreate location=host",
    "failing": "alloc a 1000; free a result=1; alloc b 500; free a; alloc c 900; alloc z 100000 result=2",
    "not_on_the_device": "alloc a 1000 fn=cuMemHostAlloc; alloc b 2000 fn=cuMemAllocManaged; alloc c 30; free c; alloc d 29",
    "graph": "capture begin stream=1; alloc g 4096 fn=cuMemAllocAsync stream=1; capture end stream=1; alloc b 80",
}


@case(each=scripts, asan=True)
def peaks(script):
    """The peak of the whole run equals the stand-in driver's, although memory has been freed since."""
    # The workload creates no context before tracing.
    workload = Workload("touch {up}; wait {go}\n" + script, "workload-driver", warm=False).ready()
    tool = Tool("-p", workload.pid)
    workload.go().wait()
    peak, = memory.truth_lines(workload, "peak")
    row, = tool.finish().rows
    equal((row["peak_bytes"], row["approximate"]), (peak["bytes"], 0), "peak")
    left = sum(each["bytes"] for each in memory.truth_lines(workload, "memory") if each["holding"] in memory.on_device)
    equal(row["live_bytes"] + row["released_bytes"] - sum(each["bytes"] for each in memory.truth_lines(workload, "released")), left, f"{row}")


@case
def peaks_of_each_program():
    """The peak starts from zero after exec."""
    workload = Workload("alloc a 50000; free a; alloc b 600; sleep 300; exec; alloc c 70; free c; alloc d 30; sleep 1500; end")
    tool = Tool("-p", workload.pid, "-i", "0.2")
    workload.go().wait()
    # The row of the interval with the exec has no peak.
    seen = {row["peak_bytes"] for row in tool.finish().rows if "peak_bytes" in row}
    equal(sorted(seen), [70, 50000], "peaks")


@case(asan=True)
def table_space_is_reused():
    """Entries of memory that was released with its context are reused: over time, the workload makes more allocations
    than the table holds."""
    workload = Workload("repeat 7; newcontext; repeat 250; alloc a 64; end; destroycontext; sleep 1300; end; alloc b 5",
                        "workload-driver")
    tool = Tool("-p", workload.pid, "--live-entries", 1024)
    workload.go().wait()
    row, = tool.finish().rows
    equal([row[name] for name in ("allocs", "released", "live_allocations", "live_bytes", "untracked", "approximate")],
          [1751, 1750, 1, 5, 0, 0], f"{row}")
