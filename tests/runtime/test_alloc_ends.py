# SPDX-License-Identifier: Apache-2.0
"""gpualloc --exited: memory that processes held when they exited. Also helpers for --leaks."""
import os
from collections import Counter

import harness
import leftovers
import memory
import system
from harness import check, equal, wait_until
from memory import case
from programs import Tool, Workload

holding = "alloc a 1000; alloc b 2000 fn=cudaMallocHost; repeat 5; alloc c 300; end; alloc h 8192 fn=cuMemCreate\n"


def newest(tool):
    """Rows of the last complete interval, i.e. the last but one."""
    times = sorted({row["time"] for row in tool.rows})
    return [row for row in tool.rows if times[1:] and row["time"] == times[-2]]


def by_kind(rows, *names):
    out = Counter()
    for row in rows:
        for name in names:
            out[row["kind"], name] += row[name]
    return dict(out)


def leaks(**kinds):
    """Expected result of leaked(), from kind=(bytes, count)."""
    return {(kind, name): n for kind, both in kinds.items() for name, n in zip(("bytes", "allocations"), both)}


def leaked(tool):
    return by_kind(newest(tool), "bytes", "allocations")


def exits(tool, pid):
    """(bytes, count) of each exit of this process, and sums by stack from the lines after it."""
    mine = [e for e in tool.events if e["pid"] == pid]
    ends = [(e["held_bytes"], e["held_allocations"]) for e in mine if e["event"] == "exit"]
    stacks = by_kind([e for e in mine if e["event"] == "held"], "held_bytes", "held_allocations")
    equal(sum(n for (_, name), n in stacks.items() if name == "held_bytes"), sum(size for size, _ in ends), "bytes by stack")
    equal({e["kind"] for e in mine if e["event"] == "exit"}, {"all"} if ends else set(), "kinds in exit lines")
    if mine:
        equal(mine[0]["event"], "exit", "first line of an exit")
    return ends, stacks


def held(workload):
    """(bytes, count) that a workload held at its end, from the memory lines of its truth."""
    rows = [row for row in memory.truth_lines(workload, "memory") if row["holding"] in memory.memory]
    return sum(row["bytes"] for row in rows), sum(row["count"] for row in rows)


@case(asan=True, alone=True)
def memory_held_at_exit():
    """Each exit is reported once, with all memory that the process held. Some processes hold nothing, several exit at
    once, and one is killed."""
    texts = [holding, "alloc a 5000; free a", "threads 2; churn 500 keep held=50 fail=3; end", "alloc x 7 fn=cudaMallocManaged",
             "newcontext; alloc a 10; destroycontext; reserve R 4194304"]
    ending = [Workload(text + "; touch {dir}/%d; wait {dir}/end" % i) for i, text in enumerate(texts)]
    # The tool reads the stacks of running processes once a second: the victim sleeps longer than that before it is
    # killed.
    victim = Workload("alloc a 5000; alloc b 600 fn=cudaMallocHost; sleep 1500; touch {dir}/victim; wait {dir}/never")
    staying = Workload("alloc a 44; wait {dir}/later")
    tool = Tool("--exited", losses=True)  # it may lose stacks of unrelated processes
    for workload in [*ending, victim, staying]:
        workload.go()
    for name in [*map(str, range(len(texts))), "victim"]:
        wait_until((harness.here / name).exists, f"{name} exists")
    equal([e for e in tool.events if e["pid"] in {w.pid for w in [*ending, victim, staying]}], [], "exits of running processes")
    (harness.here / "end").touch()
    victim.process.kill()
    victim.process.wait()
    for workload in ending:
        workload.wait()
        wait_until(lambda: exits(tool, workload.pid)[0], f"the exit of {workload.pid} is reported")
        want = held(workload)
        ends, stacks = exits(tool, workload.pid)
        equal(ends, [want], f"held by {workload.pid}")
        equal(sum(n for (_, name), n in stacks.items() if name == "held_allocations"), want[1], "allocations by stack")
    equal(held(ending[1]), (0, 0), "memory of the process that freed everything")
    equal(exits(tool, ending[0].pid)[1], {("device", "held_bytes"): 2500, ("device", "held_allocations"): 6,
                                          ("pinned", "held_bytes"): 2000, ("pinned", "held_allocations"): 1,
                                          ("vmm", "held_bytes"): 8192, ("vmm", "held_allocations"): 1}, "memory by kind")
    wait_until(lambda: exits(tool, victim.pid)[0], "the exit of the killed process is reported")
    equal(exits(tool, victim.pid)[0], [(5600, 2)], "held by the killed process")
    (harness.here / "later").touch()
    staying.wait()
    wait_until(lambda: exits(tool, staying.pid)[0] == [(44, 1)], "the exit of the last process is reported")
    tool.stop()
    equal(len([e for e in tool.events if e["event"] == "exit" and e["pid"] in {w.pid for w in ending}]), len(ending), "number of exits")
    for e in tool.events:
        if e["pid"] == victim.pid and e["event"] == "held":
            check(any("workload::" in frame for frame in e["frames"]), f"no frame names a function of the workload: {e}")


