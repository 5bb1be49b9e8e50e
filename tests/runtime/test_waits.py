# SPDX-License-Identifier: Apache-2.0
"""cudasync counts waits in each tier, and those of selected processes, threads and cgroups (see also
tests/bpf/wait_test.cpp)."""
import secrets

import harness
import system
import waits
from containers import Cgroup
from harness import check, equal
from programs import Tool, Workload, trace
from waits import case, check_consistency, same_times, same_waits

def every(syncs, copies, frees, failing=True):
    """A script that calls each of these functions a unique number of times."""
    numbers = iter(range(11, 1000))
    lines = [f"sync {next(numbers)} fn={name}" for name in syncs]
    lines += [f"copy {next(numbers)} fn={name}" for name in copies]
    lines += [f"repeat {next(numbers)}; alloc m 4096 fn={alloc}; free m fn={free}; end" for free, alloc in frees.items()]
    if failing:
        lines += [f"sync {next(numbers) % 7 + 1} fn={name} result=719" for name in syncs]
        lines += [f"copy {next(numbers) % 7 + 1} fn={name} result=1" for name in copies]
    return "\n".join(lines) + waits.no_waits


@case(gpu=True)
def calls_that_do_not_wait():
    tool, truth = trace(waits.no_waits)
    equal(tool.rows, [], f"rows of {tool}")
    equal(len(truth) > 10, True, "calls in the truth")


@case(asan=True)
def lines():
    """-e: an event for each call when it returns, with the kind of object that it waited for."""
    script = ("sync 101 fn=cuStreamSynchronize_ptsz; sync 53 fn=cuEventSynchronize; sync 29 fn=cuStreamQuery result=600 stream=1\n"
              "threads 3; copy 17; end; sync 7 fn=cuStreamSynchronize stream=1 result=719; alloc a 64; free a")
    workload = Workload(script)
    every, failed = Tool("-p", workload.pid, "-e"), Tool("-p", workload.pid, "-e", "-x")
    workload.go()
    truth = waits.waits(workload.truth())
    names = {0: "ok", 600: "ok", 719: "CUDA_ERROR_LAUNCH_FAILED"}

    def want(calls):
        return sorted((c["pid"], c["tid"], c["comm"], c["function"], c["wait"], c["stream"], int(c["result"] == 600),
                       names[c["result"]], c["handle"] if c["wait"] == "event" else None)
                      for c in calls for _ in range(c["count"]))

    def got(tool):
        return sorted((e["pid"], e["tid"], e["comm"], e["function"], e["wait"], e["stream"], e["not_ready"], e["result"],
                       e.get("handle")) for e in tool.finish().events)
    key = lambda t: tuple(map(str, t))
    equal(sorted(got(every), key=key), sorted(want(truth), key=key), f"{every}")
    equal(got(failed), want(c for c in truth if c["result"] == 719), f"{failed}")


@case
def stacks():
    """-U: callers of waits, with their time, including waits in flight."""
    workload = Workload("threads 3; sync 1 block_us=1500000; end; sync 11 fn=cuStreamSynchronize", "workload")
    tool = Tool("-p", workload.pid, "-U", "-i", "0.4")
    workload.go()
    truth = workload.truth()
    same_waits(tool.finish(), truth, by=("pid",))
    waiting = [row for row in tool.rows if row["waiting"]]
    check(waiting, "no rows of waits in flight")
    for row in waiting:
        check(any("workload::" in frame or "libcudart" in frame for frame in row["frames"]), f"unexpected caller: {row}")


@case(each={tier: tier for tier in ("session", "multi", "tracefs", "perf")}, long=["perf"])
def tiers_are_equal(tier):
    system.need_tier(tier)
    script = ("threads 4; sync 101 fn=cuStreamSynchronize; copy 53 fn=cuMemcpyDtoH_v2; sync 7 fn=cuStreamQuery result=600; end\n"
              "sync 5 block_us=100000 result=719; fork; sync 17; end; alloc a 64; free a")
    workload = Workload(script, "workload-driver")
    tool = Tool("-p", workload.pid, "--by", "pid,api,wait", "--attach", tier, "-i", "0.2")
    workload.go()
    truth = [call for call in workload.truth() if call["pid"] == workload.pid]
    tool.finish()
    equal({record["tier"] for record in tool.of_type("attached")}, {tier}, "tier")
    check(tool.records[0]["duration_floor_ns"] < 20000, f"the cost of the probes is too high: {tool.records[0]}")
    check_consistency(tool)
    same_waits(tool, truth, by=("pid", "function", "wait"))
    same_times(tool, truth, by=("pid", "function", "wait"))
    equal({row["pid"] for row in tool.rows}, {workload.pid}, "processes")


@case(alone=True)
def filters_exclude_others():
    """-p, -t and -n exclude waits of other processes and threads, completed or in flight."""
    script = "threads 3; sync 101; wait {dir}/names; sync 2 block_us=700000; end"
    a, b = Workload(script), Workload("name outsider; " + script)
    tool, name = Tool("-p", a.pid, "-i", "0.2"), Tool("-n", "outsider", "-i", "0.2")
    a.go(), b.go()
    tid = a.threads(3)[1]
    thread = Tool("-t", tid, "--by", "thread,wait", "-i", "0.2")
    (harness.here / "names").touch()
    of_a, of_b = a.truth(), b.truth()
    same_waits(tool.finish(), of_a, by=("pid", "wait"))
    equal({row["pid"] for row in tool.rows}, {a.pid}, "processes")
    name.stop()
    same_waits(name, of_b, by=("pid", "wait"))
    equal({row["pid"] for row in name.rows}, {b.pid}, "processes")
    thread.finish()
    equal({row["tid"] for row in thread.rows}, {tid}, "threads")
    equal(sum(row["calls"] for row in thread.rows), 2, "calls after the start of the tool")


@case(each={"v2": "v2", "memory": "memory"})
def of_a_cgroup(hierarchy):
    group = Cgroup(hierarchy, f"gpusnoop-test-{secrets.token_hex(4)}")
    script = "sync 101; copy 7; threads 2; sync 1 block_us=700000; end"
    inside, outside = Workload(script, preexec=group.join), Workload(script)
    tool = Tool("-c", group.path, "-i", "0.2")
    inside.go(), outside.go()
    truth = inside.truth()
    outside.wait()
    same_waits(tool.stop(), truth, by=("pid", "wait"))
    equal({row["pid"] for row in tool.rows}, {inside.pid}, "processes")
