# SPDX-License-Identifier: Apache-2.0
"""Ranks of a job (standin/ranks), and comparison of ncclwait's rows with their calls."""
import collections
import functools
import itertools
import json
import os
import pathlib
import subprocess

import harness
from harness import check, equal, wait_until
from programs import kill_at_end

case = functools.partial(harness.case, tool="ncclwait")
numbers = itertools.count(1)
type_bytes = {0: 1, 2: 4, 7: 4, 8: 8, 9: 2}


class Ranks:
    """Runs a script in each rank after go(). `{up}` in the script is the file that reached() waits for."""

    def __init__(self, count, script, *, waits=True, env=None):
        number = next(numbers)
        self.up_file, self.go_file, self.truth = (harness.here / f"ranks{number}.{kind}" for kind in ("up", "go", "truth"))
        self.error_file = harness.here / f"ranks{number}.err"
        script = (f"touch {self.up_file}; wait {self.go_file}; " if waits else "") + script.replace("{up}", str(self.up_file))
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"} | (env or {})
        with open(self.error_file, "w") as error:
            self.process = subprocess.Popen([harness.standin / "ranks", str(count), self.truth, script], stderr=error,
                                            env=environment)
        kill_at_end(self.process)
        self.pids = wait_until(lambda: self.children(count), "the ranks have started")
        self.reached()

    def children(self, count):
        pids = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return pids if len(pids) == count else None

    def reached(self):
        wait_until(lambda: self.up_file.exists() or self.process.poll() is not None, "the ranks are up")
        return self

    @property
    def targets(self):
        return "-p", ",".join(self.pids)

    def go(self):
        self.go_file.touch()
        return self

    def wait(self, code=0):
        equal(self.process.wait(60 * harness.patience), code, f"exit status of the ranks ({self.error_file.read_text()})")
        return self

    def calls(self):
        files = sorted(harness.here.glob(f"{self.truth.name}.*"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def operation(function):
    name = function.removeprefix("ncclAll" if function == "ncclAllToAll" else "nccl")
    return {"Bcast": "Broadcast", "ToAll": "AlltoAll"}.get(name, name)


def size(call, ranks):
    shares = operation(call["function"]) in ("AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter")
    return call["count"] * type_bytes[call["type"]] * (ranks if shares else 1)


def is_collective(call):
    return operation(call["function"]) not in ("Send", "Recv")


def done(call, failed_groups=()):
    return call["result"] in (0, 7) and call["group"] not in failed_groups


def rounds(calls):
    """Groups the calls of one communicator by collective: each list has the matching call of every rank."""
    of_rank = collections.defaultdict(list)
    for call in calls:
        if is_collective(call) and not call["captured"] and done(call):
            of_rank[call["rank"]].append(call)
    equal(len({len(list_) for list_ in of_rank.values()}), 1, "number of different call counts of the ranks")
    return list(zip(*(of_rank[rank] for rank in sorted(of_rank))))


def same_waits(rows, calls):
    """Checks rows by rank of one communicator. Each rank reads the clock before and after a call, and the call arrives
    in between: this gives bounds for all sums."""
    together = rounds(calls)
    by_rank = {row["rank"]: row for row in rows}
    equal(set(by_rank), {call["rank"] for call in calls}, "ranks")
    for rank, row in by_rank.items():
        min_wait = max_wait = min_last = max_last = 0
        for one in together:
            mine, = (call for call in one if call["rank"] == rank)
            others = [call for call in one if call["rank"] != rank]
            min_wait += max(0, max(call["entry_ns"] for call in others) - mine["return_ns"])
            max_wait += max(0, max(call["return_ns"] for call in others) - mine["entry_ns"])
            min_last += all(mine["entry_ns"] > call["return_ns"] for call in others)
            max_last += all(mine["return_ns"] >= call["entry_ns"] for call in others)
        equal((row["joined_calls"], row["unjoined_calls"]), (len(together), 0), f"joined calls of rank {rank}")
        check(min_wait <= row["wait_ns"] <= max_wait, f"rank {rank} waits {row['wait_ns']} ns, not {min_wait} to {max_wait}")
        check(min_last <= row["last_calls"] <= max_last,
              f"rank {rank} is last {row['last_calls']} times, not {min_last} to {max_last}")
