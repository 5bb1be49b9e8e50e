# SPDX-License-Identifier: Apache-2.0
"""cudagap --interrupts, against how long a program was kept busy in soft and hard interrupts (standin/interrupts)."""
from gaps import Gaps, check_sums, case, interrupts, sums_by_thread
from harness import check
from programs import Tool


def interrupted():
    return Gaps(200, 500, program="interrupted")


def same(row, said, what):
    """There are interrupts around what is known, such as the rest of the way that a packet takes, and ticks within it."""
    known = said["soft_ns"], said["hard_ns"]
    most = known[0] + 5e6 + 200 * 5e4, known[1] + 5e6 + 0.05 * said["wall_ns"]
    for key, least, at_most in zip(("softirq_ns", "hardirq_ns"), known, most):
        check(least - 5e6 <= row[key] <= at_most, f"{key} of {what}: {row[key]}, {said}")


@case
def parts():
    """Others have it in what they are in: here, mostly on a CPU."""
    gaps = interrupted()
    tool = Tool("-p", gaps.pid, "--by", "thread", "--interrupts")
    other = Tool("-p", gaps.pid, "--by", "thread")
    gaps.go()
    (tid, said), = gaps.report().items()
    row = sums_by_thread(tool.finish())[tid]
    same(row, said, "the thread")
    check(not any(key in told for told in other.finish().rows for key in interrupts), "only where they are asked for")
    without = sums_by_thread(other)[tid]
    check(without["cpu_ns"] >= row["cpu_ns"] + said["soft_ns"] / 2, f"on a CPU: {without['cpu_ns']}, {row['cpu_ns']}, {said}")


@case
def lines_and_histograms():
    gaps = interrupted()
    lines = Tool("-p", gaps.pid, "-e", "--interrupts")
    buckets = Tool("-p", gaps.pid, "-H", "gap", "-L", "--interrupts")
    gaps.go()
    (tid, said), = gaps.report().items()
    gaps_told = [row for row in lines.finish().events if row["tid"] == tid]
    check_sums([row | {"wall_ns": row["gap_ns"]} for row in gaps_told])
    same({key: sum(row[key] for row in gaps_told) for key in interrupts}, said, "all gaps")
    told = [bucket for row in buckets.finish().of_type("hist") for bucket in row["buckets"]]
    same({key: sum(bucket[key] for bucket in told) for key in interrupts}, said, "all buckets")
