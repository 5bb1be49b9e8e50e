# SPDX-License-Identifier: Apache-2.0
"""cudagraph: lines per event, histograms, and re-capture storms."""
import re
from collections import Counter, defaultdict

import graphs
from graphs import case
from harness import check, equal
from programs import Tool, Workload, trace
from truth import bucket

# Expected line of each step: call, names of the graph and the executable graph, numbers of kernels, copies and other
# nodes, result, reason.
story = [
    ("graph create G", "create G - 0 0 0 0"),
    ("graph add G kernel 2", "add G - 1 0 0 0; add G - 2 0 0 0"),
    ("graph add G memcpy", "add G - 2 1 0 0"),
    ("graph add G memset", "add G - 2 2 0 0"),
    ("graph add G host", "add G - 2 2 1 0"),
    ("graph add G empty result=1", "add G - 2 2 1 1"),
    ("graph clone G C", "create C - 2 2 1 0"),
    ("graph add C child of=G", "add C - 4 4 2 0"),
    ("graph instantiate G Z result=2", "instantiate G - 2 2 1 2"),
    ("graph instantiate G X", "instantiate G X 2 2 1 0"),
    ("graph launch X 2 stream=own", "launch G X 2 2 1 0; launch G X 2 2 1 0"),
    ("graph launch X result=700", "launch G X 2 2 1 700"),
    ("graph upload X", "upload G X 2 2 1 0"),
    ("graph setparams X kernel", "set G X 2 2 1 0"),
    ("graph update X C update_result=3", "update C X 2 2 1 910 node type"),
    ("graph update X C update_result=2", "update C X 2 2 1 910 topology"),
    ("graph update X G", "update G X 2 2 1 0"),
    ("capture begin stream=own", "begin - - ? ? ? 0"),
    ("launch scale 3 stream=own; copy 2 fn=cuMemcpyHtoDAsync_v2 stream=own", ""),
    ("graph launch X stream=own", "launch G X 2 2 1 0 captured"),
    ("capture end H stream=own", "capture H - 5 4 1 0"),
    ("graph instantiate H Y", "instantiate H Y 5 4 1 0"),
    ("graph execdestroy X", "exec-destroy G X 2 2 1 0"),
    ("graph execdestroy Y result=1", "exec-destroy H Y 5 4 1 1"),
    ("graph launch Y", "launch H Y 5 4 1 0"),
    ("graph destroy G", "destroy G - 2 2 1 0"),
    ("graph destroy H result=1", "destroy H - 5 4 1 1"),
    ("graph instantiate H W", "instantiate H W 5 4 1 0"),
    ("capture begin stream=own; launch scale 3 stream=own; sync 1 fn=cuStreamSynchronize stream=own", "begin - - ? ? ? 0"),
    ("capture end K stream=own", "capture - - ? ? ? 901"),
]


def described(event, names):
    """A line of the tool, written like the lines in `story`. `names`: script names of the handles at the time of the
    call."""
    known = [str(event.get(name, "?")) for name in ("kernels", "copies", "other_nodes")]
    handles = [names.get(event.get(name), event.get(name, "-")) for name in ("graph", "exec")]
    words = [event["call"], *handles, *known, str(event["result_code"])]
    return " ".join(words + [event[key] for key in ("update_reason",) if key in event] + ["captured"] * event["captured"])


def by_thread(events):
    out = defaultdict(list)
    for event in sorted(events, key=lambda event: event["time_ns"]):
        out[event["tid"]].append(event)
    return out


