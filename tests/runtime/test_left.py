# SPDX-License-Identifier: Apache-2.0
"""Abandoned calls: a thread jumps out of a call, which then never returns, e.g. by siglongjmp() in a crash handler or
by Ctrl-C in an interpreter. The thread's next call from the same place or from higher up its stack reveals it."""
import harness
import system
import tops
import waits
from harness import equal, wait_until
from programs import Tool, Workload

forever = "block_us=60000000"
tiers = {tier: tier for tier in ("session", "multi", "tracefs")}


def abandoned(call, times=30):
    return f"repeat {times}; leave 1; {call}; end; end\n"


def traced(script, *arguments, tool=Tool):
    workload = Workload(script, "workload-driver")
    tool = tool("-p", workload.pid, *arguments, losses=True)
    workload.go()
    truth = workload.truth()
    return tool.finish(), truth


@harness.case(each=tiers)
def launches(tier):
    """Modes that trace returns do not count abandoned calls as launches, but report their number."""
    system.need_tier(tier)
    script = abandoned(f"deeper 65536; launch vecadd 1 {forever}; end") + "launch vecadd 7"
    for mode in "-l", "-x":
        tool, _ = traced(script, mode, "--by", "pid", "--attach", tier)
        equal(sum(row["launches"] for row in tool.rows), 7 if mode == "-l" else 0, f"launches, {mode}")
        equal(tool.lost, {"calls_left": 30}, f"losses, {mode}")


@tops.case
def in_each_part():
    """Each of cudatop's programs tracks calls; an abandoned call is reported once."""
    script = "".join(abandoned(f"deeper 65536; {call}; end", 5)
                     for call in (f"copy 1 fn=cuMemcpyDtoH_v2 {forever}", f"sync 1 {forever}", f"alloc a 4096 {forever}"))
    tool, truth = traced(script + "launch vecadd 3; copy 3; sync 3; alloc b 4096", "-l", "--by", "pid")
    equal(tool.lost.get("calls_left"), 15, f"losses: {tool.lost}")
    tops.same(tool, truth, mode=["-l"])


@waits.case
def short_wait():
    """A wait is abandoned before any report shows it, and the thread never waits again."""
    tool, truth = traced(f"leave 1; sync 1 {forever}; end; repeat 150; sync 1 fn=cuStreamQuery gap_us=20000; end")
    waits.same_waits(tool, truth, by=("pid", "wait"))
    equal(([row["waiting"] for row in tool.rows], tool.lost), ([0], {"calls_left": 1}), "waits, and losses")


def long_wait(case_tool, after, *arguments):
    """A thread abandons a wait after three seconds and makes other calls: it is no longer shown as waiting."""
    script = f"leave 3000; deeper 65536; sync 1 {forever}; end; end; touch {{dir}}/abandoned; {after}"
    workload = Workload(script, "workload-driver")
    tool = case_tool("-p", workload.pid, "-i", "0.3", *arguments, losses=True)
    workload.go()
    wait_until(lambda: waits.waiting_threads(tool, workload.pid) == 1, "the thread waits")
    wait_until((harness.here / "abandoned").exists, "the wait is abandoned")
    wait_until(lambda: waits.waiting_threads(tool, workload.pid) == 0, "the thread is no longer shown as waiting")
    workload.stop()
    equal(tool.finish().lost.get("calls_left"), 1, f"losses: {tool.lost}")
    return tool


@waits.case
def waits_after_a_wait():
    """Only waits are traced: the thread's next wait reveals that the previous one was abandoned."""
    tool = long_wait(Tool, "forever; sync 1 fn=cuStreamQuery gap_us=20000; end", "--by", "pid")
    waiting = [row["waiting"] for row in tool.rows]
    equal((max(waiting), waiting[-1]), (1, 0), "the wait was shown, but not at the end")


@tops.case
def calls_after_a_wait():
    long_wait(Tool, "forever; alloc a 4096 gap_us=20000; end")


@tops.case
def within_a_wait():
    """A signal handler makes calls while its thread waits: the wait is not abandoned."""
    script = "interrupt 2000; launch vecadd 60 gap_us=20000; copy 5; end; sync 1 block_us=60000000; launch vecadd 3"
    tool, truth = traced(script, "-i", "0.3")
    tops.same(tool, truth)
    equal(tool.lost, {}, "losses")
