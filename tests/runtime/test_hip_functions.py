# SPDX-License-Identifier: Apache-2.0
"""Calls each HIP function of the probe table with its own arguments. The tools' reports must be exact."""
import itertools
import re
from collections import Counter

from harness import case, check, equal
from hip import Calls, library, start, versions
from hip_calls import (captures, dim3, event, exported, graph_calls, kernel, launches, named, other_launches,
                       per_thread, rows_of_the_table, stream, stream_of, times, waits, words)
from programs import Tool


@case
def every_row():
    """The newest library of the stand-in has every function of the table."""
    traced = rows_of_the_table("7")
    check(len(traced) > 200, f"{len(traced)} rows were read")
    equal(traced - exported("7") - exported("7", "null"), set(), "functions that the stand-in does not have")


@case(each=versions, timeout=120)
def every_launch(version):
    """Counts, grids, blocks, shared memory and streams; failed launches have HIP's error names."""
    calls = Calls(library(version))
    lines, failed = (start("cudalaunch", "-p", calls.pid, *how) for how in (("-e", "-l"), ("-x",)))
    want, failures = Counter(), 0
    for number, (function, arguments, shapes) in enumerate([*launches(version), *((*row, [None]) for row in other_launches(version))]):
        calls.call(function, times(number % 7), *arguments)
        calls.order("result", 719)
        equal(calls.call(function, 1, *arguments), {719: 1}, "ordered result")
        failures += len(shapes)
        for shape in shapes:
            dimensions = (*map(tuple, shape), shared_memory(function)) if shape else (None, None, None)
            key = function, hex(per_thread if function.endswith("_spt") else stream), *dimensions
            want[*key, 0] += times(number % 7)
            want[*key, 719] += 1
    calls.end()
    made = Counter((line["function"], line["stream"], *(tuple(line[key]) if line.get(key) else None for key in ("grid", "block")),
                    line.get("shared_memory_bytes"), line["result_code"]) for line in lines.finish().events)
    equal(made, want, "launches")
    equal({line["vendor"] for line in lines.events}, {"amd"}, "vendors")
    error_names = Counter()
    for row in failed.finish().rows:
        error_names[row["result"]] += sum(row.get(key) or 0 for key in ("launches", "graph_launches", "host_functions"))
    equal(error_names, {"hipErrorLaunchFailure": failures}, "failures")


def shared_memory(function):
    """Shared memory that the calls in launches() request."""
    if "MultiDevice" in function:
        return 128
    return 0 if "Ext" in function and "Module" in function or "Hcc" in function else 256 if function.startswith("hipModule") else 512


@case(each=versions, tool="cudasync")
def every_wait(version):
    """Polls that return "not ready" are counted separately."""
    calls = Calls(library(version))
    tool = Tool("-p", calls.pid, "-e")
    want = Counter()
    for number, (function, arguments, wait) in enumerate(waits(version)):
        busy = 2 if wait == "poll" else 0
        calls.order("busy", busy)
        calls.call(function, times(number), *arguments)
        calls.order("result", 719)
        calls.call(function, 1, *arguments)
        key = function, stream_of(function, arguments), wait
        want |= {(*key, 0): times(number) - busy, (*key, 600): busy, (*key, 719): 1}
    calls.end()
    made = Counter((line["function"], line["stream"], line["wait"], 600 if line["not_ready"] else line["result_code"])
                   for line in tool.finish().events)
    equal(made, +want, "waits")


@case(each=versions, tool="cudagraph", timeout=120)
def every_call_about_graphs(version):
    """Each event has its graph's node counts at that time; a failed call does not change them."""
    calls = Calls(library(version))
    tool = Tool("-p", calls.pid, "-e")
    nodes, want = {}, []
    for function, arguments, call, more in graph_calls(version):
        graph = arguments[1] if call == "add" else arguments[0].removeprefix("&")
        if call not in ("create", "instantiate"):
            calls.order("result", 1)
            calls.call(function, 1, *arguments)
            want.append((function, call, *nodes[graph], 1))
        if call == "add":
            nodes[graph] = tuple(a + b for a, b in zip(nodes[graph], more))
        elif call in ("create", "instantiate", "update"):  # a copy of another graph, or empty
            nodes[graph] = nodes.get(arguments[1], (0, 0, 0))
        calls.call(function, 1, *arguments)
        want.append((function, call, *nodes[graph], 0))
    calls.order("result", 910)
    calls.call("hipGraphExecUpdate", 1, "Y", "C", "&n", words(3))
    calls.end()
    events = tool.finish().events
    got = [(line["function"], line["call"], *(line[key] for key in ("kernels", "copies", "other_nodes")), line["result_code"])
           for line in events]
    equal(dict(enumerate(got[:-1])), dict(enumerate(want)), "lines")
    last = events[-1]
    equal((last["function"], last["result"], last["update_reason"]),
          ("hipGraphExecUpdate", "hipErrorGraphExecUpdateFailure", "node type"), "a refused update")


