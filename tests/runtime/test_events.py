# SPDX-License-Identifier: Apache-2.0
"""cudalaunch -e: one line per launch, with exact values; events that do not fit into the buffer are counted as lost."""
import json
import os
import signal
import time
from collections import Counter

import harness
import system
from harness import case, check, equal, wait_until
from programs import Tool, Workload, trace
from truth import layer_wanted, weight

script = """
launch vecadd 101 grid=3,4,5 block=8,4,2 smem=1000; launch saxpy 53 fn=cuLaunchKernelEx grid=70000,2 block=1024 stream=1
launch reduce 17 fn=cudaLaunchKernelExC grid=1,65535,65535 stream=2 smem=49152
launch apply 7 fn=cuLaunchKernel_ptsz block=3,3,3; launch vecadd 11 result=719
launch scale 5 fn=cuLaunchCooperativeKernelMultiDevice devices=3 grid=9 stream=1
launch saxpy 3 fn=cuLaunchGridAsync grid=7,6 block=5,4,3 smem=77 stream=2; launch null 2 fn=cuLaunchKernel
capture begin; launch vecadd 4 stream=1 grid=2; capture end; graph 6 stream=1; hostfunc 8 stream=2
threads 3; repeat 20; launch vecadd 2 grid=2; launch saxpy 1 grid=3; end; end
"""


def events_of(truth, api, *more):
    """Expected number of events by their fields."""
    out = Counter()
    for call in truth:
        if layer_wanted(call, api):
            kernel = call["kind"] == "kernel"
            shape = tuple(tuple(call[f]) if kernel else None for f in ("grid", "block"))
            out[(call["pid"], call["tid"], call["comm"], call["layer"], call["handle"], call["stream"],
                 int(call["recorded"]), *shape, call["smem"], *(call[field] for field in more))] += weight(call)
    return dict(out)


def events_in(tool, *more):
    out = Counter()
    for event in tool.events:
        shape = tuple(tuple(event[f]) if f in event else None for f in ("grid", "block"))
        out[(event["pid"], event["tid"], event["comm"], event["layer"], event["handle"], event["stream"],
             event["captured"], *shape, event.get("shared_memory_bytes"), *(event[field] for field in more))] += 1
    return dict(out)


def in_order(tool):
    last = {}
    for event in tool.events:
        check(event["time_ns"] >= last.get(event["tid"], 0), f"out of order, after {last.get(event['tid'])}: {event}")
        last[event["tid"]] = event["time_ns"]


def bars_of(tool, trace):
    """Checks that a trace has one bar per call on its thread's track, and that bars nest or do not overlap. A launch on
    several devices has several equal bars."""
    base, named = trace[0]["args"]["baseTimeNanoseconds"], set()
    bars = {}
    for event in trace:
        if event["ph"] == "M":
            named.add((event["name"], event["pid"], event["tid"]))
        else:
            check(event["ph"] == "X" and ("thread_name", event["pid"], event["tid"]) in named, f"{event}")
            bars.setdefault(event["tid"], []).append(event)
    equal(sorted((bar["tid"], bar["args"].get("kernel") or "", round(1000 * bar["dur"])) for track in bars.values() for bar in track),
          sorted((event["tid"], event.get("kernel") or "", event["latency_ns"]) for event in tool.events), "bars")
    check(abs(base + 1000 * trace[-2]["ts"] - time.time_ns()) < 600e9, f"the times are not wall-clock times: {trace[-2]}")
    for track in bars.values():
        for one, next_one in zip(track, track[1:]):
            end, next_end = (bar["ts"] + bar["dur"] for bar in (one, next_one))
            check(end <= next_one["ts"] + 0.002 or next_end <= end + 0.002, f"overlap: {one} and {next_one}")


