# SPDX-License-Identifier: Apache-2.0
"""ncclwait's tables: calls, bytes and errors equal the ranks' reports; the last rank and its lateness match their
clocks."""
import collections
import os
import pathlib
import shutil
import signal

import harness
from harness import Skip, check, equal, wait_until
from programs import Tool
from ranks import Ranks, case, done, is_collective, operation, rounds, same_waits, size


def trace(count, script, *arguments, env=None, **options):
    ranks = Ranks(count, script, env=env)
    tool = Tool(*ranks.targets, *arguments, **options)
    ranks.go().wait()
    return tool.finish(), ranks.calls()


def name_of(row):
    check(len(row["communicator"]) == 16, f"wrong length of the communicator's hash: {row}")
    return row["communicator"]


rank_2_is_late = "comm A; repeat 60; barrier; only 2; sleep 5; end; call A ncclAllReduce 1 count=5000; end; barrier; destroy A"


@case(each={way: way for way in ("session", "multi", "tracefs", "perf")}, long=["perf"])
def waits_by_rank(way):
    stacks = ["-U"] if way == "session" else []
    tool, calls = trace(4, rank_2_is_late, "--by", "rank", "--attach", way, *stacks)
    same_waits(tool.rows, calls)
    if stacks:
        late = max(tool.rows, key=lambda row: row["late_ns"])
        check("::call(" in " ".join(late["frames"]) and "(ranks)" in late["frames"][0], f"unexpected stack of the late rank: {late}")
        check(all("frames" in row or not row["last_calls"] for row in tool.rows), f"late ranks without a stack: {tool.rows}")


@case(alone=True)
def system_wide():
    ranks = Ranks(4, rank_2_is_late)
    tool = Tool("--by", "rank")
    wait_until(lambda: tool.of_type("attached")[-1]["files"] >= 2, "both libraries are probed")
    ranks.go().wait()
    same_waits(tool.stop().rows, ranks.calls())


everything = """
comm A; split B A 2; barrier
call A ncclAllReduce 7 count=1000; call B ncclReduce 3 type=0; call A ncclBroadcast 2; call A ncclBcast 5 type=9
call A ncclAllGather 2 type=8; call B ncclReduceScatter 3; call A ncclAlltoAll 2; call A ncclAllToAll 3; call B ncclGather 1
call A ncclScatter 1; call A ncclSend 3; call B ncclRecv 4 count=77
group; call A ncclSend 1; call A ncclRecv 1; call A ncclAllReduce 1; call B ncclAllReduce 1; end
group result=7; call A ncclAllReduce 2 count=3; end
group result=5; call A ncclAllReduce 4 count=3; call B ncclReduce 1; end
call A ncclAllReduce 2 result=4; call A ncclAllReduce 3 result=7
capture; call A ncclAllReduce 6; group; call B ncclAllGather 2; end; end; call A ncclAllReduce 1 count=0
barrier; destroy B; destroy A
"""
failed_group = 3  # number of the group in the script


@case
def counts():
    """Every function, in groups and graphs, successful or not. A call made inside another one is not counted."""
    tool, calls = trace(4, everything, "--by", "rank,op")
    want = collections.defaultdict(collections.Counter)
    for call in calls:
        ok = done(call, [failed_group])
        key = call["comm"] == "B", call["pid"], operation(call["function"])
        want[key].update({"calls": ok, "errors": not ok, "bytes": ok and size(call, 2 if call["comm"] == "B" else 4),
                          "captured_calls": ok and call["captured"],
                          "joined_calls": ok and is_collective(call) and not call["captured"]})
    keys = "calls", "errors", "bytes", "captured_calls", "joined_calls"
    got = {(row["ranks"] == 2, row["pid"], row["op"]): {key: row[key] for key in keys} for row in tool.rows}
    equal(got, {key: {name: counter[name] for name in keys} for key, counter in want.items()}, "by rank and operation")
    equal({row["join"] for row in tool.rows}, {"exact"}, "how calls are matched")


