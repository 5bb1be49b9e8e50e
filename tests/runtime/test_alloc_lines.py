# SPDX-License-Identifier: Apache-2.0
"""gpualloc -e: one line per allocation and free, with exact values."""
from collections import Counter

import harness
import memory
from harness import check, equal, wait_until
from memory import case, kind_of
from programs import Tool, Workload
from test_allocs import driver_kinds
from truth import layer_wanted

# Kinds whose lines lack a size, always or sometimes. A call that unmaps several mappings has a line for each mapping.
no_size = {"imported", "multicast", "pool-object", "unknown"}


def lines_of(truth):
    out = Counter()
    for call in truth:
        kind = kind_of(call["holding"])
        of_null = call["kind"] == "free" and kind == "unknown" and not call["result"]
        if memory.is_memory(call) and layer_wanted(call, "driver") and not of_null:
            who = call["pid"], call["tid"], call["comm"]
            out[*who, call["layer"], call["stream"], call["function"], call["kind"], kind,
                None if kind in no_size else call["bytes"], call["result"],
                int(call["recorded"] or kind == "graph")] += call["count"]
    return dict(out)


def lines_in(tool):
    out = Counter()
    for e in tool.events:
        kind = kind_of(e["kind"])
        out[e["pid"], e["tid"], e["comm"], e["layer"], e["stream"], e["function"], e["operation"], kind,
            None if kind in no_size else e.get("bytes"), e["result_code"], e["captured"]] += 1
    return dict(out)


def failed_lines(lines):
    """With -x, the tool does not track memory, so it does not know which memory a failed call would have freed."""
    out = Counter()
    for key, n in lines.items():
        if key[9]:
            out[key[:7] + ((None, None) if key[6] == "free" else key[7:9]) + key[9:]] += n
    return dict(out)


@case(asan=True)
def by_many_threads():
    """Threads free each other's memory, and some calls fail."""
    workload = Workload(driver_kinds + """threads 8; churn 1000 held=100 fail=5
    fn=cuMemAlloc_v2,cuMemAllocAsync,cuMemHostAlloc,cuArrayCreate_v2,cuMemCreate; end; free a; unmap M; free n; free k"""
                        .replace("\n", " "), "workload-driver")
    lines, failed = (Tool("-p", workload.pid, "-e", "--ring-mb", 64, *more) for more in ([], ["-x"]))
    table = Tool("-p", workload.pid, "--by", "pid,kind", "-r", 0)
    workload.go()
    truth = workload.truth()
    equal(lines_in(lines.finish()), lines_of(truth), "lines")
    equal(failed_lines(lines_in(failed.finish())), failed_lines(lines_of(truth)), "lines of failed calls")
    check(all(e["result_code"] for e in failed.events), "a line of a call that succeeded, with -x")
    memory.same_calls(table.finish(), truth)
    last = {}
    for e in lines.events:
        check(e["time_ns"] >= last.get(e["tid"], 0), f"out of order, after {last.get(e['tid'])}: {e}")
        last[e["tid"]] = e["time_ns"]


@case
def stacks_of_lines():
    """A free has its own stack, not that of the allocation. The process must run until the tool has found the names of
    its frames."""
    workload = Workload("alloc a 100; free a; alloc b 5 result=2; wait {dir}/end", "workload-driver")
    tool = Tool("-p", workload.pid, "-e", "-U")
    workload.go()
    wait_until(lambda: len(tool.events) == 3, "three lines")
    (harness.here / "end").touch()
    workload.wait()
    equal(len({tuple(e["frames"]) for e in tool.finish().events}), 2, "number of different stacks")
    for e in tool.events:
        check(any("workload" in frame for frame in e["frames"]), f"no frame of the program: {e}")
