# SPDX-License-Identifier: Apache-2.0
"""Waits that began before tracing: found in the stacks of threads, and reported while they are pending."""
import os
import re
import time

import harness
import tops
import waits
from harness import check, equal, wait_until
from programs import Tool, Workload
from waits import case

asleep, spinning = "block_us=600000000", "delay_us=600000000"

# {driver function that hangs: kind of wait} and {runtime function that hangs: (driver function that it calls, kind of
# wait)}.
driver_calls = {"cuCtxSynchronize": "context", "cuCtxSynchronize_v2": "context", "cuStreamSynchronize": "stream",
                "cuStreamSynchronize_ptsz": "stream", "cuEventSynchronize": "event", "cuMemcpy": "copy",
                "cuMemcpyHtoD_v2": "copy", "cuMemcpyDtoH_v2": "copy", "cuMemcpyDtoH_v2_ptds": "copy",
                "cuMemcpy2D_v2": "copy", "cuMemcpy3D_v2": "copy", "cuMemcpyPeer": "copy"}
runtime_calls = {"cudaDeviceSynchronize": ("cuCtxSynchronize", "context"), "cudaMemcpy": (r"cuMemcpy\w*", "copy"),
                 "cudaStreamSynchronize": ("cuStreamSynchronize", "stream"),
                 "cudaEventSynchronize": ("cuEventSynchronize", "event")}


def step(function, pace):
    return f"{'copy' if 'Memcpy' in function else 'sync'} 1 fn={function} {pace}"


def hung(script, form="workload-driver", threads=1, how="S"):
    """A workload that already hangs in the last step of its script, with `threads` threads in state `how`."""
    workload = Workload(f"touch {{dir}}/there; {script}", form).go()
    wait_until(lambda: (harness.here / "there").exists(), "the workload has reached its last step")

    def states():
        tasks = [open(f"/proc/{workload.pid}/task/{tid}/stat").read().rpartition(") ")[2][0]
                 for tid in os.listdir(f"/proc/{workload.pid}/task")]
        return tasks.count(how) >= threads
    wait_until(states, f"{threads} threads are in state {how}")
    time.sleep(0.1)
    return workload


def trace_waits(workload, *more):
    interval, duration = 0.4 * harness.patience, 1.5 * harness.patience
    return Tool("-p", workload.pid, "-i", interval, "-d", duration, "--by", "pid,api,wait", *more).finish()


def check_reported(tool, function, wait, threads=1):
    check(tool.rows, f"{tool}: no row")
    for row in tool.rows:
        check(re.fullmatch(function, row["function"]), f"{tool}: wrong function: {row}")
        equal((row["wait"], row["calls"], row["waiting"], row["waiting_earlier"], row["source"], row["threads"]),
              (wait, 0, threads, threads, "stacks", threads), f"{tool}: fields of the wait")
        check(0 < row["total_ns"] <= threads * row["interval_ns"], f"{tool}: unexpected total time: {row}")
    check(tool.rows[-1]["wall_percent"] > 95, f"{tool}: the thread was not reported as waiting all the time: {tool.rows[-1]}")


each_driver = {f"{name}-{how}": (name, how) for name in driver_calls for how in ("asleep", "spinning")}


@case(each=each_driver, long=harness.all_but(each_driver, "cuCtxSynchronize-asleep", "cuCtxSynchronize-spinning",
                                             "cuStreamSynchronize_ptsz-asleep", "cuEventSynchronize-asleep",
                                             "cuMemcpy-asleep", "cuMemcpyDtoH_v2-spinning"))
def each_driver_function(of):
    name, how = of
    pace, state = (asleep, "S") if how == "asleep" else (spinning, "R")
    # In the stand-in, a _ptsz variant is the same code as the function.
    check_reported(trace_waits(hung(step(name, pace), how=state)), re.sub("_pt[sd][sz]$", "", name), driver_calls[name])


each_runtime = {f"{name}-{form}": (name, form) for name in runtime_calls
                for form in ("workload", "workload13", "workload-static", "workload-static-stripped", "workload-nopie")}


@case(each=each_runtime, long=harness.all_but(each_runtime, "cudaDeviceSynchronize-workload", "cudaMemcpy-workload13",
                                              "cudaStreamSynchronize-workload-static-stripped"))
def each_runtime_function(of):
    """The wait is reported as the driver function that the runtime calls, for a shared, static or stripped runtime."""
    name, form = of
    function, wait = runtime_calls[name]
    check_reported(trace_waits(hung(step(name, asleep), form)), function, wait)


@case(each={name: name for name in runtime_calls}, long=harness.all_but(runtime_calls, "cudaMemcpy"))
def at_the_runtime(name):
    check_reported(trace_waits(hung(step(name, asleep), "workload"), "--api", "runtime"), name, runtime_calls[name][1])


@case(asan=True)
def frees():
    check_reported(trace_waits(hung(f"alloc a 4096; free a fn=cuMemFree_v2 {asleep}")), "cuMemFree_v2", "free")


@case
def threads():
    """With --by thread, each waiting thread has a row; -t with one thread shows only its row."""
    workload = hung(f"threads 9; {step('cuStreamSynchronize', asleep)}; end", threads=9)
    tool = Tool("-p", workload.pid, "-d", harness.patience, "--by", "thread,wait").finish()
    equal({row["tid"] for row in tool.rows}, set(workload.threads(9)), "waiting threads")
    check_reported(trace_waits(workload), "cuStreamSynchronize", "stream", threads=9)
    one = workload.threads(9)[3]
    equal([row["tid"] for row in Tool("-t", one, "-d", harness.patience, "--by", "thread").finish().rows], [one], "with -t")


