# SPDX-License-Identifier: Apache-2.0
"""cudagap --why: one sentence per process with the root cause of its waits; values are compared with the programs' own
measurements."""
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import harness
from containers import Cgroup, need_hierarchy, own
from gaps import Gaps, case
from harness import check, equal, wait_until
from programs import Tool, Workload, kill_at_end
from ranks import Ranks


class Loader:
    """A trainer and workers that prepare its data, restricted to some CPUs."""

    def __init__(self, workers, batches, cpus):
        command = [sys.executable, pathlib.Path(__file__).parent / "loader.py", harness.standin / "libcuda.so.1",
                   str(workers), str(batches), "40"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        kill_at_end(self.process)
        wait_until(lambda: os.path.exists("up"), "the trainer is up")

    def report(self):
        """Sums of all workers' measurements."""
        open("go", "w").close()
        out, _ = self.process.communicate(timeout=60 * harness.patience)
        equal(self.process.returncode, 0, "exit status of the trainer")
        each = json.loads(out)
        return {key: sum(worker[key] for worker in each) for key in each[0]}


def why(*arguments, pid, json=True):
    return Tool("--why", "-d", "60", "-p", pid, *arguments, json=json)


@case(alone=True)
def more_workers_than_cpus():
    """Eight workers share two CPUs: the trainer is blocked on a pipe, and the workers wait for a CPU. The share of that
    wait is compared with the workers' own measurements."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        raise harness.Skip("needs two CPUs")
    loader = Loader(8, 12, cpus)
    tool = why(pid=loader.process.pid)
    measured = loader.report()
    row, = tool.finish().rows
    equal((row["reason"], row["waker_reason"], row["cpus"]), ("pipe", "runq", 2), f"{row}")
    check(row["waker_processes"] == 8, f"unexpected number of workers: {row}")
    got, want = (one[queued] / one[wall] for one, queued, wall in ((row, "waker_runq_ns", "waker_wall_ns"), (measured, "queued_ns", "wall_ns")))
    check(want > 0.5 and abs(got - want) < 0.15, f"unexpected share of waits for a CPU: {got}, but the workers measured {want}")
    check(row["running"] >= 7, f"unexpected runnable threads: {row}")
    for words in "blocked on a pipe", "ultimately waiting for python", "and 7 more", "are waiting for a CPU", "on 2 CPUs":
        check(words in row["why"], f"no '{words}' in: {row['why']}")


@case
def the_gpu_is_busy():
    workload = Workload("repeat 30; launch vecadd 5; sync 1 block_us=20000; end", "workload-driver")
    tool = why(pid=workload.pid)
    workload.go().wait()
    row, = tool.finish().rows
    equal(row["reason"], "wait", f"{row}")
    check("not held up" in row["why"] and "waker_comm" not in row, f"{row}")


@case
def ranks_of_nccl():
    """Each rank waits for the device after a collective; the host cannot see the cause, so ncclwait is suggested."""
    ranks = Ranks(2, "comm A; " + "call A ncclAllReduce 1 count=1000; hang 100; " * 10 + "barrier; destroy A")
    tool = why(pid=",".join(ranks.pids))
    ranks.go().wait()
    rows = tool.finish().rows
    equal({str(row["pid"]) for row in rows}, set(ranks.pids), f"ranks with a row: {rows}")
    for row in rows:
        check("calls NCCL's AllReduce, so another rank may be the straggler" in row["why"] and "not held up" not in row["why"], f"{row}")
        equal((row["reason"], row["next"]), ("wait", "ncclwait --by rank 5"), f"{row}")


@case(each={"stopped": None, "v2": "cgroup.freeze", "freezer": "freezer.state"})
def suspended(file):
    """Reports a process that is stopped by a signal, or frozen because a parent cgroup is frozen."""
    gaps = Gaps("pipe", 3000)
    if file:
        hierarchy = "v2" if file == "cgroup.freeze" else "freezer"
        above = f"{own}frozen-{gaps.pid}"
        Cgroup(hierarchy, f"{above}/inner").add(gaps.pid)
        control = pathlib.Path(need_hierarchy(hierarchy), above, file)
        on, off = ("1", "0") if file == "cgroup.freeze" else ("FROZEN", "THAWED")
        suspend, resume, words = lambda: control.write_text(on), lambda: control.write_text(off), f"frozen by cgroup /{above} now"
    else:
        suspend, resume = (functools.partial(os.kill, gaps.pid, how) for how in (signal.SIGSTOP, signal.SIGCONT))
        words = "stopped by a signal now"
    tool = Tool("--why", "-d", "2", "-p", gaps.pid)
    gaps.go()
    time.sleep(0.2)
    suspend()
    harness.at_end.append(resume)
    row, = tool.finish().rows
    check(row["why"].startswith(words), f"{words}: {row}")
    resume()
    gaps.report()


@case(each={"sleep": "sleeping", "lock": "blocked on a lock"})
def text_names_the_next_command(words):
    """Text has one line per process, and a command to run next."""
    gaps = Gaps("sleep" if words == "sleeping" else "lock", 500)
    tool = why(pid=gaps.pid, json=False)
    gaps.go().report()
    header, line, command = tool.finish().text.splitlines()
    equal(header.split(), ["PID", "COMM", "WHY"], "header")
    check(line.split()[:2] == [str(gaps.pid), "gaps"] and words in line, f"unexpected line of the process: {line}")
    equal(command.split(), ["next:", "cudagap", "-p", str(gaps.pid), "-e", "-l", "10ms"], "command")
