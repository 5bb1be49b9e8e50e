# SPDX-License-Identifier: Apache-2.0
"""cudagap: a process's environment: quota of its cgroup, pressure, CPUs, memory, disks."""
import os
import pathlib
import re

from gaps import Gaps, case
from harness import check, equal
from programs import Tool, Workload
from test_cudagap import Quota, on_one_cpu


def throttled(quota):
    text = pathlib.Path(quota.group.path, "cpu.stat").read_text()
    return int(re.search(r"nr_throttled (\d+)", text)[1])


@case(alone=True)
def a_quota():
    """Compares the number of throttled periods with the cgroup's own counter, and checks the limits in JSON and in
    text."""
    quota = Quota()
    gaps = Gaps("cpu", 400, preexec=lambda: (on_one_cpu(), quota.group.join()))
    tool = Tool("-p", gaps.pid, "-i", "0.5")
    why = Tool("-p", gaps.pid, "--why", "-d", "1.9s", json=False)
    gaps.go()
    row, = why.finish().text.split("next:")[:1]
    check(re.search(r"its cgroup is limited to 0\.2 CPUs: throttled \d+ times, for \d\.\d s", row), f"no sentence about the quota: {row}")
    if (cpus := os.sysconf("SC_NPROCESSORS_ONLN")) > 1:
        check(f"restricted to 1 of {cpus} CPUs" in row, f"no sentence about CPUs: {row}")
    gaps.report()
    rows = [row for row in tool.finish().rows if "around_ns" in row]
    check(rows, f"no row has a quota: {tool.rows}")
    for row in rows:
        equal((row["quota_cpus"], row["allowed_cpus"]), (0.2, 1), f"{row}")
    times, all_times = sum(row["throttles"] for row in rows), throttled(quota)
    check(0 < times <= all_times, f"throttled {times} times, {all_times} according to the cgroup: {rows}")
    held, covered = (sum(row[key] for row in rows) for key in ("cgroup_throttled_ns", "around_ns"))
    check(0.5 * covered < held < 0.95 * covered, f"throttled for {held} of {covered} ns")


@case
def no_limits():
    """A process without a quota has rows without a quota, and its counts of throttled periods are 0."""
    workload = Workload("repeat 30; launch vecadd 5; sleep 50; end", "workload-driver")
    tool = Tool("-p", workload.pid, "-i", "0.5")
    workload.go().wait()
    rows = [row for row in tool.finish().rows if "around_ns" in row]
    check(rows, f"no row has values: {tool.rows}")
    for row in rows:
        check("quota_cpus" not in row, f"a quota, although the process has none: {row}")
        equal([row[key] for key in ("throttles", "process_major_faults", "read_bytes")], [0] * 3, f"{row}")
        equal(row["allowed_cpus"], len(os.sched_getaffinity(0)), f"CPUs: {row}")
        equal(row.get("swapped_bytes", 0), 0, f"swapped bytes: {row}")
        check(0 <= row.get("pressure_cpu_percent", 0) <= 100, f"unexpected pressure: {row}")


@case
def columns():
    """--columns; unknown and missing values are shown as -."""
    gaps = Gaps("sleep", 1500)
    tool = Tool("-p", gaps.pid, "--columns", "PID,AROUND(s),CPUS,QUOTA,WRITTEN", "-i", "0.5", json=False)
    gaps.go().report()
    lines = [line.split() for line in tool.finish().text.splitlines()]
    header = lines[next(at for at, line in enumerate(lines) if line[:1] == ["PID"])]
    equal(header, ["PID", "AROUND(s)", "QUOTA", "CPUS", "WRITTEN"], "columns")
    known = [line for line in lines if line[:1] == [str(gaps.pid)] and line[1] != "-"]
    check(known and all(line[2:] == ["-", str(len(os.sched_getaffinity(0))), "0"] for line in known), f"{lines}")