@case(alone=True)
def among_all():
    """System-wide, and filtered by a part of a thread's name."""
    workload = hung(f"name culprit; {step('cuEventSynchronize', asleep)}")
    other = hung("sleep 600000")
    for more in [], ["-n", "ulpri"]:
        tool = Tool("-d", "1", "--by", "pid,wait", *more).finish()
        equal([(row["pid"], row["waiting_earlier"]) for row in tool.rows if row["pid"] in (workload.pid, other.pid)],
              [(workload.pid, 1)], f"{tool}: waiting processes")
    equal(Tool("-d", "1", "-n", "culprits").finish().rows, [], "waits of others")


# No thread of these programs waits in CUDA when tracing begins, although most did a moment before.
elsewhere = {
    "sleeps": ("sync 3; copy 2; sleep 600000", "S"),
    "waits_for_a_file": ("sync 3; wait {dir}/never", "S"),
    "launches": (f"sync 3; launch vecadd 1 {asleep}", "S"),
    "launches_and_spins": (f"sync 3; launch vecadd 1 {spinning}", "R"),
    "allocates": (f"sync 3; alloc a 4096 {asleep}", "S"),
    "asks": (f"sync 3; sync 1 fn=cuStreamQuery {asleep}", "S"),
    "enqueues": (f"sync 3; copy 1 fn=cuMemcpyHtoDAsync_v2 {asleep}", "S"),
    "joins": ("sync 3; background; sleep 600000; end; join", "S"),
    "deep_before": ("deeper 65536; sync 3; copy 3; end; sleep 600000", "S"),
}


@case(each={name: name for name in elsewhere}, asan=False)
def no_false_alarm(name):
    script, state = elsewhere[name]
    workload = hung(script, how=state)
    tool = trace_waits(workload)
    equal(tool.rows, [], f"{tool}: waits")
    equal(trace_waits(workload, "--api", "both").rows, [], "rows with --api both")


@case
def short_repeated_waits():
    """Threads that wait often and briefly are counted by probes only."""
    workload = Workload("forever; sync 1 fn=cuCtxSynchronize block_us=300; copy 1 fn=cuMemcpyDtoH_v2 block_us=200; launch vecadd 3; end").go()
    time.sleep(0.3)
    tool = trace_waits(workload)
    check(len(tool.rows) > 4, f"too few rows: {tool.rows}")
    equal({(row["waiting_earlier"], row["source"]) for row in tool.rows}, {(0, "calls")}, "sources of waits")


@case(asan=True)
def until_it_returns():
    """A wait from before tracing disappears when it returns; later waits are counted exactly."""
    workload = hung(f"sync 1 block_us=3000000; touch {{dir}}/back; sync 7 fn=cuStreamSynchronize; sleep 2500; sync 2 fn=cuStreamSynchronize; sleep 600000")
    tool = Tool("-p", workload.pid, "-i", "0.5", "--by", "pid,api")
    wait_until(lambda: [row for row in tool.rows if row["waiting_earlier"]], "the wait from before tracing is reported")
    wait_until(lambda: (harness.here / "back").exists(), "the wait has returned", 10)
    time.sleep(1.6)
    came_back = len(tool.rows)
    wait_until(lambda: sum(row["calls"] for row in tool.rows) == 9, "later waits are counted", 10)
    rows = tool.stop().rows
    equal({row["function"] for row in rows if row["waiting"]}, {"cuCtxSynchronize"}, "functions that wait")
    equal({(row["function"], row["waiting"]) for row in rows[came_back:]}, {("cuStreamSynchronize", 0)}, "functions after the wait returned")
    equal(sum(row["calls"] for row in rows), 9, "number of calls that began while tracing")


@case
def exit_and_exec():
    """A process that is killed, or execs another program, is no longer reported as waiting."""
    workload = hung(step("cuCtxSynchronize", asleep))
    tool = Tool("-p", workload.pid, "-i", "0.3", "-d", "6", "--by", "pid")
    wait_until(lambda: tool.rows, "a row of the wait")
    workload.process.kill()
    workload.process.wait()
    tool.process.wait(10)
    check(len(tool.finish().rows) < 12, "too many rows after its exit")


@tops.case(alone=True)
def verdicts():
    """cudatop reports a wait from before tracing in its first report."""
    workload = hung("launch vecadd 5; " + step("cudaDeviceSynchronize", asleep), "workload")
    busy = Workload("forever; launch vecadd 1 grid=64 gap_us=2000; end").go()
    began = time.monotonic()
    tool = tops.Tool("-j", "1", "4").finish()
    verdicts = [row for row in tool.rows if row["by"] == "diagnosis" and row["pid"] in (workload.pid, busy.pid)]
    equal({(row["pid"], row["rule"]) for row in verdicts}, {(workload.pid, "hangs")}, "verdicts")
    check(re.match(r"waiting for the GPU for over \d\.\d s \(began before tracing\); no launches since",
                   verdicts[0]["diagnosis"]), f"unexpected text of the verdict: {verdicts[0]}")
    rows = [row for row in tool.rows if row["by"] == "pid" and row["pid"] == workload.pid]
    check(rows[-1]["blocked_percent"] > 95, f"unexpected blocked_percent: {rows[-1]}")
    why = tops.Tool("--why", "-p", workload.pid, json=False).finish().text
    check("began before tracing" in why and "cudasync -p" in why, f"unexpected --why: {why}")
    check(time.monotonic() - began < 30 * harness.patience, "the case took too long")
