# SPDX-License-Identifier: Apache-2.0
"""cudasync counts every call that waits for the device once, by kind and with its time, and no other calls."""
import secrets

import harness
import system
import waits
from containers import Cgroup
from harness import check, equal
from programs import Tool, Workload, trace
from truth import bucket
from waits import case, check_consistency, same_times, same_waits

modes = {"all": [], "failed": ["-x"]}


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


def check_all_are_tested(tool, layer, functions):
    """Fails if the probe table has a function that no case calls."""
    equal(tool.of_type("attached")[-1]["functions"], len(functions) + len(waits.not_called[layer]),
          f"functions that {tool} probes; those tested are {functions}")


@case(each=modes, asan=True)
def every_driver_function(mode):
    script = every(waits.driver_syncs, waits.driver_copies, waits.driver_frees)
    tool, truth = trace(script, "--by", "api,wait", *mode, form="workload-driver")
    same_waits(tool, truth, failed_only=bool(mode))
    called = {call["function"] for call in waits.waits(truth)}
    equal(called, {*waits.driver_syncs, *waits.driver_copies, *waits.driver_frees}, "functions called")
    check_all_are_tested(tool, "driver", called)
    if not mode:
        same_times(tool, truth)
        check_consistency(tool)


@case(each={form: form for form in ("workload", "workload13", "workload-static")})
def every_runtime_function(form):
    old = {} if form == "workload13" else {"cudaThreadSynchronize": "context"}
    script = every(waits.runtime_syncs | old, waits.runtime_copies, waits.runtime_frees)
    workload = Workload(script, form)
    above, below, both, failed = (Tool("-p", workload.pid, "--by", "api,wait", *more) for more in
                                  (["--api", "runtime"], [], ["--api", "both"], ["--api", "runtime", "-x"]))
    workload.go()
    truth = workload.truth()
    same_waits(above.finish(), truth, api="runtime")
    same_times(above, truth, api="runtime")
    same_waits(below.finish(), truth)
    same_waits(failed.finish(), truth, api="runtime", failed_only=True)
    # The driver's copy within the runtime's is not counted again.
    same_waits(both.finish(), truth, api="both", by=("function", "wait", "layer"))
    called = {call["function"] for call in waits.waits(truth, "runtime")}
    equal(called, {*waits.runtime_syncs, *old, *waits.runtime_copies, *waits.runtime_frees}, "functions called")
    check_all_are_tested(above, "runtime", called)


@case(gpu=True)
def calls_that_do_not_wait():
    tool, truth = trace(waits.no_waits)
    equal(tool.rows, [], f"rows of {tool}")
    equal(len(truth) > 10, True, "calls in the truth")


@case
def not_ready_is_no_error_of_polls():
    """Result 600 means "not ready" for polls, and is an error for waits."""
    script = ("sync 1009 fn=cuStreamQuery result=600; sync 53 fn=cuStreamQuery; sync 7 fn=cuStreamQuery result=700\n"
              "sync 101 fn=cuEventQuery result=600; sync 11 fn=cudaStreamQuery result=600; sync 3 fn=cuCtxSynchronize result=600\n"
              "sync 5 fn=cudaEventQuery runtime_result=400")
    workload = Workload(script)
    tools = [(Tool("-p", workload.pid, "--by", "api,wait", "--api", api, *mode), api, bool(mode))
             for api in ("driver", "both") for mode in ([], ["-x"])]
    workload.go()
    truth = workload.truth()
    for tool, api, failed in tools:
        same_waits(tool.finish(), truth, api=api, failed_only=failed)
        for row in tool.rows if failed else []:
            check(row["result_code"] != 600 or row["wait"] == "context", f"'not ready' counted as an error: {row}")
            check("waiting" not in row, f"waits in flight in rows of errors: {row}")


