# SPDX-License-Identifier: Apache-2.0
"""cudatop: each call is counted exactly once in every column that it concerns."""
import json
import mmap
import os
import signal
import subprocess

import copies
import graphs
import harness
import leftovers
import system
import tops
import waits
from containers import Cgroup, Container, HostRoot, Image, Name, kubepods
from harness import check, equal, wait_until
from programs import Workload
from test_waits import every
from truth import Rows
from tops import Tool, case, modes, same, same_live, same_sums, trace_top

launching = """
launch vecadd 101; launch saxpy 17 result=700; launch apply 5 runtime_result=35; hostfunc 9; hostfunc 3 result=1
build reduce 3; graph 5; graph 2 result=1; graph 4 fn=cuGraphLaunch
launch scale 13 fn=cuLaunchCooperativeKernelMultiDevice devices=3
threads 4; launch vecadd 53; launch saxpy 11 fn=cuLaunchKernelEx; end
"""
copying = """
alloc d 200000; alloc e 200000
copy 7; copy 5 fn=cudaMemcpyAsync src=d dst=e bytes=100000 stream=1; copy 3 kind=2 bytes=70001; copy 2 result=700
copy 4 fn=cuMemcpyDtoHAsync_v2 result=719; copy 6 fn=cuMemsetD8_v2; copy 2 fn=cuMemcpyBatchAsync sizes=100,65536,3
threads 3; copy 11 fn=cuMemcpyHtoD_v2; end
"""
capturing = """
capture begin; launch reduce 3 stream=1; copy 2 fn=cudaMemcpyAsync stream=1; capture end; graph 7
graph create G; graph add G kernel 4; graph add G memcpy 2; graph instantiate G X; graph launch X 6
"""
waiting = """
sync 5; sync 9 fn=cudaStreamQuery result=600; sync 3 fn=cuEventQuery result=700; sync 4 fn=cuStreamSynchronize result=719
"""
holding = """
alloc a 1009; alloc b 2003 fn=cuMemAllocAsync; alloc c 4096 fn=cudaMallocHost; alloc f 2097152 fn=cuMemCreate
alloc z 77 result=2; alloc z 5 result=1; free a result=1; free a; free c result=400; alloc g 3001 fn=cudaMallocManaged
threads 4; churn 50 keep; end
"""


@case(each=modes, asan=True)
def every_column(mode):
    """All columns, over several intervals. A value that is not traced is missing from the row instead of 0."""
    script = launching + copying + waiting + holding + "sleep 300\n" + launching
    if "--cheap" in mode:  # does not track memory, so the direction of a batch is unknown
        script = script.replace("copy 2 fn=cuMemcpyBatchAsync sizes=100,65536,3", "")
    else:
        script += capturing
    tool, _ = trace_top(script, *mode, "-i", "0.2")
    for row in tool.rows:
        if "--cheap" in mode:
            equal([key for key in tops.never_cheap if key in row], [], f"figures that are not traced, in {row}")
        if "-l" not in mode or row["by"] != "pid" or row["launches"]:  # failed calls take time, too
            equal("launch_p99_ns" in row, "-l" in mode and row["by"] == "pid", f"latency in {row}")


# Calls of functions that count in two columns: on many threads, with failures, and nested.
calls_in_two_columns = "threads 32; repeat 3; copy 5; alloc .a 4096; copy 2 kind=2; sync 3; free .a; hostfunc 2; launch vecadd 3\n" \
                       "copy 1 result=1; sync 1 fn=cuStreamQuery result=600; alloc .b 64 fn=cudaMallocHost; free .b; end; end\n"


@case(each={"default": [], "latency": ["-l"]}, asan=True)
def two_columns(mode):
    """A synchronous copy counts as a copy and as a wait; a free may count as a wait. No call is lost, and an error
    counts once."""
    every_wait = every(waits.driver_syncs, waits.driver_copies, waits.driver_frees)
    trace_top(calls_in_two_columns + every_wait, *mode)


@case
def at_the_driver():
    """Every copy function of the driver, without a runtime."""
    functions = copies.callable_functions("driver")
    trace_top(copies.steps(functions), form="workload-driver")


# Captures and instantiations, some on several threads. Two captures and one instantiation fail.
making = """
threads 3; repeat 20; capture begin stream=own; launch scale 2 stream=own; capture end .G stream=own; graph instantiate .G .X
graph instantiate .G .Y; graph launch .X 3 stream=own; graph execdestroy .X; graph execdestroy .Y; graph destroy .G; end; end
capture begin stream=1; launch scale 3 stream=1; sync 1 fn=cuStreamSynchronize stream=1; capture end G stream=1
capture begin stream=1; launch scale 3 stream=1; sync 1 fn=cuStreamSynchronize stream=1; capture end G stream=1
graph create H; graph add H kernel 4; graph instantiate H X; graph instantiate H Z result=2; sleep 200; build reduce 3; graph 5
"""


