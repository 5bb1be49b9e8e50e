# SPDX-License-Identifier: Apache-2.0
"""cudagap -e and -H: gaps between launches of a thread, compared with the thread's own measurements and its number of
launches."""
import re

from gaps import Gaps, case, near, parts, sum_of, within
from harness import check, equal
from programs import Tool, Workload


def is_whole(gap, took):
    equal(sum_of(gap, parts), took, f"sum of all parts of {gap}")


def held(measured):
    return measured["held_ns"] - measured["cpu_ns"] - measured["queued_ns"]


@case(each={"pipe, 1": ("pipe", 1), "lock, 8": ("lock", 8), "sleep, 8": ("sleep", 8)})
def lines(which):
    """-e prints one line per gap, with its start, length and reason."""
    reason, count = which
    gaps = Gaps(reason, 300, count)
    tool = Tool("-p", gaps.pid, "-e", "-l", "100ms")
    gaps.go()
    measured = gaps.report()
    events = {event["tid"]: event for event in tool.finish().events}
    equal((set(events), len(tool.events)), (set(measured), count), "lines by thread")
    for tid, gap in events.items():
        is_whole(gap, gap["gap_ns"])
        within(gap["gap_ns"], measured[tid]["wall_ns"], measured[tid], f"gap of thread {tid}")
        near(gap[f"{reason}_ns"], held(measured[tid]), f"{reason} of thread {tid}")
        equal((gap["pid"], gap["comm"]), (gaps.pid, "gaps"), "process")


@case
def text():
    """The largest reason is printed first, with its share."""
    gaps = Gaps("pipe", 300)
    tool = Tool("-p", gaps.pid, "-e", "-l", "100ms", json=False)
    gaps.go().report()
    header, line, between, waker, _ = tool.finish().text.splitlines()
    equal(header.split(), ["TIME(s)", "PID", "TID", "COMM", "GAP(us)", "REASONS"], "header")
    reason, share = line.split()[5:7]
    check(reason == "PIPE" and int(share.strip("%,")) > 90, f"unexpected reasons: {line}")
    host = r"\[host function \S.*\]"
    check(re.fullmatch(rf" +between (two launches of {host}|{host} and {host})", between), f"unexpected launches before and after: {between}")
    check(re.fullmatch(rf" +PIPE \d+\.\d ms, woken by {gaps.pid} gaps", waker), f"unexpected waker: {waker}")


@case
def histogram_of_reasons():
    """Each bucket has the reasons of its gaps."""
    script = "repeat 10; launch vecadd 2; sleep 20; end; repeat 3; launch vecadd 1; sync 1 block_us=200000; end; launch vecadd 1"
    workload = Workload(script, "workload-driver")
    tool, text = Tool("-p", workload.pid, "-H", "gap", "-m", "-l", "15ms"), Tool("-p", workload.pid, "-H", "gap", json=False)
    workload.go()
    workload.truth()
    record, = tool.finish().of_type("hist")
    buckets = record["buckets"]
    equal(record["total"], 13, f"number of gaps of 15 ms or longer: {buckets}")
    check(sum_of_all(buckets, "sleep_ns") >= 2e8 and sum_of_all(buckets, "wait_ns") >= 6e8, f"sleep or wait is too short: {buckets}")
    for bucket in buckets:
        check(bucket["wait_ns"] > bucket["sleep_ns"] if bucket["low"] >= 150 else not bucket["wait_ns"], f"{bucket}")
    shown = [line.split("|")[-1] for line in text.finish().text.splitlines() if "->" in line and "262143" in line]
    equal([line.split()[0] for line in shown], ["WAIT"], "reasons after the bar")


def sum_of_all(buckets, key):
    return sum(bucket[key] for bucket in buckets)


@case
def intervals():
    """Each gap is counted in one interval only."""
    workload = Workload("threads 2; repeat 40; launch vecadd 10; sleep 25; end; end", "workload-driver")
    tool = Tool("-p", workload.pid, "-H", "gap", "-i", "0.2")
    workload.go()
    workload.truth()
    records = tool.finish().of_type("hist")
    check(len(records) >= 4, f"too few reports: {len(records)}")
    equal(sum(record["total"] for record in records), 2 * (40 * 10 - 1), "gaps of all intervals")
