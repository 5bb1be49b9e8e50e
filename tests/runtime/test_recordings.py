# SPDX-License-Identifier: Apache-2.0
"""Recordings (--record), and cudadiff's comparison of two recordings."""
import gzip
import json
import re
import subprocess

import harness
from harness import case, check, equal
from programs import Tool, Workload

# A step without kernel fusion, and one with it. Each ends with a launch of "step", the unit of work.
separate = "repeat 12; launch part 1 grid=4 block=64; end; launch step 1 grid=4 block=64; copy 8 bytes=1024 kind=1"
fused = "launch whole 1 grid=64 block=256; launch step 1 grid=64 block=256; copy 2 bytes=8192 kind=1"


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@case
def recording_beside_output():
    """With --json, the recording has the lines of the output. With text output, it also has the rows that -r hides."""
    workload = Workload("launch one 5; launch two 3; launch three 1")
    plain, packed = harness.here / "plain.json", harness.here / "packed.json.gz"
    shown = Tool("-p", workload.pid, "--record", plain)
    cut = Tool("-p", workload.pid, "-r", 1, "--record", packed, json=False)
    workload.go().wait()
    shown.finish()
    cut.finish()
    without = lambda record: {key: value for key, value in record.items() if key not in ("monotonic_ns", "time", "duration_ns", "clock_error_us")}
    printed = shown.full_records
    equal([without(record) for record in lines_of(plain)], [without(record) for record in printed], "lines of the recording")
    start = printed[0]
    for record in printed:
        equal(record["run"], start["run"], f"run of {record}")
    check({"host", "boot_id", "command_line", "time", "monotonic_ns", "clock_error_us", "clock_synchronized"} <= set(start), f"the first line lacks keys: {start}")
    equal(start["command_line"].split()[-2:], [str(plain), "--json"], "command line of the tool")
    row = next(row for row in printed if row.get("kernel") == "one")
    check(row["launches"] == 5 and "monotonic_ns" in row, f"unexpected row: {row}")
    check("one" in cut.text and "two" not in cut.text, f"-r 1: {cut.text}")
    kernels = {row["kernel"]: row["launches"] for row in map(json.loads, gzip.open(packed, "rt")) if row["type"] == "row"}
    equal(kernels, {"one": 5, "two": 3, "three": 1}, "kernels in the recording of a tool that prints text")


def recorded(name, step, form=("0.1",), seconds=2):
    """Two tools on one workload, which repeats the step for `seconds`."""
    workload = Workload(f"loop {seconds}; {step}; sleep 2; end", name="trainer")
    tools = []
    for tool in "cudalaunch", "cudamemcpy":
        harness.binary = harness.build / tool
        tools.append(Tool("-p", workload.pid, "-l", "--record", harness.here / f"{name}.{tool}", *form))
    return workload, tools, f"{harness.here}/{name}.cudalaunch,{harness.here}/{name}.cudamemcpy"


def diff(*arguments, code=0):
    done = subprocess.run([harness.build / "cudadiff", *arguments], capture_output=True, text=True, timeout=60)
    equal(done.returncode, code, f"exit status of cudadiff {arguments} ({done.stderr})")
    return done


