# SPDX-License-Identifier: Apache-2.0
"""Comparison of cudatop's figures with the truth file: each call counts once in every column that it concerns."""
import functools
import math
from collections import Counter

import copies
import graphs
import harness
import memory
import programs
import waits
from harness import check, equal
from programs import Workload
from truth import layer_wanted, weight

case = functools.partial(harness.case, tool="cudatop")

# Stacks may be lost by chance: in code without frame pointers, and by collisions in the table of stacks. same_sums()
# checks for other losses.
Tool = functools.partial(programs.Tool, losses=True)

modes = {"default": [], "latency": ["-l"], "cheap": ["--cheap"]}

launched = ("launches", "grids", "small_grids", "host_functions", "graph_launches")
copied = ("copies", "small_copies", "copies_unsized", "h2d_bytes", "d2h_bytes", "d2d_bytes")
made = ("captures", "failed_captures", "instantiates")
# Figures that need return probes.
needs_returns = ("captured", "graph_kernels", "graphs_unknown", "allocs", "frees", "allocation_failures", "out_of_memory",
            "waits", "polls", "errors")
never_cheap = needs_returns + made + ("graph_kernels_per_second", "live_bytes", "live_is_lower_bound", "growth_bytes_per_second",
                          "allocs_and_frees_per_second", "blocked_percent", "blocked_ns", "spinning_percent",
                          "errors_per_second", "launch_p99_ns")
costs = ("traced_processes", "probe_hits_per_second", "lost")


# Functions whose grid is always read.
grid_is_read = ("cuLaunchKernel", "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernelMultiDevice")


def launches(call, latency):
    n = weight(call)
    if latency and call["result"]:
        return Counter(errors=n)
    if call["recorded"]:
        return Counter(captured=n)
    if call["kind"] == "graph":
        return Counter(graph_launches=n, graph_kernels=n * call["kernels"])
    if call["kind"] == "kernel" and call["function"].removesuffix("_ptsz") in grid_is_read:
        return Counter(launches=n, grids=n, small_grids=n if math.prod(call["grid"]) < 32 else 0)
    return Counter({"launches" if call["kind"] == "kernel" else "host_functions": n})


def copies_of(call, latency):
    sums = copies.sums(call, latency)
    out = Counter(copies=sums["copies"], small_copies=sums["small"], copies_unsized=sums["unsized"])
    if (direction := call["direction"]) in ("h2d", "d2h", "d2d", "p2p"):
        out[f"{direction.replace('p2p', 'd2d')}_bytes"] = sums["bytes"]
    if call["result"] and (latency or waits.wait_of(call)):
        out["errors"] = call["count"]
    return out


def memory_of(call):
    n = call["count"]
    if call["result"]:
        return Counter(errors=n, allocation_failures=n,
                       out_of_memory=n if call["kind"] == "alloc" and call["result"] == 2 else 0)
    known = memory.kind_of(call["holding"]) in memory.memory and not call["recorded"]
    return Counter({call["kind"] + "s": n if known else 0})


def waits_of(call):
    wait = waits.wait_of(call)
    return Counter({"polls" if wait == "poll" else "waits": call["count"]}) if wait else Counter()


def of_call(call, mode):
    """Figures that a driver call adds to its row."""
    latency = "-l" in mode
    out = waits_of(call)
    if call["kind"] in ("kernel", "graph", "host"):
        out += launches(call, latency)
    elif copies.is_copy(call):
        out += copies_of(call, latency)
    elif memory.is_memory(call):
        out += memory_of(call)
    elif call["kind"] in ("sync", "poll") and waits.wait_of(call) and call["result"] not in (0, 600):
        out["errors"] += call["count"]
    return out


def expected(truth, by=("pid",), mode=()):
    """{(values of `by`..., figure): count}."""
    out = Counter()
    for call in truth:
        if layer_wanted(call, "driver"):
            for measure, n in of_call(call, mode).items():
                if "--cheap" not in mode or measure not in needs_returns:
                    out[*(call[field] for field in by), measure] += n
    return {key: n for key, n in out.items() if n}