@case
def durations():
    """Durations are at least the time that the driver slept, at most the time that the callers measured, and in the
    right buckets."""
    script = """
    sync 20 fn=cuCtxSynchronize block_us=20000; sync 10 fn=cuStreamSynchronize block_us=50000 stream=1
    copy 5 fn=cuMemcpyHtoD_v2 delay_us=4000; sync 3 fn=cuEventQuery delay_us=9000 result=600
    """
    workload = Workload(script, "workload-driver")
    table, lines = Tool("-p", workload.pid, "--by", "api,wait"), Tool("-p", workload.pid, "-e")
    histogram = Tool("-p", workload.pid, "-H", "duration", "--by", "wait")
    workload.go()
    truth = workload.truth()
    same_waits(table.finish(), truth)
    same_times(table, truth)
    lines.finish()
    histograms = {record["wait"]: record for record in histogram.finish().of_type("hist")}
    for call in waits.waits(truth):
        row, = (row for row in table.rows if row["function"] == call["function"])
        each = call["slept_ns"] // call["count"]
        low, high = bucket(each)[0], bucket(call["duration_ns"])[1]
        check(low <= row["duration_p50_ns"] <= row["duration_max_ns"] <= call["duration_ns"] and
              each <= row["duration_max_ns"], f"unexpected durations, with a sleep of {each} ns: {row}")
        events = [event["latency_ns"] for event in lines.events if event["function"] == call["function"]]
        equal(len(events), call["count"], f"events of {call['function']}")
        check(min(events) >= each and call["slept_ns"] <= sum(events) <= call["duration_ns"], f"unexpected durations, with a sleep of {each} ns: {events}")
        record = histograms[call["wait"]]
        equal((record["total"], record["unit"], record["measure"]), (call["count"], "usecs", "duration"), "histogram")
        low = bucket(each // 1000)[0]
        check(all(low <= b["low"] and b["high"] <= high for b in record["buckets"]), f"a bucket is not in the range from {low} us: {record}")


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
def minimum_duration():
    """-l: shorter waits are not shown, not even while they are in flight."""
    script = ("sync 5 block_us=300000; sync 1000 fn=cuStreamSynchronize; copy 500; sync 20 fn=cuStreamQuery result=600\n"
              "sync 3 block_us=1000 fn=cuEventSynchronize")
    workload = Workload(script, "workload-driver")
    tools = [Tool("-p", workload.pid, "-l", 200_000, "--by", "api,wait", *more) for more in ([], ["-i", "0.05"])]
    lines, none = Tool("-p", workload.pid, "-l", 200_000, "-e"), Tool("-p", workload.pid, "-l", 1e9)
    workload.go()
    truth = [call for call in workload.truth() if call["slept_ns"] >= 200e6 * call["count"]]
    for tool in tools:
        same_waits(tool.finish(), truth)
        same_times(tool, truth)
        check(all(row["duration_max_ns"] >= 200e6 for row in tool.rows), "shorter waits are shown")
    equal(len(lines.finish().events), 5, "events")
    equal(none.finish().rows, [], "rows of longer waits")


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


@case(each={"by_call": ("wait", "api", "stream", "device"),
            "by_process": ("thread", "pid", "comm", "cgroup", "pid,wait,thread,api,stream")})
def rows_by(ways):
    """All groupings have the same sum."""
    workload = Workload("sync 53; sync 11 fn=cuStreamSynchronize stream=1; threads 4; copy 7\n"
                        "sync 3 fn=cuStreamQuery result=600; end")
    tools = [Tool("-p", workload.pid, "--by", view) for view in ways]
    workload.go()
    truth = workload.truth()
    fields = {"thread": "tid", "api": "function"}
    for view, tool in zip(ways, tools):
        by = tuple(fields.get(word, word) for word in view.split(",") if word not in ("device", "cgroup"))
        same_waits(tool.finish(), truth, by=by)
        equal(sum(row["calls"] for row in tool.rows), sum(call["count"] for call in waits.waits(truth)), "sum")
        check_consistency(tool)


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


@case(asan=True)
def text():
    """Headers, and one line per process and kind of wait."""
    tool, truth = trace("sync 101; copy 53; sync 7 fn=cuStreamQuery result=600; sync 3 result=700", json=False)
    head, *lines = [line.split() for line in tool.lines if line.strip()]
    for word in ("PID", "COMM", "WAIT", "CALLS", "SPINS", "WAITING", "ERRORS", "TOTAL(s)", "WALL%", "p99(us)", "MAX(us)"):
        check(word in head, f"no header {word} in {head}")
    got = {line[head.index("WAIT")]: [int(line[head.index(word)]) for word in ("CALLS", "SPINS", "WAITING", "ERRORS")]
           for line in lines}
    equal(got, {"context": [104, 0, 0, 3], "copy": [53, 0, 0, 0], "poll": [7, 7, 0, 0]}, "rows")
