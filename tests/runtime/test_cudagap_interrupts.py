# SPDX-License-Identifier: Apache-2.0
"""cudagap --interrupts, compared with the time that a program spent in softirqs and hardirqs (standin/interrupts)."""
from gaps import Gaps, check_sums, case, interrupts, sums_by_thread
from harness import check
from programs import Tool


def interrupted():
    return Gaps(200, 500, program="interrupted")


def same(row, measured, what):
    """Checks that interrupt times are at least the measured time and at most a limit. They exceed the measured time
    because of other interrupts, e.g. ticks and the rest of packet processing."""
    known = measured["soft_ns"], measured["hard_ns"]
    limits = known[0] + 5e6 + 200 * 5e4, known[1] + 5e6 + 0.05 * measured["wall_ns"]
    for key, least, at_most in zip(("softirq_ns", "hardirq_ns"), known, limits):
        check(least - 5e6 <= row[key] <= at_most, f"{key} of {what}: {row[key]}, {measured}")


@case
def parts():
    """Without --interrupts, interrupt time counts for the part that it interrupts, here mostly time on a CPU."""
    gaps = interrupted()
    tool = Tool("-p", gaps.pid, "--by", "thread", "--interrupts")
    other = Tool("-p", gaps.pid, "--by", "thread")
    gaps.go()
    (tid, measured), = gaps.report().items()
    row = sums_by_thread(tool.finish())[tid]
    same(row, measured, "the thread")
    check(not any(key in line for line in other.finish().rows for key in interrupts), "interrupt times without --interrupts")
    without = sums_by_thread(other)[tid]
    check(without["cpu_ns"] >= row["cpu_ns"] + measured["soft_ns"] / 2, f"unexpected time on a CPU: {without['cpu_ns']}, {row['cpu_ns']}, {measured}")


@case
def lines_and_histograms():
    gaps = interrupted()
    lines = Tool("-p", gaps.pid, "-e", "--interrupts")
    buckets = Tool("-p", gaps.pid, "-H", "gap", "-L", "--interrupts")
    gaps.go()
    (tid, measured), = gaps.report().items()
    events = [row for row in lines.finish().events if row["tid"] == tid]
    check_sums([row | {"wall_ns": row["gap_ns"]} for row in events])
    same({key: sum(row[key] for row in events) for key in interrupts}, measured, "all gaps")
    counts = [bucket for row in buckets.finish().of_type("hist") for bucket in row["buckets"]]
    same({key: sum(bucket[key] for bucket in counts) for key in interrupts}, measured, "all buckets")
