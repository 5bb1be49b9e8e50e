# SPDX-License-Identifier: Apache-2.0
"""A program of another user overfills the tool's tables. Each process has a share of every table, so other processes
are counted exactly. Reports, and the exit after Ctrl-C, are on time."""
import collections
import json
import re
import signal
import subprocess
import sys
import time

import harness
from harness import case, check, equal, wait_until
from neighbours import Neighbour
from programs import Tool, Workload, kill_at_end
from ranks import Ranks, same_waits
from test_helpers import file_system
from test_hostile_files import copy_of_driver
from truth import same_counts

interval = 0.5
# Limits in seconds. On an idle machine they could be 0.2 for a report and 1 for the exit.
max_report_delay, max_exit_delay = 1, 3


def memory(pid, field):
    """A field of /proc/PID/status, in KiB."""
    return int(next(line for line in open(f"/proc/{pid}/status") if line.startswith(field)).split()[1])


class Report:
    """Rows of one process. Only these are parsed, since a tool prints tens of thousands of lines."""

    def __init__(self, tool, pid):
        lines = [line for line in tool.lines if line.startswith('{"type":"row"')]
        self.rows = [json.loads(line) for line in lines if f'"pid":{pid},' in line]
        times = sorted({int(re.search(r'"monotonic_ns":(\d+)', line)[1]) / 1e9 for line in lines})
        self.longest_interval = max(later - earlier for earlier, later in zip(times, times[1:-1]))


def launches_of(report):
    launches = collections.Counter()
    for row in report.rows:
        launches[row.get("kernel", "").partition("(")[0]] += row["launches"]
    return dict(launches)


def stop(tool):
    """Ends the tool; returns the seconds from SIGINT to its exit."""
    begun = time.monotonic()
    tool.process.send_signal(signal.SIGINT)
    equal(tool.process.wait(60 * harness.patience), 0, f"exit status ({tool.error})")
    return time.monotonic() - begun


@case(each={"10000/s": 10, "200000/s": 200}, alone=True, timeout=240)
def a_new_kernel_for_each_launch(per_ms):
    """Thousands of rows and unknown names a second: the victim's launches are counted, with names."""
    victim = Workload("repeat 1500; launch vecadd 1; launch saxpy 1; sleep 1; end")
    neighbour = Neighbour("launches", 4000 * per_ms, per_ms)
    tool = Tool("--by", "pid,kernel", "-i", interval, losses=True)
    neighbour.go()
    victim.go().wait()
    took = stop(tool)
    report = Report(tool, victim.pid)
    equal(launches_of(report), {"vecadd": 1500, "saxpy": 1500}, "launches of the victim")
    late = report.longest_interval - interval
    check(late < max_report_delay * harness.patience and took < max_exit_delay * harness.patience,
          f"a report is {late:.2f} s late, the exit {took:.2f} s after SIGINT")


@case(alone=True, timeout=240)
def memory_is_freed_when_a_process_exits():
    neighbour = Neighbour("launches", 300000, 200)
    tool = Tool("--by", "pid,kernel", "-i", interval, losses=True)
    neighbour.go().done()
    peak = memory(tool.pid, "VmHWM:")
    neighbour.end()
    time.sleep(1 + 2 * interval)
    after = memory(tool.pid, "VmRSS:")
    stop(tool)
    check(peak < 200 << 10 and after < 120 << 10, f"{peak} KiB, after the exit {after} KiB")


def newest(tool):
    rows = [record for record in tool.full_records if record["type"] == "row"]
    return [row for row in rows if row["monotonic_ns"] == rows[-1]["monotonic_ns"]] if rows else []


slow_names = """
import os, sys, time
from ctypes import *
user, driver, paths = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
libc, cuda = CDLL(None), CDLL(driver)
libc.mmap.restype = c_void_p
handles = [libc.mmap(None, c_size_t(4096), 5, 2, os.open(path, os.O_RDONLY), c_long(0)) for path in paths]
print("up", flush=True)
sys.stdin.readline()
while True:
    for handle in handles:
        cuda.cuLaunchKernel(c_void_p(handle + 64), 1, 1, 1, 1, 1, 1, 0, None, None, None)
    time.sleep(0.001)
"""