@case(asan=True)
def captures_and_instantiations():
    """Only the driver is traced. Failed captures and instantiations are errors."""
    workload = Workload(making, "workload-driver")
    tool = Tool("-p", workload.pid, "-i", "0.1")
    workload.go()
    truth = workload.truth()
    tool.finish()
    tops.same_graphs_made(tool, workload)
    same_sums(tool)
    ended = [call for call in graphs.calls(workload) if call["kind"] in ("end", "instantiate")]
    failed = sum(call["count"] for call in ended if call["result"])
    check(failed == 3 and tops.graphs_made(tops.rows(tool))["instantiates"] > 120, f"not 3 failures, or too few instantiations: {failed}")
    want = tops.expected(truth)
    waits_failed = want.get((workload.pid, "errors"), 0)
    equal(tops.found(tops.rows(tool)), want | {(workload.pid, "errors"): failed + waits_failed}, "other figures, and errors")


@case(each={tier: tier for tier in ("session", "multi", "tracefs")})
def tiers_are_equal(tier):
    system.need_tier(tier)
    tool, _ = trace_top(launching + copying + capturing + waiting + holding + calls_in_two_columns, "-l", "--attach", tier)
    equal({record["tier"] for record in tool.of_type("attached")}, {tier}, "tier")


@case
def several_processes():
    """Workloads of every form at once; another process is not counted."""
    forms = ("workload", "workload13", "workload-static", "workload-static-stripped", "workload-nopie")
    script = launching.replace("fn=cuLaunchCooperativeKernelMultiDevice devices=3", "") + copying + waiting + holding
    workloads = [Workload(script.replace("101", str(100 + i)), form) for i, form in enumerate(forms)]
    other = Workload(script)
    tool = Tool("-p", ",".join(str(workload.pid) for workload in workloads))
    for workload in (*workloads, other):
        workload.go()
    truth = [call for workload in workloads for call in workload.truth()]
    other.wait()
    tool.finish()
    same(tool, truth)
    same_live(tool, *workloads)
    equal(max(row["traced_processes"] for row in same_sums(tool)), len(forms), "processes")
    equal({row["pid"] for row in tops.rows(tool)}, {workload.pid for workload in workloads}, "processes")


@case
def another_process_counts_nothing():
    quiet, busy = Workload("wait {dir}/end"), Workload(launching + copying)
    tool = Tool("-p", quiet.pid, "-i", "0.2")
    quiet.go(), busy.go().wait()
    tool.stop()
    equal({row["pid"] for row in tops.rows(tool)}, {quiet.pid}, "rows")
    equal(tops.found(tops.rows(tool)), {}, "figures in the rows")
    equal({row["probe_hits_per_second"] for row in same_sums(tool)}, {0}, "probe hits")


@case
def graphs_instantiated_before_tracing():
    """The number of kernels in graphs instantiated before tracing is unknown, so it is missing instead of 0."""
    workload = Workload("touch {up}; build reduce 3; touch {dir}/built; wait {go}; graph 5", "workload-driver", warm=False)
    wait_until((harness.here / "built").exists, "the graph is built")
    tool = Tool("-p", workload.pid)
    workload.go().wait()
    row, = (row for row in tops.rows(tool.finish()) if row["graph_launches"])
    equal((row["graph_launches"], row["graphs_unknown"]), (5, 5), "launches of the graph")
    check(not {"graph_kernels", "graph_kernels_per_second"} & row.keys(), f"a number of kernels, although it is unknown: {row}")


@case
def rows_by():
    """All groupings have the same sum, and each row has all fields that are known for its calls."""
    script = (launching + copying + waiting + holding + "device 1; launch scale 7; copy 3; sync 2; alloc k 999\n"
              "threads 2; launch reduce 19; copy 5; end")
    workload = Workload(script)
    views = {"pid": ("pid",), "thread": ("pid", "tid"), "kernel": (), "device": ()}
    tools = {by: Tool("-p", workload.pid, "--by", by) for by in views}
    workload.go()
    truth = workload.truth()
    for by, tool in tools.items():
        tool.finish()
        same(tool, truth, views[by])
        equal({row["by"] for row in tool.rows} - {"diagnosis"}, {"total", by}, "kinds of rows")
        held = sum(row["live_bytes"] for row in same_sums(tool)[-1:])
        equal(held, sum(tops.live(tops.rows(tools["pid"])).values()), f"{tool}: memory held")
    same_live(tools["pid"], workload)
    by_kernel = {}
    for call in truth:
        if call["layer"] == "driver" and call["kind"] == "kernel" and not call["recorded"]:
            by_kernel[call["demangled"]] = by_kernel.get(call["demangled"], 0) + call["count"] * call["kernels"]
    named = Rows(truth).count(tops.rows(tools["kernel"]), ("kernel",))
    equal({key[0]: n for key, n in named.items() if key[1] == "launches"}, by_kernel, "launches by kernel")