@case
def with_results_and_durations():
    """Each event has result and duration; -x shows only failed calls."""
    names = {0: "ok", 719: "CUDA_ERROR_LAUNCH_FAILED", 400: "CUDA_ERROR_INVALID_HANDLE"}
    workload = Workload(script + "launch vecadd 50 delay_us=200")
    timeline = harness.here / "timeline.json"
    both = Tool("-p", workload.pid, "-e", "-l", "--trace", timeline)
    failed = Tool("-p", workload.pid, "-e", "-x")
    workload.go()
    truth = workload.truth()
    for call in truth:
        call["result"] = names[call["result"]]
    equal(events_in(both.finish(), "result"), events_of(truth, "driver", "result"), f"{both}")
    in_order(both)
    bars_of(both, json.loads(timeline.read_text()))
    slow = [event["latency_ns"] for event in both.events if event["latency_ns"] >= 200_000]
    check(len(slow) >= 50, f"{len(slow)} calls took 200 us, but 50 do so in the script")
    truth = [call for call in truth if call["result"] != "ok"]
    equal(events_in(failed.finish(), "result"), events_of(truth, "driver", "result"), f"{failed}")


@case(gpu=True)
def a_line_of_text_each():
    tool, truth = trace("launch vecadd 1009 grid=3; threads 2; launch saxpy 100; end; hostfunc 3", "-e", json=False)
    head, *lines = tool.text.splitlines()
    equal(len(lines), 1009 + 200 + 3, "lines")
    equal(head.split()[:4], ["TIME(s)", "PID", "TID", "COMM"], "header")
    equal(sum("vecadd" in line and " 3,1,1 " in line for line in lines), 1009, "lines of vecadd")


@case(gpu=True)
def two_hundred_thousand():
    """Four threads launch at full speed, with a buffer that holds all events: none is lost, although the tool hardly
    gets a CPU."""
    workload = Workload("threads 4; launch vecadd 50000; end")
    tool = Tool("-p", workload.pid, "-e", "--ring-mb", 32)
    workload.go()
    wait_until(lambda: len(tool.lines) > 100, "100 lines")
    os.kill(tool.pid, signal.SIGSTOP)
    workload.wait()
    os.kill(tool.pid, signal.SIGCONT)
    equal(events_in(tool.finish()), events_of(workload.truth(), "driver"), f"{tool}")
    in_order(tool)


@case(alone=True)
def of_all_processes():
    workloads = [Workload("launch vecadd 101 grid=5; fork; launch saxpy 7; end") for _ in range(2)]
    tool = Tool("-e")
    for workload in workloads:
        workload.go()
    truth = [call for workload in workloads for call in workload.truth()]
    tool.stop()
    pids = {call["pid"] for call in truth}
    got = {key: n for key, n in events_in(tool).items() if key[0] in pids}
    equal(got, events_of(truth, "driver"), f"{tool}")


@case
def of_a_process_that_launches_already():
    """Events that happen while the tool starts are printed after its first lines."""
    workload = Workload("forever; launch vecadd 10 gap_us=100; end").go()
    for _ in range(3):
        tool = Tool("-p", workload.pid, "-e")
        wait_until(lambda: len(tool.lines) > 100, "100 lines")
        tool.stop()
    workload.stop()


@case(asan=True)
def lost_events_are_counted():
    """The tool is stopped during 50,000 calls: the number of events that did not fit into the buffer is exact."""
    workload = Workload("launch vecadd 50000; touch {dir}/done; wait {dir}/end; launch saxpy 10")
    tool = Tool("-p", workload.pid, "-e", "--ring-mb", 1, losses=True)
    os.kill(tool.pid, signal.SIGSTOP)
    wait_until(lambda: system.stat_fields(tool.pid)[0] == "T", "the tool has stopped")
    workload.go()
    wait_until((workload.go_file.parent / "done").exists, "the calls are made")
    os.kill(tool.pid, signal.SIGCONT)
    wait_until(lambda: len(tool.lines) > 4000, "the tool reads again")
    (workload.go_file.parent / "end").touch()
    workload.wait()
    tool.finish()
    seen, lost = len(tool.events), tool.lost.get("events_lost", 0)
    equal(set(tool.lost), {"events_lost"}, "losses")
    check(lost > 10000, f"only {lost} events are lost, although the buffer is much too small for all events")
    equal(seen + lost, 50010, "events and losses")
    check("events lost" in tool.error and "--ring-mb" in tool.error, f"no message with a remedy: {tool.error}")