@case(each={"1": 1, "4": 4}, alone=True, timeout=240)
def users_whose_files_are_slow(users):
    """Some users' kernel handles point into files that take 0.4 s to open. Reports and the exit are still on time, and
    launches of other processes are counted exactly, with names."""
    data = harness.here / "data"
    data.write_bytes(bytes(4096))
    file, server = file_system("slow", data)
    driver = copy_of_driver("of_slow")["LD_LIBRARY_PATH"] + "/libcuda.so.1"
    slow = []
    for number in range(users):
        paths = [f"{file}@{3 + 20 * number + i}" for i in range(20)]
        slow.append(subprocess.Popen([sys.executable, "-c", slow_names, str(60000 + number), driver, *paths], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True, cwd="/"))
        kill_at_end(slow[-1])
        equal(slow[-1].stdout.readline(), "up\n", "a slow user's program")
    server.send_signal(signal.SIGUSR1)
    victim = Workload("repeat 3000; launch vecadd 1; launch saxpy 1; sleep 1; end")
    begun = time.monotonic()
    tool = Tool("--by", "pid,kernel", "-i", interval, losses=True)
    started = time.monotonic() - begun
    for each in slow:
        each.stdin.write("\n")
        each.stdin.flush()
    victim.go().wait()
    took = stop(tool)
    report = Report(tool, victim.pid)
    equal(launches_of(report), {"vecadd": 3000, "saxpy": 3000}, "launches of the victim")
    late = report.longest_interval - interval
    check(late < max_report_delay * harness.patience and took < max_exit_delay * harness.patience and started < 6 * harness.patience,
          f"a report is {late:.2f} s late, the exit {took:.2f} s after SIGINT, the start took {started:.1f} s")


@case(tool="ncclwait")
def more_communicators_than_the_table_has():
    ranks = Ranks(2, "comm A; touch {up}; repeat 1500; call A ncclAllReduce 1; end; barrier; destroy A")
    neighbour = Neighbour("communicators", 20000)
    tool = Tool("-p", f"{','.join(ranks.pids)},{neighbour.pid}", "--by", "rank", losses=True)
    neighbour.go().done()
    ranks.go().wait()
    neighbour.end()
    tool.finish()
    mine = [row for row in tool.rows if row.get("pid") in map(int, ranks.pids)]
    same_waits(mine, ranks.calls())


@case(tool="gpualloc")
def more_allocations_than_the_table_has():
    """Live memory of other processes is exact."""
    victim = Workload("repeat 500; alloc a 64; end; alloc b 1000; free b; touch {dir}/made; wait {dir}/end", "workload-driver")
    neighbour = Neighbour("allocations", 20000)
    tool = Tool("-p", f"{victim.pid},{neighbour.pid}", "--live-entries", 4096, "-i", interval, losses=True)
    neighbour.go().done()
    victim.go()
    wait_until(lambda: (harness.here / "made").exists(), "the victim has allocated")
    live = lambda: [(row["live_allocations"], row["live_bytes"]) for row in newest(tool) if row.get("pid") == victim.pid]
    wait_until(lambda: live() == [(500, 32000)], f"live memory of the victim: {live()}")
    (harness.here / "end").touch()
    victim.wait()
    neighbour.end()
    tool.finish()
    rows = [row for row in tool.rows if row.get("pid") == victim.pid]
    equal((sum(row["allocs"] for row in rows), sum(row["untracked"] for row in rows)), (501, 0), "allocations of the victim")


@case(each={"captures": "captures", "graphs": "graphs"})
def more_graphs_than_the_table_has(kind):
    """The victim's captured launches do not count as launches, and launches of its graphs do."""
    victim = Workload("capture begin; launch vecadd 3 stream=1; capture end; graph 7 stream=1; launch saxpy 2")
    neighbour = Neighbour(kind, 70000)
    tool = Tool("-p", f"{victim.pid},{neighbour.pid}", "--by", "pid,kernel", losses=True)
    neighbour.go().done()
    truth = victim.go().truth()
    neighbour.end()
    tool.finish()
    tool.all_records = [row for row in tool.records if row.get("pid") != neighbour.pid]
    same_counts(tool, truth, by=("pid", "kernel"))