def rows(tool, by=None):
    """Rows of one kind; without `by`, all rows except sums, GPUs and verdicts."""
    return [row for row in tool.rows if (row["by"] not in ("total", "gpu", "diagnosis") if by is None else row["by"] == by)]


def found(some, by=("pid",)):
    out = Counter()
    for row in some:
        for measure in launched + copied + needs_returns:
            out[*(row.get(field) for field in by), measure] += row.get(measure, 0)
    return {key: n for key, n in out.items() if n}


def same(tool, truth, by=("pid",), mode=()):
    """Compares the tool's rows with the truth, exactly. With `pid` in `by`, only rows of the truth's processes are
    compared."""
    pids = {call["pid"] for call in truth}
    mine = [row for row in rows(tool) if "pid" not in by or row["pid"] in pids]
    equal(found(mine, by), expected(truth, by, mode), f"{tool}, by {', '.join(by)}")


def graphs_made(some):
    return {name: n for name in made if (n := sum(row.get(name, 0) for row in some))}


def same_graphs_made(tool, workload):
    """Compares the numbers of captures and instantiations, including failed ones."""
    want = Counter()
    for call in graphs.calls(workload):
        ok = not call["result"]
        if call["kind"] == "end":
            want["captures" if ok else "failed_captures"] += call["count"]
        elif call["kind"] == "instantiate" and ok:
            want["instantiates"] += call["count"]
    equal(graphs_made([row for row in rows(tool) if row.get("pid") == workload.pid]), dict(want), f"{tool}: graphs made")


def same_sums(tool):
    """Checks that each interval's sum row is the sum of its rows, and has the tool's cost and losses. Returns the sum
    rows."""
    equal({key: n for key, n in tool.lost.items() if key != "stacks_lost"}, {}, f"losses of {tool}")
    sums, parts = {}, {}
    for row in tool.rows:
        if row["by"] == "total":
            check(row["time"] not in sums, f"more than one sum for an interval: {row}")
            sums[row["time"]] = row
        elif row["by"] not in ("gpu", "diagnosis"):
            parts.setdefault(row["time"], []).append(row)
    check(sums, f"{tool} prints no sums")
    for time, row in sums.items():
        equal(found([row], ()), found(parts.get(time, []), ()), f"{tool}: the sum of {time}")
        equal(graphs_made([row]), graphs_made(parts.get(time, [])), f"{tool}: graphs made in the sum of {time}")
        equal(row.get("live_bytes", 0), sum(r.get("live_bytes", 0) for r in parts.get(time, [])), "live_bytes of the sum")
        equal([key for key in costs if key not in row], [], f"{tool}: own cost in {row}")
    equal(row["lost"], sum(tool.lost.values()), "losses in the last sum")
    return list(sums.values())


def live(some, by=("pid",)):
    """Held memory in the last row of each key."""
    last = {tuple(row.get(field) for field in by): row.get("live_bytes") for row in some}
    return {key: held for key, held in last.items() if held}


def same_live(tool, *workloads):
    want = Counter()
    for workload in workloads:
        for row in memory.truth_lines(workload, "memory"):
            want[row["pid"],] += row["bytes"] if row["holding"] in memory.on_device else 0
    mine = [row for row in rows(tool) if (row.get("pid"),) in want or not want]
    equal(live(mine), {key: n for key, n in want.items() if n}, f"{tool}: memory held at the end")


def trace_top(script, *arguments, form="workload", **options):
    """Traces one workload from before its script until its exit, and compares all values that both the tool and the
    truth file have. Returns the tool and the workload."""
    workload = Workload(script, form)
    tool = Tool("-p", workload.pid, *arguments, **options)
    workload.go()
    truth = workload.truth()
    tool.finish()
    same(tool, truth, mode=arguments)
    same_sums(tool)
    if "--cheap" not in arguments:
        same_live(tool, workload)
        same_graphs_made(tool, workload)
    return tool, workload