def attached_to(script):
    ranks = Ranks(4, "comm A; touch {up}; " + script, waits=False)
    tool = Tool(*ranks.targets, losses=True)  # a call that is in flight at the start counts as lost
    ranks.wait()
    row, = tool.finish().rows
    equal((row["ranks"], row["ranks_here"]), (4, 4), "ranks of the communicator")
    return row, ranks.calls()


# One rank is late, by a small part of a round or by most of it.
@case(alone=True, each={f"{late} of {late + rest} ms": (late, rest) for late, rest in ((2, 10), (10, 2))}, long=["10 of 12 ms"])
def attached_later(which):
    """The job already runs: its communicators are found, and calls are matched by what the ranks wait for."""
    late, rest = which
    row, calls = attached_to(f"repeat 350; only 1; sleep {late}; end; call A ncclAllReduce 1 count=1000; finish; sleep {rest}; end")
    equal((row["join"], row["last_rank"]), ("aligned", 1), f"{row}")
    check(row["joined_calls"] * 4 + row["unjoined_calls"] == row["calls"], f"joined and unjoined calls do not add up to all calls: {row}")
    check(row["unjoined_calls"] <= 12 and row["joined_calls"] > 200, f"too few calls are matched: {row}")
    check(row["last_calls"] > 0.9 * row["joined_calls"], f"too few calls have rank 1 last: {row}")
    by = sorted(max(call["entry_ns"] for call in one) - sorted(call["entry_ns"] for call in one)[-2] for one in rounds(calls))
    want = by[len(by) // 2]
    check(0.7 * want < row["late_ns"] / row["last_calls"] < 1.5 * want, f"the lateness per call is not about {want} ns: {row}")


@case(alone=True, long=True)
def attached_later_to_steps():
    """Each step has several calls, which are enqueued without waits between them."""
    calls_of_step = "".join(f"call A ncclAllReduce 1 count={1000 * n}; " for n in range(1, 12))
    row, _ = attached_to(f"repeat 300; only 2; sleep 9; end; {calls_of_step} finish; sleep 3; end")
    equal((row["join"], row["last_rank"]), ("aligned", 2), f"{row}")
    check(row["last_calls"] > 0.9 * row["joined_calls"] > 1000, f"{row}")


@case(alone=True)
def attached_later_without_waits():
    """If the ranks never wait for the GPU, their calls cannot be matched: no rank is reported as late."""
    row, _ = attached_to("repeat 200; barrier; only 1; sleep 9; end; call A ncclAllReduce 1; end")
    equal((row["join"], row["joined_calls"], "last_rank" in row, "wait_ns" in row), ("not yet", 0, False, False), f"{row}")
    check(row["calls"] > 400, f"too few calls: {row}")


@case(each={name: name for name in ("hidden", "old")})
def identity_unknown(name):
    """Columns that need the communicator's identity are left out; the others are reported."""
    tool, calls = trace(2, "comm A; call A ncclAllReduce 9 count=100; call A ncclAllGather 2; destroy A", "--by", "pid",
                        env={"LD_LIBRARY_PATH": str(harness.standin / name)})
    equal(len(tool.rows), 2, "a row per process")
    for row in tool.rows:
        check(not {"communicator", "ranks", "ranks_here", "join", "wait_ns", "last_rank"} & set(row), f"columns that cannot be known: {row}")
        equal((row["calls"], row["bytes"], row["unsized_calls"], row["joined_calls"]), (11, 3600, 2, 0), f"calls and bytes: {row}")
    text, _ = trace(2, "comm A; call A ncclAllReduce 9 count=100; destroy A", json=False,
                    env={"LD_LIBRARY_PATH": str(harness.standin / name)})
    check(text.text.splitlines()[-1].split()[:2] == ["-", "-"], f"the line has a communicator or ranks, which are unknown: {text.text}")


@case
def rccl():
    """AMD's RCCL has the functions of NCCL under another file name."""
    folder = harness.here / "rccl"
    folder.mkdir()
    shutil.copy(harness.standin / "libnccl.so.2", folder / "librccl.so.1")
    os.symlink("librccl.so.1", folder / "libnccl.so.2")  # the name that the program is linked to
    tool, calls = trace(2, "comm A; call A ncclAllReduce 9 count=100 type=7; call A ncclBroadcast 4 count=10; destroy A", "--by", "comm,rank",
                        env={"LD_LIBRARY_PATH": f"{folder}:{harness.standin}"})
    equal([(row["rank"], row["calls"], row["joined_calls"], row["join"]) for row in sorted(tool.rows, key=lambda row: row["rank"])],
          [(0, 13, 13, "exact"), (1, 13, 13, "exact")], "rows")


@case
def rank_is_killed():
    """Collectives that the killed rank never entered are reported as unjoined."""
    ranks = Ranks(3, "comm A; call A ncclAllReduce 10; barrier; touch {up}2; only 1; sleep 60000; end; call A ncclAllReduce 5; sleep 300; touch {up}3; sleep 1500")
    tool = Tool(*ranks.targets)
    ranks.go()
    wait_until(lambda: ranks.up_file.with_suffix(".up3").exists(), "the other ranks have continued")
    os.kill(int(ranks.pids[1]), signal.SIGKILL)
    ranks.wait(1)
    rows = tool.finish().rows
    equal(sum(row["calls"] for row in rows), 40, "calls")
    equal((sum(row["joined_calls"] for row in rows), sum(row["unjoined_calls"] for row in rows)), (10, 10), "joined and unjoined calls")


def job_with_pid(number, script):
    """A job of one rank that has this pid, unless another process takes it meanwhile."""
    last = pathlib.Path("/proc/sys/kernel/ns_last_pid")  # exists if the kernel supports checkpoint and restore
    for _ in range(60 if last.exists() else 0):
        last.write_text(str(number - 2))  # the next one is the rank's parent
        job = Ranks(1, script)
        if job.pids == [str(number)]:
            return job
        os.kill(int(job.pids[0]), signal.SIGKILL)
        job.process.wait()
    raise Skip("cannot start a process with this pid")


@case(alone=True)
def colliding_calls():
    """Two threads whose calls share a slot in bpf/base/front_calls.bpf.h: one calls while the other is in a call."""
    first = Ranks(1, "comm A; call A ncclBcast 1 block=1200; call A ncclBcast 50; destroy A")
    second = job_with_pid(int(first.pids[0]) + 2048, "comm A; sleep 300; call A ncclBcast 500; destroy A")
    tool = Tool("-p", f"{first.pids[0]},{second.pids[0]}", "--by", "pid")
    for job in first.go(), second.go():
        job.wait()
    equal({str(row["pid"]): (row["op"], row["calls"]) for row in tool.finish().rows},
          {first.pids[0]: ("Broadcast", 51), second.pids[0]: ("Broadcast", 500)}, "calls of each process")


@case
def calls_without_a_pause():
    """No call is lost."""
    tool, calls = trace(8, "comm A; repeat 20; barrier; call A ncclAllReduce 1000; end; barrier; destroy A", "-i", "1")
    equal(sum(row["calls"] for row in tool.rows), 160000, "calls")
    equal(sum(row["joined_calls"] for row in tool.rows), 20000, "joined")


@case
def tables():
    """Tables fit into 100 columns. For ranks that ran before the tool, values that depend on matching their calls are
    marked as estimates (~)."""
    script = "comm A; call A ncclAllReduce 3; call A ncclAllGather 3; barrier; destroy A"
    for by in [], ["--by", "rank"], ["--by", "rank,op"]:
        lines = trace(2, script, *by, json=False)[0].text.splitlines()
        check(len(lines) >= 2 and max(map(len, lines)) <= 100 and "~" not in "".join(lines), f"{by}: {lines}")
    ranks = Ranks(2, "comm A; call A ncclAllReduce 1; touch {up}; wait {up}2; "
                     "repeat 50; barrier; call A ncclAllReduce 1; finish; end", waits=False)
    tool = Tool(*ranks.targets, json=False)
    ranks.up_file.with_suffix(".up2").touch()
    ranks.wait()
    check("~" in tool.finish().text and "AllReduce" in tool.text, tool.text)


@case
def without_a_cpu():
    """Three ranks that never sleep share one CPU; the fourth rank sleeps."""
    ranks = Ranks(4, "comm A; call A ncclAllReduce 1; except 3; spin 2800; end; only 3; sleep 2800; end; call A ncclAllReduce 1; barrier; destroy A")
    for pid in ranks.pids[:3]:
        os.sched_setaffinity(int(pid), {min(os.sched_getaffinity(0))})
    tool = Tool(*ranks.targets, "--by", "rank")
    ranks.go().wait()
    for row in tool.finish().rows:
        used, waited = (row[key] / row["cpu_covered_ns"] for key in ("cpu_ns", "run_queue_ns"))
        if row["rank"] == 3:
            check(used + waited < 0.2, f"the sleeping rank has too much CPU or run-queue time: {row}")
        else:
            check(used < 0.5 < waited and 0.7 < used + waited < 1.2, f"unexpected CPU and run-queue time: {row}")


fails = """
comm A; comm Z result=2; call A ncclAllReduce 3 result=4; call A ncclAllReduce 2; call A ncclAllReduce 2 result=7
group result=5; call A ncclAllReduce 4; end; group result=3; end; group; call A ncclSend 1 result=4; call A ncclSend 1; end
ask A 3; ask A 5 error=7; ask A 9 error=6; ask A 2 error=6; ask A 1 error=1
forge F A; call F ncclBroadcast 6; barrier; destroy A
"""
failures = {("AllReduce", "ncclInvalidArgument"): 3, ("AllReduce", "ncclInvalidUsage"): 4, ("Send", "ncclInvalidArgument"): 1,
            ("AsyncError", "ncclRemoteError"): 1, ("AsyncError", "ncclUnhandledCudaError"): 1,
            ("CommInitRank", "ncclSystemError"): 1, ("GroupEnd", "ncclInternalError"): 1,
            ("Broadcast", "ncclInvalidArgument"): 6}
without_communicator = "CommInitRank", "GroupEnd", "Broadcast"


@case
def failed():
    """Errors by rank, operation and result. An asynchronous error is counted once, even if queried repeatedly."""
    ranks = Ranks(2, fails)
    table, lines, totals = (Tool(*ranks.targets, *arguments) for arguments in (["-x"], ["-x", "-e"], ["--by", "pid"]))
    ranks.go().wait()
    rows, events, by_pid = table.finish().rows, lines.finish().events, totals.finish().rows
    want = {(rank, *error): n for error, n in failures.items() if error[0] not in without_communicator for rank in (0, 1)}
    want |= {(None, *error): 2 * n for error, n in failures.items() if error[0] in without_communicator}
    equal({(row.get("rank"), row["op"], row["result"]): row["errors"] for row in rows}, want, "rows")
    check(all(("communicator" in row) == ("rank" in row) and "calls" not in row for row in rows), f"unexpected ranks and communicators: {rows}")
    equal(collections.Counter((str(event["pid"]), event["op"], event["result"]) for event in events),
          {(pid, *error): n for error, n in failures.items() for pid in ranks.pids}, "events")
    equal({event["result_code"] for event in events}, {1, 2, 3, 4, 5, 6}, "result codes")
    equal([(row["calls"], row["errors"]) for row in by_pid], [(5, sum(failures.values()))] * 2, "calls and errors of each process")