@case(alone=True)
def filter_by_name():
    """Processes with other names have no row and are counted nowhere, whatever memory and contexts they create."""
    script = "wait {go}; newcontext; alloc a 1000; launch vecadd 3; copy 3; touch {dir}/made; wait {dir}/end"
    needle, hay = (Workload(f"touch {{up}}; name {name}; {script.replace('made', name)}", "workload-driver", warm=False)
                   for name in ("needle", "hay"))
    tool = Tool("-n", "needle", "-i", "0.2")
    for workload in needle.ready(), hay.ready():
        workload.go()
    wait_until(lambda: all((harness.here / name).exists() for name in ("needle", "hay")), "both have called")
    idle = lambda: [row for row in tops.rows(tool) if row["pid"] == needle.pid and not row["launches"]]
    wait_until(lambda: len(idle()) > 1, "rows without calls")
    (harness.here / "end").touch()
    truth = needle.truth()
    hay.wait()
    tool.stop()
    same(tool, truth)
    equal({row["pid"] for row in tops.rows(tool)}, {needle.pid}, "processes")
    equal(max(row["traced_processes"] for row in same_sums(tool)), 1, "traced processes")


@case(alone=True)
def pods():
    """Rows of pods and of containers are the sums of their processes."""
    host, image, name, other = HostRoot(), Image(), Name(), Name()
    second = Name(pod=name.pod, namespace=name.namespace, pod_uid=name.pod_uid)
    for each in (name, second, other):
        host.kubelet(each)
    inside = [Container(launching + copying + f"copy {i + 1}; alloc h {1000 * (i + 1)}", image=image,
                        cgroups=[Cgroup("v2", kubepods(each))]) for i, each in enumerate((name, second, other))]
    target = ",".join(str(workload.pid) for workload in inside)
    tools = {by: Tool("-p", target, "--by", by, "--host-root", host.path, preexec=host.enter)
             for by in ("pod", "container", "namespace", "pid")}
    for workload in inside:
        workload.go()
    truth = [workload.truth() for workload in inside]
    for by, tool in tools.items():
        tool.finish()
        equal(tops.found(tops.rows(tool), ()), tops.expected([c for calls in truth for c in calls], ()), f"{tool}: sum")
        same_sums(tool)
    for by, key, groups in (("pod", "pod_uid", {name.pod_uid: truth[0] + truth[1], other.pod_uid: truth[2]}),
                            ("namespace", "namespace", {name.namespace: truth[0] + truth[1], other.namespace: truth[2]}),
                            ("container", "container_id", {e.id: t for e, t in zip((name, second, other), truth)})):
        for value, calls in groups.items():
            mine = [row for row in tops.rows(tools[by]) if row.get(key) == value]
            equal(tops.found(mine, ()), tops.expected(calls, ()), f"{by} {value}")
    held = tops.live(tops.rows(tools["pid"]))
    pod_memory = tops.live(tops.rows(tools["pod"]), ("pod_uid",))
    equal(pod_memory[name.pod_uid,], held[inside[0].pid,] + held[inside[1].pid,], "memory of the pod")


family = """
launch vecadd 1009; copy 3; fork; launch vecadd 7; sync 2; fork; copy 5; end; end; launch saxpy 13
exec; launch vecadd 17; alloc a 1000; fork; launch apply 3; end; end
"""


