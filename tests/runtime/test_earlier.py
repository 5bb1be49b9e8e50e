# SPDX-License-Identifier: Apache-2.0
"""Waits that began before tracing did: found by the stacks of threads, as long as they go on, and nothing else is."""
import os
import re
import time

import harness
import tops
import waits
from harness import check, equal, wait_until
from programs import Tool, Workload, kill_at_end
from waits import case

asleep, spinning = "block_us=600000000", "delay_us=600000000"

# What hangs, by what the driver's function is called; the runtime's, and what they call.
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
    """A program that hangs in what its script ends with, and has for a while."""
    workload = Workload(f"touch {{dir}}/there; {script}", form).go()
    wait_until(lambda: (harness.here / "there").exists(), "it has come to its last step")

    def states():
        tasks = [open(f"/proc/{workload.pid}/task/{tid}/stat").read().rpartition(") ")[2][0]
                 for tid in os.listdir(f"/proc/{workload.pid}/task")]
        return tasks.count(how) >= threads
    wait_until(states, f"{threads} threads are in state {how}")
    time.sleep(0.1)
    return workload


def look(workload, *more):
    interval, duration = 0.4 * harness.patience, 1.5 * harness.patience
    return Tool("-p", workload.pid, "-i", interval, "-d", duration, "--by", "pid,api,wait", *more).finish()


def is_told(tool, function, wait, threads=1):
    check(tool.rows, f"{tool}: there is no row")
    for row in tool.rows:
        check(re.fullmatch(function, row["function"]), f"{tool}: its function: {row}")
        equal((row["wait"], row["calls"], row["waiting"], row["waiting_earlier"], row["source"], row["threads"]),
              (wait, 0, threads, threads, "stacks", threads), f"{tool}: how it waits")
        check(0 < row["total_ns"] <= threads * row["interval_ns"], f"{tool}: for how long: {row}")
    check(tool.rows[-1]["wall_percent"] > 95, f"{tool}: all the time: {tool.rows[-1]}")


each_driver = {f"{name}-{how}": (name, how) for name in driver_calls for how in ("asleep", "spinning")}


@case(each=each_driver, long=harness.all_but(each_driver, "cuCtxSynchronize-asleep", "cuCtxSynchronize-spinning",
                                             "cuStreamSynchronize_ptsz-asleep", "cuEventSynchronize-asleep",
                                             "cuMemcpy-asleep", "cuMemcpyDtoH_v2-spinning"))
def each_driver_function(of):
    name, how = of
    pace, state = (asleep, "S") if how == "asleep" else (spinning, "R")
    # The stand-in's _ptsz is the code of the other.
    is_told(look(hung(step(name, pace), how=state)), re.sub("_pt[sd][sz]$", "", name), driver_calls[name])


each_runtime = {f"{name}-{form}": (name, form) for name in runtime_calls
                for form in ("workload", "workload13", "workload-static", "workload-static-stripped", "workload-nopie")}


@case(each=each_runtime, long=harness.all_but(each_runtime, "cudaDeviceSynchronize-workload", "cudaMemcpy-workload13",
                                              "cudaStreamSynchronize-workload-static-stripped"))
def each_runtime_function(of):
    """By the driver's function that it calls, be the runtime shared, static or stripped."""
    name, form = of
    function, wait = runtime_calls[name]
    is_told(look(hung(step(name, asleep), form)), function, wait)


@case(each={name: name for name in runtime_calls}, long=harness.all_but(runtime_calls, "cudaMemcpy"))
def at_the_runtime(name):
    is_told(look(hung(step(name, asleep), "workload"), "--api", "runtime"), name, runtime_calls[name][1])


@case(asan=True)
def frees():
    is_told(look(hung(f"alloc a 4096; free a fn=cuMemFree_v2 {asleep}")), "cuMemFree_v2", "free")


@case
def threads():
    """Each its own row, with the pid of none, and what they wait for."""
    workload = hung(f"threads 9; {step('cuStreamSynchronize', asleep)}; end", threads=9)
    tool = Tool("-p", workload.pid, "-d", harness.patience, "--by", "thread,wait").finish()
    equal({row["tid"] for row in tool.rows}, set(workload.threads(9)), "threads that wait")
    is_told(look(workload), "cuStreamSynchronize", "stream", threads=9)
    one = workload.threads(9)[3]
    equal([row["tid"] for row in Tool("-t", one, "-d", harness.patience, "--by", "thread").finish().rows], [one], "with -t")


@case(alone=True)
def among_all():
    """System-wide, and by the name of a thread."""
    workload = hung(f"name culprit; {step('cuEventSynchronize', asleep)}")
    other = hung("sleep 600000")
    for more in [], ["-n", "culprit"]:
        tool = Tool("-d", "1", "--by", "pid,wait", *more).finish()
        equal([(row["pid"], row["waiting_earlier"]) for row in tool.rows if row["pid"] in (workload.pid, other.pid)],
              [(workload.pid, 1)], f"{tool}: who waits")
    equal(Tool("-d", "1", "-n", "else").finish().rows, [], "waits of others")