@case(each={"one": 1, "threads": 3}, asan=True)
def the_life_of_graphs(threads):
    """Lines are in order per thread, with the nodes known at that time. Each thread's graphs have their own names."""
    steps = "\n".join(re.sub(r"\b([GCHKXYZW])\b", r".\1", step) for step, _ in story)
    workload = Workload(f"threads {threads}\n{steps}\nend", "workload-driver")
    every, failed = Tool("-p", workload.pid, "-e"), Tool("-p", workload.pid, "-e", "-x")
    workload.go().wait()
    want = [line for _, lines in story for line in lines.split("; ") if line]
    calls = Counter()
    for tid, events in by_thread(every.finish().events).items():
        names, got = {}, []
        for event, line in zip(events, want):
            for key, name in zip(("graph", "exec"), line.split(" ")[1:3]):
                if key in event and event["call"] in ("create", "capture", "instantiate") and not event["result_code"]:
                    if key == "exec" or event["call"] != "instantiate":
                        names[event[key]] = name
            got.append(described(event, names))
        equal(dict(enumerate(got)), dict(enumerate(want)), f"lines of thread {tid}")
        equal(len(events), len(want), "lines")
        calls.update((e["tid"], e["function"], e["result_code"], e.get("exec"), e["captured"]) for e in events)
    truth = Counter()
    for c in graphs.calls(workload):
        truth[c["tid"], c["function"], c["result"], c["exec"], int(c["recorded"])] += c["count"]
    equal(calls, truth, "calls")
    want = Counter()
    for (tid, function, result, *_), n in truth.items():
        want[tid, function, result] += n if result else 0
    equal(Counter((e["tid"], e["function"], e["result_code"]) for e in failed.finish().events), +want, f"{failed}")


@case
def histograms():
    """Durations of launches and instantiations, and sizes of launched graphs."""
    script = """graph create G; graph add G kernel 3; graph instantiate G X block_us=30000; graph launch X 5 block_us=10000
    graph launch X 20; graph create H; graph add H kernel 40; graph add H memset 60; graph instantiate H Y; graph launch Y 7
    graph launch Y 2 result=700"""
    workload = Workload(script, "workload-driver")
    tools = {name: Tool("-p", workload.pid, "-H", name, *more) for name, more in
             (("launch", ["--by", "graph"]), ("instantiate", []), ("nodes", []))}
    workload.go().wait()
    hists = {name: tool.finish().of_type("hist") for name, tool in tools.items()}
    execs = {row["handle"]: row for row in graphs.truth_lines(workload, "exec")}
    equal({h["exec"]: h["total"] for h in hists["launch"]}, {handle: row["launches"] + row["failed_launches"]
                                                             for handle, row in execs.items()}, "launches")
    slow, = (h for h in hists["launch"] if h["total"] == 25)
    equal(sum(b["count"] for b in slow["buckets"] if b["high"] >= 10000), 5, "slow launches")
    one, = hists["instantiate"]
    equal((one["total"], one["unit"], sum(b["count"] for b in one["buckets"] if b["high"] >= 30000)), (2, "usecs", 1), "instantiations")
    low = bucket(30000)[0]
    longest = max(row["instantiate_ns"] for row in execs.values()) // 1000
    check(low <= max(b["high"] for b in one["buckets"]) <= bucket(longest)[1], f"{one}, {longest}")
    one, = hists["nodes"]
    got = {(b["low"], b["high"]): b["count"] for b in one["buckets"] if b["count"]}
    equal((got, one["unit"]), ({bucket(3): 25, bucket(100): 9}, "nodes"), "nodes")


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


@case
def storms_of_instantiations():
    """A process that only instantiates, through the runtime, is reported too."""
    workload = Workload("graph create G; graph add G kernel; repeat 20; graph instantiate G X; graph execdestroy X; end; sleep 1300")
    tool = Tool("-p", workload.pid, "--storms", 19, "--warm-up", 0, "--api", "runtime")
    none = Tool("-p", workload.pid, "--storms", 20, "--warm-up", 0)
    workload.go().wait()
    line, = tool.finish().events
    equal((line["captures_per_minute"], line["instantiates_per_minute"]), (0, 20), f"{line}")
    equal(none.finish().events, [], f"{none}")


@case
def memory_of_graphs_is_trimmed():
    """A trim of graph memory prints a line; a trim of a pool does not."""
    tool, _ = trace("alloc P 0 fn=cuMemPoolCreate; trim P 4096; trim graph; alloc a 64", "-e", form="workload-driver")
    equal([(event["call"], event["function"], event["result_code"]) for event in tool.events],
          [("trim", "cuDeviceGraphMemTrim", 0)], "lines")
