# SPDX-License-Identifier: Apache-2.0
"""cudatop --replay: a recording is shown as it was recorded, as tables and on a screen, by who may trace nothing."""
import json
import subprocess
import sys

import harness
from harness import Skip, check, equal
from programs import Tool, Workload
from tops import case

sys.path.append(str(harness.root / "tests/screen"))
import terminal  # noqa: E402


def recorded():
    """What a workload did in two intervals or more, and the rows of each of its processes."""
    file = harness.here / "recorded.json"
    workload = Workload("repeat 6; launch vecadd 100; copy 3; sleep 150; end", name="trainer")
    tool = Tool("-p", workload.pid, "-b", "0.3", "--nvml", "off", "--record", file, json=False, losses=True)
    workload.go().wait()
    tool.finish()
    rows = [row for row in map(json.loads, file.read_text().splitlines()) if row["type"] == "row" and row["by"] == "pid"]
    check(len({row["time"] for row in rows}) >= 3, f"intervals: {rows}")
    return file, workload.pid, rows


@case
def tables_and_screen():
    file, pid, rows = recorded()
    done = subprocess.run([harness.binary, "--replay", file, "-b", "--columns", "PID,COMM,LAUNCH/s,COPY/s"], text=True,
                          capture_output=True, timeout=60, user=65534, group=65534, extra_groups=[])
    equal((done.returncode, done.stderr), (0, ""), "exit status of who is nobody")
    lines = [line.split() for line in done.stdout.splitlines()]
    shown = [(int(line[0]), line[1], float(line[2]), float(line[3])) for line in lines if line and line[0].isdigit()]
    near = [(row["pid"], row["comm"], round(row["launches_per_second"], 1), round(row["copies_per_second"], 1)) for row in rows]
    equal(shown, near, "rows")

    if not terminal.available:
        raise Skip("there is no tmux")
    busiest = max(rows, key=lambda row: row["launches_per_second"])
    screen = terminal.Terminal(f"{harness.binary} --no-config --replay {file} --at {busiest['time']}", 150, 30)
    harness.at_end.append(screen.stop)
    screen.wait_for("REPLAY")
    screen.keys("Space")
    screen.wait_for("stopped")
    count = len({row["time"] for row in rows})
    screen.keys(*["["] * count)  # back to the first one
    screen.wait_for(f"1/{count} stopped")
    screen.keys("Enter")
    screen.wait_for("What was recorded of it")
    screen.keys("Escape")
    screen.wait_for("by pid")
    screen.keys("q")
    equal(screen.ended(), 0, f"exit status ({screen.text()})")
