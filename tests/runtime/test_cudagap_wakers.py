# SPDX-License-Identifier: Apache-2.0
"""cudagap -e: the thread that woke the launching thread, the reason why that thread had waited, and its own waker."""
import os
import re
import subprocess
import sys

import harness
from gaps import Gaps, case
from harness import check, equal, wait_until
from programs import Tool, kill_at_end

trainer = """
import ctypes, os
cuda = ctypes.CDLL(os.environ["CUDA"])
open("up", "w").close()
while os.read(0, 1):
    cuda.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, None, None, None)
"""

# Programs that do some work with the data that they read, pass it on, and print how long they waited.
forward = """
import os
while byte := os.read(0, 1):
    os.write(1, byte)
"""

source = """
import os, time
for _ in range(12):
    time.sleep(0.15)
    os.write(1, b"x")
"""

burn = """
import os, time
for _ in range(8):
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
    os.write(1, b"x")
"""


def on_one_cpu():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def fed_by(*programs, preexec=None):
    """Runs a trainer at the end of a pipeline of these programs; returns its gaps and the processes."""
    ends = [os.pipe() for _ in programs]
    environment = {**os.environ, "CUDA": str(harness.standin / "libcuda.so.1")}
    processes = [subprocess.Popen([sys.executable, "-c", trainer], stdin=ends[-1][0], env=environment)]
    kill_at_end(processes[0])
    wait_until(lambda: os.path.exists("up"), "the trainer is up")
    tool = Tool("-p", processes[0].pid, "-l", "50ms")
    for number, program in reversed([*enumerate(programs)]):  # start each reader before its writer
        processes.insert(1, subprocess.Popen([sys.executable, "-c", program], stdout=ends[number][1], preexec_fn=preexec,
                                          stdin=ends[number - 1][0] if number else subprocess.DEVNULL))
        kill_at_end(processes[1])
    for pair in ends:
        for end in pair:
            os.close(end)
    for process in processes[1:] + processes[:1]:
        equal(process.wait(60 * harness.patience), 0, f"exit status of {process.args}")
    return tool.finish().events, processes[1:]


@case
def a_chain():
    """Names three wakers, each woken by the next; the last one is woken by a timer."""
    gaps, (slow, second, first) = fed_by(source, forward, forward)
    check(len(gaps) >= 10, f"too few lines: {len(gaps)}")
    for gap in gaps:
        equal((gap["waker_pid"], gap["waker_tid"]), (first.pid, first.pid), "waker of the trainer")
        check(0.95 * gap["pipe_ns"] <= gap["waker_ended_ns"] <= 1.02 * gap["pipe_ns"] + 5e6, f"unexpected time that the waker had waited: {gap}")
    for before, gap in zip(gaps[5:], gaps[6:]):  # the first gaps may lack wakers, or include the programs' start
        lines = gap["wakers"]
        equal([int(re.search(r"woken by (\d+)", line)[1]) for line in lines[:3]], [first.pid, second.pid, slow.pid], "wakers")
        since = [line.split("previous wakeup:")[1] for line in lines[:3]]
        check(all("PIPE" in text for text in since[:2]) and "SLEEP" in since[2], f"{lines}")
        # The time between two wake-ups by the waker is the gap plus the time before the gap in which the trainer waited
        # for a CPU and launched.
        least, more = gap["block_ns"], before["runq_ns"] + before["cpu_ns"] + gap["cpu_ns"] + gap["runq_ns"]
        check(least - 5e6 <= gap["waker_wall_ns"] <= least + more + 5e6, f"unexpected time since its last wake-up: {gap}, {before}")


@case(alone=True)
def a_waker_without_a_cpu():
    """The waker shares a CPU with three others; its share of CPU wait is reported."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=on_one_cpu) for _ in range(3)]
    for burner in burners:
        kill_at_end(burner)
    gaps, (slow,) = fed_by(burn, preexec=on_one_cpu)
    for gap in gaps[1:]:
        equal(gap["waker_pid"], slow.pid, "waker of the trainer")
        check(8e7 <= gap["waker_cpu_ns"] <= 1.4e8, f"the waker did not use 100 ms: {gap}")
        check(gap["waker_runq_ns"] > 1.5 * gap["waker_cpu_ns"], f"the waker's wait for a CPU is too short: {gap}")
        check(gap["running"] >= 4 and gap["cpus"] == len(os.sched_getaffinity(0)), f"unexpected runnable threads and CPUs: {gap}")


@case
def many_wakers():
    """When wakers exit, their entries are freed: only the number of running wakers is limited."""
    one = "import os\nfor _ in range(40):\n    child = os.fork()\n    if not child:\n        import time; time.sleep(.06); os.write(1, b'x'); os._exit(0)\n    os.wait()"
    gaps, _ = fed_by(one)
    check(len(gaps) >= 35, f"too few lines: {len(gaps)}")
    equal(len({gap["waker_pid"] for gap in gaps}), len(gaps), "number of different wakers")


def between_others(reason):
    """Gap of a thread that blocks for this reason while other processes make system calls. If an interrupt during one
    of these calls wakes the thread, it must not be attributed to the calling process."""
    others = [subprocess.Popen(["dd", "if=/dev/zero", "of=/dev/null", "bs=1"], stderr=subprocess.DEVNULL)
              for _ in os.sched_getaffinity(0)]
    for other in others:
        kill_at_end(other)
    gaps = Gaps(reason, 300)
    tool = Tool("-p", gaps.pid, "-e", "-l", "200ms")
    gaps.go().report()
    for other in others:
        other.kill()
    gap, = tool.finish().events
    return gap, gaps.pid


ends = {"condition": ("lock", "timeout"), "semaphore": ("lock", "timeout"), "poll": ("poll", "timeout"),
        "epoll": ("poll", "timeout"), "receive": ("socket", "timeout"), "sleep": ("sleep", "timeout"),
        "alarm": ("poll", "signal"), "timer file": ("poll", "interrupt")}


@case(each={reason: (reason, *end) for reason, end in ends.items()})
def not_ended_by_a_thread(how):
    """No process is named for a blocked period that a timeout, a timer's signal or an interrupt ends."""
    reason, waits_for, ended_by = how
    gap, _ = between_others(reason)
    equal((gap["block_reason"], gap.get("block_ended_by"), gap.get("waker_comm")), (waits_for, ended_by, None), f"{gap}")
    words = {"timeout": "until it times out", "signal": "until a signal", "interrupt": "until an interrupt"}[ended_by]
    check(words in gap["wakers"][0], f"no '{words}' in: {gap['wakers']}")


@case
def ended_by_a_sender_over_loopback():
    """The sender is named, although a softirq during its system call wakes the reader."""
    gap, pid = between_others("loopback")
    equal((gap["block_reason"], gap.get("block_ended_by"), gap.get("waker_pid")), ("socket", "thread", pid), f"{gap}")
