# SPDX-License-Identifier: Apache-2.0
"""cudagap --cheap: times of calling threads from the scheduler's statistics, compared with the threads' own
measurements."""
from gaps import Gaps, calls, case, sum_of, within
from harness import check, equal
from programs import Tool
from test_cudagap import burners, on_cpu, on_one_cpu, without_type

on_or_off = "on_cpu_ns", "ready_ns", "off_cpu_ns"


def threads_of(tool):
    """{tid: sums of all rows of the thread}"""
    threads = {}
    for row in tool.rows:
        equal(sum_of(row, (*calls, "outside_ns")), row["wall_ns"], f"times in and outside of calls: {row}")
        check("runq_ns" not in row and "sleep_ns" not in row, f"a reason for time off the CPU, despite --cheap: {row}")
        if row["known_wall_ns"]:
            equal(sum_of(row, on_or_off), row["known_wall_ns"], f"times on a CPU, ready and off CPU: {row}")
        whole = threads.setdefault(row["tid"], dict.fromkeys((*calls, *on_or_off, "outside_ns", "wall_ns", "known_wall_ns"), 0))
        for key in whole:
            whole[key] += row.get(key, 0)
    return threads


def trace(gaps, *arguments):
    tool = Tool("-p", gaps.pid, "--cheap", "--by", "thread", *arguments)
    gaps.go()
    measured = gaps.report()
    return threads_of(tool.finish()), measured, tool


@case(alone=True, each={"at the end": (), "in intervals": ("-i", "0.2")})
def waiting_for_a_cpu(arguments):
    """One CPU is shared with three busy processes. Checks the report at the end, and reports at intervals."""
    burners(3, on_one_cpu)
    threads, measured, tool = trace(Gaps("cpu", 300, preexec=on_one_cpu), *arguments)
    (tid, row), = threads.items()
    check(measured[tid]["queued_ns"] > 3e8, f"the thread did not wait for a CPU: {measured}")
    within(row["ready_ns"], measured[tid]["all_queued_ns"], {"around_ns": measured[tid]["around_ns"] + 5e6}, "wait for a CPU")
    on_cpu({"cpu_ns": row["on_cpu_ns"]}, measured[tid])
    within(row["wall_ns"], measured[tid]["wall_ns"], measured[tid], "wall")
    equal(row["known_wall_ns"], row["wall_ns"], "known wall time")
    check(len([one for one in tool.rows if one["known_wall_ns"]]) > (3 if arguments else 0), f"too few rows: {tool.rows}")


@case
def asleep():
    """Eight sleeping threads are off CPU in the report of each interval."""
    threads, measured, _ = trace(Gaps("sleep", 600, 8), "-i", "0.2")
    equal(set(threads), set(measured), "threads")
    for tid, row in threads.items():
        held = measured[tid]["held_ns"] - measured[tid]["cpu_ns"] - measured[tid]["queued_ns"]
        within(row["off_cpu_ns"], held, {"around_ns": measured[tid]["around_ns"] + 1e7}, f"thread {tid} off its CPU")


@case
def without_the_tracepoint():
    """Works without the scheduler's tracepoint."""
    gaps = Gaps("sleep", 100)
    tool = Tool("-p", gaps.pid, "--cheap", preexec=lambda: without_type(b"btf_trace_sched_switch"))
    gaps.go().report()
    row, = tool.finish().rows
    check(row["off_cpu_ns"] > 9e7 and row["known_wall_ns"] == row["wall_ns"], f"unexpected time asleep: {row}")


@case
def text():
    gaps = Gaps("sleep", 300)
    tool = Tool("-p", gaps.pid, "--cheap", json=False)
    gaps.go().report()
    header, line = [line.split() for line in tool.finish().text.splitlines()][-2:]
    equal(header, ["PID", "COMM", "THREADS", "WALL(s)", "ONCPU%", "READY%", "OFFCPU%", "SWITCH/s"], "header")
    check(float(dict(zip(header, line))["OFFCPU%"]) > 90, f"unexpected time off CPU: {line}")