# None of them waits in CUDA when tracing begins, though most have, a moment before.
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
    tool = look(workload)
    equal(tool.rows, [], f"{tool}: waits")
    equal(look(workload, "--api", "both").rows, [], "waits at either layer")


@case
def busy_ones():
    """They wait again and again, and each time only for a moment: what counts is what probes see."""
    workload = Workload("forever; sync 1 fn=cuCtxSynchronize block_us=300; copy 1 fn=cuMemcpyDtoH_v2 block_us=200; launch vecadd 3; end").go()
    time.sleep(0.3)
    tool = look(workload)
    check(len(tool.rows) > 4, f"rows: {tool.rows}")
    equal({(row["waiting_earlier"], row["source"]) for row in tool.rows}, {(0, "calls")}, "where they are known from")


@case(asan=True)
def until_it_returns():
    """A wait from before is none any more when it has come back; the next ones are counted, to the last one."""
    workload = hung(f"sync 1 block_us=3000000; touch {{dir}}/back; sync 7 fn=cuStreamSynchronize; sleep 2500; sync 2 fn=cuStreamSynchronize; sleep 600000")
    tool = Tool("-p", workload.pid, "-i", "0.5", "--by", "pid,api")
    wait_until(lambda: [row for row in tool.rows if row["waiting_earlier"]], "the wait from before is seen")
    wait_until(lambda: (harness.here / "back").exists(), "it returns", 10)
    time.sleep(1.6)
    came_back = len(tool.rows)
    wait_until(lambda: sum(row["calls"] for row in tool.rows) == 9, "those that come later are counted", 10)
    rows = tool.stop().rows
    equal({row["function"] for row in rows if row["waiting"]}, {"cuCtxSynchronize"}, "what waited")
    equal({(row["function"], row["waiting"]) for row in rows[came_back:]}, {("cuStreamSynchronize", 0)}, "what came later")
    equal(sum(row["calls"] for row in rows), 9, "calls that were seen to begin")


@case
def what_ends():
    """A process that is killed, or becomes another program, waits no more."""
    workload = hung(step("cuCtxSynchronize", asleep))
    tool = Tool("-p", workload.pid, "-i", "0.3", "-d", "6", "--by", "pid")
    wait_until(lambda: tool.rows, "it waits")
    workload.process.kill()
    workload.process.wait()
    tool.process.wait(10)
    check(len(tool.finish().rows) < 12, "rows after its end")


@case
def words():
    """A column of its own where there is one, and none where there is not."""
    workload = hung(step("cuCtxSynchronize", asleep))
    text = Tool("-p", workload.pid, "-d", "1", json=False).finish().text
    head, row = [line.split() for line in text.splitlines()[-2:]]
    equal(row[head.index("EARLIER")], "1", f"its column: {text}")
    other = Workload("sync 3; sleep 600000").go()
    tool = Tool("-p", other.pid, "-d", "1", json=False).finish()
    check("EARLIER" not in tool.text, f"a column of zeros: {tool.text}")


@case(alone=True)
def by_a_part_of_the_name():
    """Of the thread, or of its process, as -n goes."""
    workload = hung("name solver; " + step("cuCtxSynchronize", asleep))
    tools = {part: Tool("-n", part, "-i", "0.4", "-d", "1.5", "--by", "pid") for part in ("olve", "solver", "solvers")}
    told = {part: {row["pid"] for row in tool.finish().rows if row["waiting_earlier"]} for part, tool in tools.items()}
    equal(told, {"olve": {workload.pid}, "solver": {workload.pid}, "solvers": set()}, "who waits, by the part of its name")


@tops.case(alone=True)
def verdicts():
    """cudatop says it, in words and at once."""
    workload = hung("launch vecadd 5; " + step("cudaDeviceSynchronize", asleep), "workload")
    busy = Workload("forever; launch vecadd 1 grid=64 gap_us=2000; end").go()
    began = time.monotonic()
    tool = tops.Tool("-j", "1", "4").finish()
    told = [row for row in tool.rows if row["by"] == "diagnosis" and row["pid"] in (workload.pid, busy.pid)]
    equal({(row["pid"], row["rule"]) for row in told}, {(workload.pid, "hangs")}, "whose trouble it is, and which")
    check(re.match(r"waiting for the GPU for over \d\.\d s \(began before tracing\); no launches since",
                   told[0]["diagnosis"]), f"its words: {told[0]}")
    rows = [row for row in tool.rows if row["by"] == "pid" and row["pid"] == workload.pid]
    check(rows[-1]["blocked_percent"] > 95, f"it waits all the time: {rows[-1]}")
    why = tops.Tool("--why", "-p", workload.pid, json=False).finish().text
    check("since before tracing began" in why and "cudasync -p" in why, f"--why: {why}")
    check(time.monotonic() - began < 30 * harness.patience, "and it is quick")