@case(alone=True)
def system_wide():
    """Children, exec, and fifty processes that exist for milliseconds. An idle process has a row until it exits, even
    if it is killed."""
    idle = Workload("launch vecadd 11; alloc a 5000; touch {dir}/idle; forever; sleep 10; end")
    tool = Tool("-i", "0.2")
    idle.go()
    idle_rows = lambda: [row for row in tool.rows if row.get("pid") == idle.pid]
    wait_until(lambda: [row for row in idle_rows() if not row["launches"] and row["live_bytes"] == 5000], "a row without calls")
    check(all(row["live_is_lower_bound"] for row in idle_rows()), "live memory of a process that already existed is not marked as a lower bound")
    parent = Workload(family, warm=False)
    short = [Workload(f"launch vecadd {10 + i}; copy {i + 1}; alloc a 100", warm=False) for i in range(50)]
    truth = parent.truth() + [call for workload in short for call in workload.truth()]
    equal(len({call["pid"] for call in truth}), 4 + len(short), "processes in the truth")
    idle.process.send_signal(signal.SIGKILL)
    idle.process.wait()
    last = lambda: [row for row in tool.rows if row["by"] == "total"][-1]
    before = {row["time"] for row in tool.rows}
    wait_until(lambda: len({row["time"] for row in tool.rows} - before) > 2, "two intervals after its exit")
    pids = {call["pid"] for call in truth}
    check(not [row for row in tool.rows if row["time"] == last()["time"] and row.get("pid") in pids | {idle.pid}],
          "exited processes have rows")
    tool.stop()
    same(tool, truth)
    equal(sum(row["launches"] for row in idle_rows()), 11, "launches of the killed process")
    same_sums(tool)
    names = {row.get("comm") for row in tops.rows(tool) if row["pid"] in pids}
    equal(names, {"workload"}, "names of exited processes")
    equal(idle_rows()[0].get("user"), "root", "user")


def map_code(times):
    """Maps code this many times on each CPU, to overflow the kernel's buffers of mapping events."""
    cpus = os.sched_getaffinity(0)
    with open("/proc/self/exe", "rb") as program:
        for cpu in cpus:
            os.sched_setaffinity(0, {cpu})
            for _ in range(times):
                mmap.mmap(program.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
    os.sched_setaffinity(0, cpus)


@case(alone=True)
def lost_exits():
    """While the tool is stopped, the kernel's buffers overflow, so that it receives no event of the exits."""
    ending = [Workload("launch vecadd 3; alloc a 5000; wait {dir}/never") for _ in range(3)]
    pids = {workload.pid for workload in ending}
    tool = Tool("-i", "0.2")

    def shown():
        *_, last = (row["time"] for row in tool.rows if row["by"] == "total")
        return pids & {row.get("pid") for row in tool.rows if row["time"] == last}

    for workload in ending:
        workload.go()
    wait_until(lambda: tops.rows(tool) and shown() == pids, "rows of running processes")
    os.kill(tool.pid, signal.SIGSTOP)
    map_code(4000)
    for workload in ending:
        workload.process.kill()
        workload.process.wait()
    os.kill(tool.pid, signal.SIGCONT)
    wait_until(lambda: map_code(1) or not shown(), "no rows of exited processes", 5)
    tool.stop()


@case(alone=True, long=True)
def entries_of_ended_contexts_are_freed():
    """Allocations of exited processes leave the kernel's table, which would otherwise be too full for others."""
    child = "fork; newcontext; repeat 700; alloc a 10; end; destroycontext; end; sleep 1400"
    workload = Workload(f"{child}; {child}", "workload-driver")
    tool = Tool("-i", "0.5", "--live-entries", 1024)
    workload.go().wait()
    equal(tool.stop().lost.get("allocations_untracked", 0), 0, "allocations without an entry")


def stacks(tool):
    """Ids of the stacks in the kernel's tables: unwound stacks, and copied stacks, whose entries begin with a hash."""
    held = [leftovers.show("map", "id", number) for number in leftovers.ids_held(tool.pid, "map_id")]
    found = []
    for name, first in {"stacks": 0, "window_stacks": 1 << 16}.items():
        number, = (m["id"] for m in held if m.get("name", "") == name)
        dump = subprocess.run([leftovers.bpftool(), "--json", "map", "dump", "id", str(number)], capture_output=True, text=True)
        for entry in json.loads(dump.stdout):
            if not first or any(int(byte, 16) for byte in entry["value"][:8]):
                found.append(first | int(entry["key"][0], 16) | int(entry["key"][1], 16) << 8)
    return sorted(found)


@case
def stacks_of_waits():
    """The stack of a thread's first wait is kept, and one per 10 ms of waiting. All waits are counted."""
    workload = Workload("sync 1; sync 20 block_us=12000 fn=cuStreamSynchronize; sync 500 fn=cuEventSynchronize; sleep 2000")
    tool = Tool("-p", workload.pid)
    workload.go()
    wait_until(lambda: len(stacks(tool)) >= 2, "stacks of the first wait and of long ones")
    truth = workload.truth()
    same(tool.finish(), truth)
