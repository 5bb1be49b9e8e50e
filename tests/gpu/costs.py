# SPDX-License-Identifier: Apache-2.0
"""What tracing costs: programs that do one thing, untraced and traced in turns; what they get done a second, medians."""
import collections
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import machine
import processes

here = pathlib.Path(__file__).parent
every_way = {"untraced": None, "cudatop": ["cudatop"], "cudatop --cheap": ["cudatop", "--cheap"],
             "cudatop --latency": ["cudatop", "--latency"],
             "cudalaunch": ["cudalaunch"], "cudagap": ["cudagap"], "nvioctl": ["nvioctl"]}

# What it does so often, by how many threads; what it does before; which ways besides untraced and cudatop; and by how much
# cudatop may slow it, if that is a goal. A step is what one of a matrix multiplication does, with its input and output: the
# GPU is busy for 500 us.
Load = collections.namedtuple("Load", "key name count threads before script ways goal")
loads = [
    Load("launch", "launch", 200_000, 1, "", "launch empty {each}", [*every_way], 10),
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


class Unmeasured(Exception):
    pass


def until(condition, *processes, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if ended := next((process for process in processes if process.poll()), None):
            raise Unmeasured(f"{ended.args[0]} ended with {ended.returncode}")
        if time.monotonic() > end:
            raise Unmeasured(f"no end within {seconds} s")
        time.sleep(0.001)


def command_of(load, count, given):
    """For the files up, go, done and end of the folder {folder}. Steps of training are samples/timed.py, behind a gate that
    is open."""
    if load is training:
        return [given.python, "-B", str(here / "samples/gated.py"), given.driver, str(here / "samples/timed.py"), "{folder}", str(count)]
    each = load.script.format(each=count // load.threads)
    script = (f"launch empty 1; launch spin_us_500 1; {load.before}; sync 1; touch {{folder}}/up; wait {{folder}}/go\n"
              f"threads {load.threads}; {each}; end; sync 1; touch {{folder}}/done; wait {{folder}}/end")
    return [str(given.build / "standin/workload-dlopen"), script]


def one(build, command, done, tool):
    """How often a second a new process does it, which is traced from before the first of those that count."""
    with tempfile.TemporaryDirectory(prefix="gpusnoop-costs-") as name:
        folder = pathlib.Path(name)
        running = [subprocess.Popen([word.replace("{folder}", name) for word in command], stdin=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, env=os.environ | {"WORKLOAD_DEVICE": "1"})]
        try:
            until((folder / "up").exists, *running, seconds=120)
            if tool:
                with open(folder / "said", "w") as said:
                    running.append(subprocess.Popen([build / tool[0], *tool[1:], "-p", str(running[0].pid), "--json"],
                                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said))
                until(lambda: processes.traces(folder / "said"), *running)
            began = time.monotonic()
            (folder / "go").touch()
            until((folder / "done").exists, *running, seconds=300)
            return done / (time.monotonic() - began)
        finally:
            processes.end(reversed(running))


def compared(load, given, rounds, part):
    """A row for each way, of medians; `part`: only such a part of what is to be done."""
    count = int(load.count * part)
    command, rates = command_of(load, count, given), collections.defaultdict(list)
    ways = {way: every_way.get(way, [way]) for way in dict.fromkeys(["untraced", "cudatop", *load.ways])}
    for _ in range(rounds):
        for way, tool in ways.items():
            rates[way].append(one(given.build, command, count, tool))
    medians = {way: statistics.median(values) for way, values in rates.items()}
    return [{"load": load.name, "way": way, "rounds": rounds, "per_second": round(median, 1), "least": round(min(rates[way]), 1),
             "most": round(max(rates[way]), 1), "slower_percent": round(100 * (1 - median / medians["untraced"]), 1),
             "goal_percent": load.goal if way == "cudatop" else None}
            for way, median in medians.items()]


def measured(load, given, rounds, part, check):
    """The rows of a load; none, and a check says why."""
    name, rows = f"costs.{load.key}", []
    if missing := load is training and machine.missing_module(given.python, "torch"):
        check(name, "skip", missing)
        return rows
    try:
        rows = compared(load, given, rounds, part)
        check(name, "ok")
    except (Unmeasured, OSError) as error:
        check(name, "FAIL", str(error))
    return rows


def run(given, rounds, part, unable, check, wanted, start):
    """What gets the rows of each load. `unable`: why nothing can be traced or run, if so."""
    chosen = [load for load in (*loads, training) if wanted(f"costs.{load.key}")]
    if unable and chosen:
        check("costs", "skip", unable)
    return [] if unable else [start(measured, load, given, rounds, part, check) for load in chosen]