@case(tool="cudadiff")
def before_and_after_a_fusion():
    """cudadiff reports the effects of a kernel fusion: launches, grids, copies by direction and size, kernels."""
    workloads, tools, files = zip(*(recorded(name, step) for name, step in (("before", separate), ("after", fused))))
    for workload in workloads:
        workload.go()
    for workload in workloads:
        workload.wait()
    for tool in (tool for both in tools for tool in both):
        tool.finish()
    rows = [line for line in lines_of(harness.here / "before.cudalaunch") if line["type"] == "row"]
    check(any("name trainer" in row.get("command_line", "") for row in rows), f"unexpected command lines: {rows[-1]}")
    records = [json.loads(line) for line in diff("--json", "--per", "kernel:step", "-r", "0", *files).stdout.splitlines()]
    measures = {record["measure"]: record for record in records if record.get("of") == "measure"}
    kernels = {record["kernel"]: record for record in records if record.get("of") == "kernel"}
    # An interval may begin or end within a step, which hardly changes the medians.
    for measure, before, after in (("launches", 13, 2), ("grid-p50", 4, 64), ("grid-p95", 4, 64), ("block-p95", 64, 256),
                                   ("copies:H2D", 8, 2), ("copy-bytes:H2D", 8192, 16384), ("copy-size:H2D", 1024, 8192)):
        row = measures[measure]
        check(abs(row["a"] - before) < 0.1 * before and abs(row["b"] - after) < 0.1 * after, f"{measure}: {row}")
        check(row["shown"] and row["a_blocks"] >= 4 and row["b_blocks"] >= 4, f"{measure}: {row}")
    check(abs(kernels["part"]["a"] - 12) < 1 and kernels["part"]["b"] == 0, f"unexpected line of the removed kernel: {kernels['part']}")
    check(kernels["whole"]["a"] == 0 and abs(kernels["whole"]["b"] - 1) < 0.1, f"unexpected line of the new kernel: {kernels['whole']}")
    check("launch-time" in measures and "copy-time" in measures, f"unexpected times: {list(measures)}")

    text = diff("--by", "process", "--per", "kernel:step", *files).stdout
    check(re.search(r"^trainer +launches per launch of step +1[23]\S* +2\S* +6\.\S+x less", text, re.M), text)
    check(re.search(r"^trainer +part .* gone", text, re.M) and re.search(r"^trainer +whole .* new", text, re.M), text)
    check(re.search(r"B makes 8\d% fewer launches \(1[23]\S* -> 2\S* per launch of step\), with grids 16 times as large", text), text)

    same = diff(files[0], files[0], "--fail-if", "launches>+10%", "--json").stdout
    check(not any(json.loads(line).get("shown") for line in same.splitlines()), f"a recording differs from itself: {same}")
    check("--fail-if launches<-50% is met" in diff(*files, "--per", "kernel:step", "--fail-if", "launches<-50%", code=3).stderr, "no message about --fail-if")
    check("no graph launch" in diff(*files, "--per", "graph-launch", code=1).stderr, "no message about the missing unit of work")
    check("'none' cannot be read" in diff("none", files[1], code=1).stderr, "no message about the missing file")


@case(tool="cudadiff", long=True)
def recordings_of_events():
    """The same comparison of recordings with a line per call (-e), where each process is described once."""
    workloads, tools, files = zip(*(recorded(name, step, ("-e",), seconds=8) for name, step in (("before", separate), ("after", fused))))
    for workload in workloads:
        workload.go()
    for workload in workloads:
        workload.wait()
    for tool in (tool for both in tools for tool in both):
        tool.finish()
    lines = lines_of(harness.here / "before.cudalaunch")
    processes = [line for line in lines if line["type"] == "process"]
    equal([(line["pid"], line["comm"], "name trainer" in line["command_line"]) for line in processes], [(workloads[0].pid, "trainer", True)], "processes")
    check(lines.index(processes[0]) < next(i for i, line in enumerate(lines) if line["type"] == "event"), "the process is not described before its first call")
    records = [json.loads(line) for line in diff("--json", "--per", "kernel:step", "-r", "0", *files).stdout.splitlines()]
    side, _ = (record for record in records if record.get("of") == "side")
    equal((side["lines"], side["lossy_lines"]), (sum(line["type"] == "event" for name in ("cudalaunch", "cudamemcpy")
                                                   for line in lines_of(harness.here / f"before.{name}")), 0), "compared lines")
    measures = {record["measure"]: record for record in records if record.get("of") == "measure"}
    # Copies have a larger tolerance. The recording of cudamemcpy has no launches of "step", so cudadiff divides the
    # copies of each second by the average rate of steps, but the actual rate varies.
    for measure, before, after, near in (("launches", 13, 2, 0.1), ("grid-p50", 4, 64, 0.1), ("copies:H2D", 8, 2, 0.5)):
        row = measures[measure]
        check(abs(row["a"] - before) < near * before and abs(row["b"] - after) < near * after and row["shown"], f"{measure}: {row}")
