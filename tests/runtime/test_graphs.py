# SPDX-License-Identifier: Apache-2.0
"""cudagraph: rows, lines and storms of real programs. tests/bpf/graph_test.cpp tests each function."""
from collections import Counter

import graphs
from graphs import case, trace_graphs
from harness import check, equal
from programs import Tool, Workload


@case(gpu=True)
def nodes_on_a_device():
    """Graphs with added and captured nodes (over two streams), clones and children are instantiated, launched, updated
    and launched again. Results are compared with numbers from the script, since real drivers report none."""
    workload = Workload("""
    graph create G; graph add G kernel 3; graph add G memset 2; graph add G memcpy 1; graph add G host 2; graph add G empty 1
    capture begin stream=1; launch vecadd 5 stream=1; event record E stream=1; event wait E stream=2; launch saxpy 4 stream=2
    event record F stream=2; event wait F stream=1; capture end C stream=1; graph clone G D; graph add D kernel 4; graph add D child of=C
    graph instantiate G X; graph launch X 10; graph instantiate C Y; graph upload Y 2; graph launch Y 20 stream=1; sync 1
    graph instantiate D Z; graph launch Z 7; graph create H; graph add H kernel 3; graph add H memset 2; graph add H memcpy 1
    graph add H host 2; graph add H empty 1; graph update X H; graph launch X 3; sync 1; graph execdestroy X
    """, "workload-driver")
    tool = Tool("-p", workload.pid)
    workload.go().wait()
    shown = [dict(graph["last"], **graph["sums"]) for _, graph in sorted(graphs.graph_rows(tool.finish()).items())]
    keys = "kernels", "copies", "memsets", "host_functions", "other_nodes", "launches", "kernels_launched", "updates", "uploads", "errors"
    equal([tuple(row[key] for key in keys) for row in shown],
          [(3, 1, 2, 2, 1, 13, 39, 1, 0, 0), (9, 0, 0, 0, 0, 20, 180, 0, 2, 0), (16, 1, 2, 2, 1, 7, 112, 0, 0, 0)], "graphs")


@case
def captured_nodes():
    """Calls on a captured stream become nodes, by kind; failed calls, and calls on other streams, do not."""
    script = """
    launch scale 9 stream=1; capture begin stream=1; launch scale 3 stream=1; launch scale 2 stream=1 result=719; launch scale 7 stream=2
    hostfunc 2 stream=1; copy 4 fn=cuMemcpyHtoDAsync_v2 stream=1; copy 5 fn=cuMemsetD8Async stream=1; copy 1 fn=cuMemcpyDtoD_v2
    copy 2 fn=cuMemPrefetchAsync stream=1; alloc m 4096 fn=cuMemAllocAsync stream=1; free m stream=1; launch scale 11
    capture end G stream=1; launch scale 6 stream=1; graph instantiate G X; graph launch X 13 stream=1
    capture begin stream=1; launch scale 1 stream=1; graph launch X 2 stream=1; graph launch X stream=2; capture end H stream=1
    graph instantiate H Y; graph launch Y 5
    """
    trace_graphs(script, form="workload13", api="both")


@case(asan=True)
def concurrent_captures():
    """Captures of one thread on two streams, and of several threads; handles are reused by other threads."""
    script = """
    capture begin stream=1; capture begin stream=2; launch scale 3 stream=1; launch vecadd 5 stream=2; capture end G stream=1
    launch scale 7 stream=2; launch scale 9 stream=1; capture end H stream=2; graph instantiate G X; graph instantiate H Y
    graph launch X 2; graph launch Y 3
    threads 4; repeat 50; capture begin stream=own; launch scale 2 stream=own; copy 1 fn=cuMemcpyHtoDAsync_v2 stream=own
    capture end .G stream=own; graph instantiate .G .X; graph launch .X 3 stream=own; graph execdestroy .X; graph destroy .G; end; end
    threads 4; repeat 50; capture begin stream=own; launch scale 2 stream=own; launch scale 9 stream=per-thread
    launch scale 3 fn=cuLaunchKernel_ptsz; capture end .G stream=own fn=cuStreamEndCapture_ptsz; graph instantiate .G .X
    graph launch .X 2 fn=cuGraphLaunch_ptsz; graph execdestroy .X; graph destroy .G; launch scale 1 stream=per-thread; end; end
    """
    trace_graphs(script)


@case(asan=True)
def lines_of_calls():
    """-e, and -x: lines of several threads equal the calls in the truth file."""
    workload = Workload("""
    threads 3; graph create .G; graph add .G kernel 2; graph instantiate .G .X; graph launch .X 2 stream=own; graph launch .X result=700
    capture begin stream=own; launch scale 3 stream=own; graph launch .X stream=own; capture end .H stream=own
    graph update .X .H update_result=2; graph execdestroy .X; graph destroy .G result=1; end
    """, "workload-driver")
    every, failed = Tool("-p", workload.pid, "-e"), Tool("-p", workload.pid, "-e", "-x")
    workload.go().wait()
    want, last = Counter(), {}
    for call in graphs.calls(workload):
        want[call["tid"], call["function"], call["result"], call["exec"], int(call["recorded"])] += call["count"]
    for event in every.finish().events:
        check(event["time_ns"] >= last.get(event["tid"], 0), f"out of order: {event}")
        last[event["tid"]] = event["time_ns"]
    for tool, wanted in (every, want), (failed.finish(), {call: n for call, n in want.items() if call[2]}):
        equal(Counter((e["tid"], e["function"], e["result_code"], e.get("exec"), e["captured"]) for e in tool.events), wanted, f"{tool}")


storm = """
deeper; repeat 9; capture begin stream=1; launch scale 1 stream=1; capture end G stream=1; graph instantiate G X; graph launch X
graph execdestroy X; graph destroy G; end; end; touch {dir}/made%s; sleep 1300
"""


@case(asan=True)
def storms():
    """A process that captures more often than the limit is reported once, with rate and stack. Processes below the limit,
    and captures during the warm-up, are not reported."""
    workload, calm = Workload(storm % 0), Workload(storm.replace("repeat 9", "repeat 4") % 1)
    pids = f"{workload.pid},{calm.pid}"
    tool, all_of_it, text, warm = (Tool("-p", pids, "--storms", *more, **options) for more, options in (
        (["--warm-up", "0"], {}), (["2", "--warm-up", "0"], {}), (["--warm-up", "0"], {"json": False}), ([], {})))
    workload.go(), calm.go()
    workload.wait(), calm.wait()
    line, = tool.finish().events
    equal((line["pid"], line["captures_per_minute"], line["instantiates_per_minute"], line["event"]), (workload.pid, 9, 9, "storm"), f"{line}")
    check(any("workload::" in frame for frame in line["frames"]), f"no frame of the program: {line}")
    equal({e["pid"]: e["captures_per_minute"] for e in all_of_it.finish().events}, {workload.pid: 9, calm.pid: 4}, f"{all_of_it}")
    equal(warm.finish().events, [], "storms during warm-up")
    for each in tool, warm, all_of_it:
        equal(each.rows, [], f"rows of {each}")
    head, row, *frames = text.finish().text.splitlines()
    check("CAPTURES/min" in head and str(workload.pid) in row.split(), f"{text.text}")
    check(any("workload::" in frame for frame in frames), f"no frame of the program in: {text.text}")
