# SPDX-License-Identifier: Apache-2.0
"""What tracing costs: launches of an empty kernel a second, untraced and traced in turns, medians."""
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

LAUNCHES = 200_000  # a round, by all threads together
ways = {"untraced": None, "cudatop": ["cudatop"], "cudatop --cheap": ["cudatop", "--cheap"],
        "cudatop --latency": ["cudatop", "--latency"], "cudalaunch": ["cudalaunch"], "nvioctl": ["nvioctl"]}


class Unmeasured(Exception):
    pass


def until(condition, *processes, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end or any(process.poll() for process in processes):
            raise Unmeasured(f"no end within {seconds} s, or a program failed")
        time.sleep(0.001)


def one(build, command, threads):
    """Launches a second of a new process, which is traced from before the first of them that counts."""
    with tempfile.TemporaryDirectory(prefix="gpusnoop-costs-") as name:
        folder = pathlib.Path(name)
        script = (f"launch empty 1; sync 1; touch {name}/up; wait {name}/go; threads {threads}\n"
                  f"launch empty {LAUNCHES // threads}; end; sync 1; touch {name}/done; wait {name}/end")
        running = [subprocess.Popen([build / "standin/workload-dlopen", script], stdin=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, env=os.environ | {"WORKLOAD_DEVICE": "1"})]
        try:
            until((folder / "up").exists, *running)
            if command:
                with open(folder / "said", "w") as said:
                    running.append(subprocess.Popen([build / command[0], *command[1:], "-p", str(running[0].pid), "--json"],
                                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said))
                until(lambda: "Tracing " in (folder / "said").read_text(errors="replace"), *running)
            began = time.monotonic()
            (folder / "go").touch()
            until((folder / "done").exists, *running, seconds=300)
            return LAUNCHES // threads * threads / (time.monotonic() - began)
        finally:
            for process in reversed(running):
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def measure(build, rounds):
    """A row for each number of threads and each way."""
    rows = []
    for threads in (1, 8):
        rates = {way: [] for way in ways}
        for _ in range(rounds):
            for way, command in ways.items():
                rates[way].append(one(build, command, threads))
        medians = {way: statistics.median(values) for way, values in rates.items()}
        rows += [{"threads": threads, "way": way, "rounds": rounds, "launches_per_second": round(median),
                  "least": round(min(rates[way])), "most": round(max(rates[way])),
                  "slower_percent": round(100 * (1 - median / medians["untraced"]), 1)} for way, median in medians.items()]
    return rows
