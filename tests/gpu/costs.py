# SPDX-License-Identifier: Apache-2.0
"""Measures the overhead of tracing. Programs repeat one operation, alternately untraced and traced; the result is the
median number of operations per second."""
import collections
import pathlib
import statistics
import time

import machine
from bench import Missing, Wrong, bench, until

here = pathlib.Path(__file__).parent
all_ways = {"untraced": None, "cudatop": ["cudatop"], "cudatop --cheap": ["cudatop", "--cheap"],
             "cudatop --latency": ["cudatop", "--latency"],
             "cudalaunch": ["cudalaunch"], "cudagap": ["cudagap"], "nvioctl": ["nvioctl"]}

# `threads` threads make `count` operations in total, after the setup `before`. `ways` names the tools to measure in
# addition to no tool and cudatop. `goal` is the maximum slowdown by cudatop in percent. A "step" keeps the GPU busy for
# 500 us and copies its input and output, like a matrix multiplication.
Load = collections.namedtuple("Load", "key name count threads before script ways goal")
loads = [
    Load("launch", "launch", 200_000, 1, "", "launch empty {each}", [*all_ways], 10),
    Load("launch_8", "launch, 8 threads", 200_000, 8, "", "launch empty {each}",
         ["cudatop --cheap", "cudatop --latency", "cudalaunch"], 10),
    Load("graph", "graph of 20 kernels", 50_000, 1, "build empty 20", "graph {each}", ["cudalaunch", "cudagraph"], None),
    Load("copy", "copy of 256 bytes", 50_000, 1, "alloc a 256 fn=cuMemAlloc_v2",
         "copy {each} fn=cuMemcpyHtoD_v2 dst=a bytes=256", ["cudamemcpy", "gpualloc"], None),
    Load("step", "step of 500 us", 1000, 1, "alloc a 1048576 fn=cuMemAlloc_v2",
         "repeat {each}; copy 1 fn=cuMemcpyHtoDAsync_v2 dst=a bytes=65536; launch spin_us_500 1\n"
         "copy 1 fn=cuMemcpyDtoHAsync_v2 src=a bytes=4096; sync 1 fn=cuStreamSynchronize; end",
         ["cudatop --cheap", "cudatop --latency", "cudasync", "cudagap", "ncclwait"], 1),
]
training = Load("training", "training step (PyTorch)", 300, 1, None, None, ["cudatop --cheap", "cudatop --latency"], 1)


def command_of(load, count, given):
    """A command that is synchronized by the files up, go, done and end in {folder}. Training steps run in
    samples/timed.py, started by gated.py, which does not wait here, since its stdin is empty."""
    if load is training:
        return [given.python, "-B", str(here / "samples/gated.py"), given.driver, str(here / "samples/timed.py"), "{folder}", str(count)]
    each = load.script.format(each=count // load.threads)
    script = (f"launch empty 1; launch spin_us_500 1; {load.before}; sync 1; touch {{folder}}/up; wait {{folder}}/go\n"
              f"threads {load.threads}; {each}; end; sync 1; touch {{folder}}/done; wait {{folder}}/end")
    return [str(given.build / "standin/workload-dlopen"), script]


def rate(build, command, count, tool):
    """Operations per second of a new process. Tracing begins before the measured operations."""
    with bench(build) as one:
        program = one.start(command, "program", {"WORKLOAD_DEVICE": "1"})
        until((one.folder / "up").exists, "the program has started", 120, watched=[program], every=0.001)
        if tool:
            one.tool(*tool, "-p", program.pid)
        began = time.monotonic()
        one.go()
        until((one.folder / "done").exists, "all operations are done", 300, watched=one.running, every=0.001)
        return count / (time.monotonic() - began)


def compared(load, given, rounds, fraction):
    """One row with the median rate for each way to trace. `fraction`: the part of the load's operations to perform."""
    count = int(load.count * fraction)
    command, rates = command_of(load, count, given), collections.defaultdict(list)
    ways = {way: all_ways.get(way, [way]) for way in dict.fromkeys(["untraced", "cudatop", *load.ways])}
    for _ in range(rounds):
        for way, tool in ways.items():
            rates[way].append(rate(given.build, command, count, tool))
    medians = {way: statistics.median(values) for way, values in rates.items()}
    return [{"load": load.name, "way": way, "rounds": rounds, "per_second": round(median, 1), "least": round(min(rates[way]), 1),
             "most": round(max(rates[way]), 1), "slower_percent": round(100 * (1 - median / medians["untraced"]), 1),
             "goal_percent": load.goal if way == "cudatop" else None}
            for way, median in medians.items()]


def measured(load, given, rounds, fraction, check):
    """The rows of a load; if there are none, a check reports the reason."""
    name, rows = f"costs.{load.key}", []
    if missing := load is training and machine.missing_module(given.python, "torch"):
        check(name, "skip", missing)
        return rows
    try:
        rows = compared(load, given, rounds, fraction)
        check(name, "ok")
    except (Missing, Wrong, OSError) as error:
        check(name, "FAIL", str(error))
    return rows


def run(given, rounds, fraction, unable, check, wanted, start):
    """Starts the measurements of all loads. Returns one function per load, which waits for that load's measurement and
    returns its rows. `unable`: why the tools cannot trace or CUDA does not work; None if both work."""
    chosen = [load for load in (*loads, training) if wanted(f"costs.{load.key}")]
    if unable and chosen:
        check("costs", "skip", unable)
    return [] if unable else [start(measured, load, given, rounds, fraction, check) for load in chosen]
