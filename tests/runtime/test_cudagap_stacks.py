# SPDX-License-Identifier: Apache-2.0
"""cudagap -U: kernel and user stacks of blocked threads."""
import re

from gaps import Gaps, case, within
from harness import check, equal
from programs import Tool, Workload

functions = {"lock": "futex_wait", "pipe": "pipe_read", "sleep": "nanosleep"}


@case(each={"lock, 1": ("lock", 1), "pipe, 8": ("pipe", 8), "sleep, 8": ("sleep", 8)})
def longest_block_of_each_thread(which):
    """The longest wait of each thread is the expected one, and its stack shows the reason."""
    reason, count = which
    gaps = Gaps(reason, 300, count)
    tool = Tool("-p", gaps.pid, "-U", "--by", "thread", losses=True)
    gaps.go()
    measured = gaps.report()
    rows = [row for row in tool.finish().rows if row["reason"] == reason and row["blocked_ns"] > 2e8]
    equal(({row["tid"] for row in rows}, len(rows)), (set(measured), count), f"rows by thread: {tool.rows}")
    for row in rows:
        held = measured[row["tid"]]["held_ns"] - measured[row["tid"]]["cpu_ns"] - measured[row["tid"]]["queued_ns"]
        within(row["blocked_ns"], held, measured[row["tid"]], f"{reason} of a thread")
        equal(row["average_ns"], row["blocked_ns"] // row["blocks"], "average")
        kernel = [frame for frame in row["frames"] if frame.endswith(" (kernel)")]
        check(any(functions[reason] in frame for frame in kernel), f"no kernel frame shows the reason: {row['frames']}")
        check(not any("bpf" in frame for frame in kernel), f"the stack contains the tool's own frames: {kernel}")
    equal(tool.lost, {}, "losses")


@case
def of_all_threads():
    """Waits with the same stack share a row."""
    gaps = Gaps("sleep", 300, 8)
    tool = Tool("-p", gaps.pid, "-U", "-i", "0.2", json=False)
    folded = Tool("-p", gaps.pid, "--folded", json=False)
    gaps.go().report()
    lines = folded.finish().text.splitlines()
    check(all(re.fullmatch(rf"gaps-{gaps.pid}(;[^;]+)+ \d+", line) and "+0x" not in line for line in lines), f"unexpected folded lines: {lines}")
    slept = sum(int(line.split()[-1]) for line in lines if re.search(r"nanosleep\w*_\[k\];", line))
    check(slept >= 8 * 2.9e8, f"too little sleep: {lines}")
    text = tool.finish().text
    rows = [line.split() for line in text.splitlines() if re.match(r" +\d+ gaps +SLEEP ", line)]
    check(sum(int(row[4]) for row in rows) >= 8, f"too few blocks: {text}")
    check(rows and len(rows) <= 4, f"unexpected number of rows: {text}")
    check(re.search(r"^ {4}\w*nanosleep\w*\+0x\w+ \(kernel\)$", text, re.M), f"no kernel frame: {text}")


@case
def in_the_program():
    """User stacks have names if the process runs long enough. They are unwound through libc, which lacks frame
    pointers."""
    workload = Workload("repeat 30; launch vecadd 5; sleep 50; end", "workload-driver")
    tool = Tool("-p", workload.pid, "-U", "-i", "0.5")
    workload.go().wait()
    rows = [row for row in tool.finish().rows if row["reason"] == "sleep"]
    equal(sum(row["blocks"] for row in rows), 30, f"number of sleeps: {rows}")
    for row in rows:
        frames = [frame for frame in row["frames"] if not frame.endswith(" (kernel)")]
        check(frames and re.fullmatch(r"\w*nanosleep\+0x\w+ \(libc.*\)", frames[0]), f"no frame of libc: {frames}")
        check(any(re.match(r"main\+0x\w+ \(workload-driver\)$", frame) for frame in frames), f"no frame of main: {frames}")
