# SPDX-License-Identifier: Apache-2.0
"""Comparison of the times that cudagap reports for threads with the threads' own measurements."""
import functools
import itertools
import json
import subprocess

import harness
from harness import check, equal, wait_until
from programs import kill_at_end

case = functools.partial(harness.case, tool="cudagap")
numbers = itertools.count(1)

calls = "launch_ns", "copy_ns", "wait_ns", "memory_ns", "call_ns"
queued = "runq_ns", "throttled_ns"
blocked = ("stopped_ns", "lock_ns", "poll_ns", "pipe_ns", "socket_ns", "disk_ns", "fault_ns", "sleep_ns", "driver_ns", "child_ns",
           "other_ns")
parts = *calls, "cpu_ns", *queued, *blocked
interrupts = "hardirq_ns", "softirq_ns"  # parts of the time that only rows with --interrupts have


class Gaps:
    """Stand-in program whose threads block in various ways after go()."""

    def __init__(self, *arguments, preexec=None, program="gaps"):
        self.folder = harness.here / f"gaps{next(numbers)}"
        self.folder.mkdir()
        with open(self.folder / "measured", "w") as measured, open(self.folder / "err", "w") as error:
            self.process = subprocess.Popen([harness.standin / program, *map(str, arguments)], cwd=self.folder,
                                            stdout=measured, stderr=error, preexec_fn=preexec)
        self.pid = self.process.pid
        kill_at_end(self.process)
        wait_until((self.folder / "up").exists, f"{program} {arguments} is up")

    def go(self):
        (self.folder / "go").touch()
        return self

    def report(self):
        """Waits until the program exits; returns its own measurements by thread id."""
        equal(self.process.wait(60 * harness.patience), 0, f"exit status ({(self.folder / 'err').read_text()})")
        lines = map(json.loads, (self.folder / "measured").read_text().splitlines())
        return {line["tid"]: line for line in lines}


def near(got, want, what):
    check(abs(got - want) <= max(0.02 * want, 5e6), f"{what}: got {got / 1e6:.3f} ms, want {want / 1e6:.3f} ms")


def at_least(got, want, what):
    """Sleeps and timers end late on a busy machine, but never early. A difference of 5% is tolerated, because the
    kernel may record a sleep slightly after it began."""
    check(got >= 0.95 * want, f"{what}: got {got / 1e6:.3f} ms, want at least {want / 1e6:.3f} ms")


def within(got, want, measured, what):
    """Like near(), but `got` may also contain the time that the thread spent just before and after it read the
    clock."""
    near(min(got, max(want, got - measured["around_ns"])), want, what)


def sum_of(row, names):
    return sum(row[name] for name in names)


def check_sums(rows):
    for row in rows:
        equal(sum_of(row, parts) + sum(row.get(key, 0) for key in interrupts), row["wall_ns"], f"the parts of {row} do not add up")


def sums_by_thread(tool):
    """{tid: sums of all rows of the thread}"""
    check_sums(tool.rows)
    threads = {}
    for row in tool.rows:
        whole = threads.setdefault(row["tid"], dict.fromkeys((*parts, *interrupts, "wall_ns"), 0))
        for key in whole:
            whole[key] += row.get(key, 0)
    return threads