@case(each=versions, tool="cudagraph", timeout=120)
def every_capture(version):
    """Every way to begin and end a capture, and to extend it to another stream. One of the two streams is the
    per-thread stream; launches on both are captured."""
    calls = Calls(library(version))
    tool = Tool("-p", calls.pid, "-e")
    functions, want = captures(version), []

    def on(function, which):
        return 0 if which == per_thread and function.endswith("_spt") else which

    def launch(which, count):
        calls.call("hipModuleLaunchKernel", count, kernel, 5, 4, 3, 32, 8, 1, 0, which)

    for number, (begin, end, record, wait) in enumerate(itertools.product(*functions.values())):
        first, second = (stream, per_thread) if wait.endswith("_spt") else (per_thread, stream)
        calls.call("hipGraphCreate", 1, "&G", 0)
        calls.call(begin, 1, on(begin, first), "G" if "ToGraph" in begin else 0, 0, 0, 0, 0)
        launch(first, 2)
        calls.call(record, 1, event, on(record, first), 0)
        calls.call(wait, 1, on(wait, second), event, 0)
        launch(second, 1 + number % 3)
        calls.call(end, 1, on(end, first), "&g")
        want += [("hipGraphCreate", "create", 0), (begin, "begin", 0 if "ToGraph" in begin else None), (end, "capture", 3 + number % 3)]
    calls.end()
    got = [(line["function"], line["call"], line.get("kernels")) for line in tool.finish().events]
    equal(dict(enumerate(got)), dict(enumerate(want)), "lines")


@case(each=versions)
def every_name(version):
    """Kernels registered and looked up during tracing, with each function that returns a handle."""
    calls = Calls(library(version))
    tool = Tool("-p", calls.pid, "--by", "pid,kernel", 100)
    want = Counter()
    for number, (function, arguments, handle, name, source) in enumerate(named(version)):
        calls.call(function, 1, *arguments)
        want[name, source] += times(number)
        if handle == kernel:
            calls.call("hipLaunchKernel", times(number), kernel, *dim3(2, 1, 1), *dim3(64, 1, 1), 0, 0, stream)
        else:
            calls.call("hipModuleLaunchKernel", times(number), handle, 2, 1, 1, 64, 1, 1, 0, stream)
    calls.end()
    made = Counter()
    for row in tool.finish().rows:
        made[row.get("kernel"), row.get("name_source")] += row["launches"]
    equal(made, want, "launches by kernel")


@case(each={"6": "6"}, tool="cudamemcpy", alone=True)
def process_traced_from_its_start(version):
    """A process that starts after the tool, and calls hipInit(). Memory that HIP did not allocate is host memory, and a
    thread that set no device uses the first one."""
    other = Calls(library(version))  # so that the tool attaches to the library
    tool, held = start("cudamemcpy", "--by", "pid,kind,memory", 100), start("gpualloc", "--by", "pid,kind", 100)
    calls = Calls(library(version))
    calls.call("hipInit", 1, 0)
    calls.call("hipMalloc", 1, "&p", 4096)
    calls.call("hipHostMalloc", 1, "&h", 4096, 0)
    calls.call("hipMallocManaged", 1, "&m", 4096, 1)
    calls.call("hipMemcpy", 3, "p", "&heap", 100, 4)
    calls.call("hipMemcpy", 5, "h", "p", 100, 4)
    calls.call("hipMemcpy", 7, "p", "p", 100, 4)
    calls.call("hipMemcpy", 9, "p", "m", 100, 4)
    calls.call("hipHostFree", 1, "h")
    calls.call("hipMemcpy", 11, "h", "p", 100, 4)
    other.call("hipMalloc", 1, "&p", 4096)
    other.call("hipMemcpy", 13, "p", "&heap", 100, 4)
    for each in calls, other:
        each.call("hipDeviceReset", 1)
    calls.end(), other.end()
    found = {(row["pid"], row["kind"], row["source"], row["destination"]): row["copies"] for row in tool.stop().rows}
    want = {("H2D", "pageable", "device"): 3, ("D2H", "device", "pinned"): 5, ("D2D", "device", "device"): 7,
            ("unknown", "managed", "device"): 9, ("unknown", "device", "unknown"): 11}
    want = {(calls.pid, *key): count for key, count in want.items()}
    equal(found, want | {(other.pid, "H2D", "host", "device"): 13}, "copies")
    found = {(row["pid"], row["kind"]): (row["released"], row["live_bytes"]) for row in held.stop().rows}
    equal({pid: found[pid, "device"] for pid in (calls.pid, other.pid)}, {calls.pid: (1, 0), other.pid: (0, 4096)}, "freed by a reset")


@case(each=versions)
def probe_placement(version):
    """Probes of forwarding functions sit after the first instruction, except in functions that jump to address 0."""
    calls = Calls(library(version))
    without_target = {"5": 0, "6": 0}.get(version, len(exported(version, "null")))
    for tool, single_stepped in (("cudagraph", without_target), ("gpualloc", 0)):
        messages = start(tool, "-p", calls.pid, "-v", 100).stop().error
        count, places = re.search(r"libamdhip64\.so\.\d: (\d+) of \d+ functions, (.*?)(?:; not in this file.*)?$", messages, re.M).groups()
        want = f"{int(count) - single_stepped} at +4" + f", {single_stepped} at +0 (single-stepped by the kernel: slow)" * bool(single_stepped)
        equal(sorted(places.split(", ")), sorted(want.split(", ")), f"places of {tool}")
