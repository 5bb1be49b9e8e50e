# SPDX-License-Identifier: Apache-2.0
"""What tracing costs: programs that do one thing, untraced and traced in turns; what they get done a second, medians."""
import collections
import os
import pathlib
import shlex
import statistics
import subprocess
import tempfile
import time

import processes

here = pathlib.Path(__file__).parent
every_way = {"untraced": None, "cudatop": ["cudatop"], "cudatop --cheap": ["cudatop", "--cheap"],
             "cudatop --latency": ["cudatop", "--latency"], "cudalaunch": ["cudalaunch"], "nvioctl": ["nvioctl"]}

# What it does so often, by how many threads; what it does before; and which ways besides untraced and cudatop. A step is
# what one of a matrix multiplication does, with its input and output: the GPU is busy for 500 us.
Load = collections.namedtuple("Load", "name count threads before script ways")
loads = [
    Load("launch", 200_000, 1, "", "launch empty {each}", [*every_way]),
    Load("launch, 8 threads", 200_000, 8, "", "launch empty {each}", [*every_way]),
    Load("graph of 20 kernels", 50_000, 1, "build empty 20", "graph {each}", ["cudalaunch", "cudagraph"]),
    Load("copy of 256 bytes", 50_000, 1, "alloc a 256 fn=cuMemAlloc_v2", "copy {each} fn=cuMemcpyHtoD_v2 dst=a bytes=256",
         ["cudamemcpy", "gpualloc"]),
    Load("step of 500 us", 1000, 1, "alloc a 1048576 fn=cuMemAlloc_v2",
         "repeat {each}; copy 1 fn=cuMemcpyHtoDAsync_v2 dst=a bytes=65536; launch spin_us_500 1\n"
         "copy 1 fn=cuMemcpyDtoHAsync_v2 src=a bytes=4096; sync 1 fn=cuStreamSynchronize; end",
         ["cudatop --cheap", "cudatop --latency", "cudasync"]),
]


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


def workload(build, load):
    """The command, for the files up, go, done and end of the folder {folder}."""
    each = load.script.format(each=load.count // load.threads)
    script = (f"launch empty 1; launch spin_us_500 1; {load.before}; sync 1; touch {{folder}}/up; wait {{folder}}/go\n"
              f"threads {load.threads}; {each}; end; sync 1; touch {{folder}}/done; wait {{folder}}/end")
    return [str(build / "standin/workload-dlopen"), script]


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
                until(lambda: "Tracing " in (folder / "said").read_text(errors="replace"), *running)
            began = time.monotonic()
            (folder / "go").touch()
            until((folder / "done").exists, *running, seconds=300)
            return done / (time.monotonic() - began)
        finally:
            processes.end(reversed(running))


def compared(build, name, command, done, ways, rounds):
    """A row for each way, of medians."""
    ways = {way: every_way.get(way, shlex.split(way)) for way in dict.fromkeys(["untraced", "cudatop", *ways])}
    rates = {way: [] for way in ways}
    for _ in range(rounds):
        for way, tool in ways.items():
            rates[way].append(one(build, command, done, tool))
    medians = {way: statistics.median(values) for way, values in rates.items()}
    return [{"load": name, "way": way, "rounds": rounds, "per_second": round(median, 1), "least": round(min(rates[way]), 1),
             "most": round(max(rates[way]), 1), "slower_percent": round(100 * (1 - median / medians["untraced"]), 1)}
            for way, median in medians.items()]


def measure(build, rounds):
    return [row for load in loads for row in compared(build, load.name, workload(build, load), load.count, load.ways, rounds)]


def measure_training(build, rounds, python, driver):
    """Steps of samples/timed.py, behind a gate that is open."""
    command = [python, "-B", str(here / "samples/gated.py"), driver, str(here / "samples/timed.py"), "{folder}", "300"]
    return compared(build, "training step (PyTorch)", command, 300, ["cudatop --cheap", "cudatop --latency"], rounds)