@case
def traced_process_exits():
    """-p: the tool exits when its target exits. It reports the memory that the target held at exit, and earlier at its
    exec."""
    workload = Workload("alloc a 5000; alloc b 600 fn=cudaMallocHost; sleep 300; exec; alloc c 70; sleep 1500; end")
    tool = Tool("-p", workload.pid, "--exited")
    workload.go().wait()
    ends, stacks = exits(tool.finish(), workload.pid)
    equal(ends, [(5600, 2), (70, 1)], "memory held by both programs")
    equal(stacks["device", "held_bytes"], 5070, "device memory")


@case
def immediate_exit():
    """The target exits right after its calls, while they are still only in the kernel's table."""
    workload = Workload("alloc a 70")
    tool = Tool("-p", workload.pid, "--exited")
    workload.go().wait()
    equal(exits(tool.finish(), workload.pid)[0], [(70, 1)], "memory held at exit")


# --- state of exited processes is removed ----------------------------------------------------------------------------

tables = ("held", "held_bytes", "context_bytes", "physicals", "physical_handles", "mappings", "contexts", "captures")


def exited_pids_in(tool, name):
    return {pid for pid in leftovers.pids_in_map(tool, name) if not os.path.exists(f"/proc/{pid}")}


@case(timeout=180, alone=True, long=True)
def tables_after_1000_exits():
    """1000 processes hold memory of all kinds when they exit; afterwards neither tables nor rows contain any of
    them."""
    child = """newcontext; alloc a 1009; alloc b 500 fn=cuMemHostAlloc; alloc c 4096 fn=cuMemAllocAsync; alloc p 2097152 fn=cuMemCreate
    reserve R 4194304; map m handle=p at=R; capture begin stream=1"""
    some = Workload(f"fork; {child}; touch {{dir}}/one; wait {{dir}}/on; end; repeat 999; fork; {child}; end; end; alloc z 77\n"
                    "touch {dir}/all; wait {dir}/end", "workload-driver")
    tool = Tool("-i", "0.5", "--by", "pid,kind", "-r", 0)
    some.go()
    wait_until((harness.here / "one").exists, "the first process has allocated")
    first, = system.descendants(some.pid)
    for name in tables:
        check(first in leftovers.pids_in_map(tool, name), f"{name} has no entry of a running process")
    (harness.here / "on").touch()
    wait_until((harness.here / "all").exists, "all processes have exited", 120)
    for name in tables:
        exited = exited_pids_in(tool, name)  # the map is read only once, since unrelated processes may exit at any time
        wait_until(lambda: not exited & leftovers.pids_in_map(tool, name), f"{name} has no entry of exited processes")
    wait_until(lambda: {r["pid"]: r["live_bytes"] for r in newest(tool) if r["live_allocations"]}.get(some.pid) == 77, "the parent's row")
    wait_until(lambda: all(os.path.exists(f"/proc/{r['pid']}") for r in newest(tool) if r["live_allocations"]), "rows only of running processes")
    (harness.here / "end").touch()
    some.wait()
    tool.stop()
    pids = {row["pid"] for row in memory.truth_lines(some, "process")}
    equal(len(pids), 1001, "number of processes")
    mine = [row for row in tool.rows if row["pid"] in pids - {some.pid}]
    equal({kind: sum(row["released_bytes"] for row in mine if row["kind"] == kind) for kind in ("device", "pinned", "vmm")},
          {"device": 1009000, "pinned": 500000, "vmm": 2097152000}, "released bytes")
