# SPDX-License-Identifier: Apache-2.0
"""Filters: only selected processes are counted, and others are not slowed down."""
import os

import bystanders
import harness
import leftovers
import system
from harness import case, equal, wait_until
from programs import Tool, Workload
from truth import same_counts

script = "launch vecadd 1009; threads 3; launch saxpy 101; end"


def pids(tool):
    return {row["pid"] for row in tool.rows}


def truth_of(workloads):
    for workload in workloads:
        workload.go()
    return [workload.truth() for workload in workloads]


@case(asan=True)
def two_processes_of_three():
    a, b, c = (Workload(script) for _ in range(3))
    with_comma = Tool("-p", f"{a.pid},{b.pid}", "--by", "pid,kernel")
    twice = Tool("-p", a.pid, "-p", c.pid, "-p", a.pid, "--by", "pid,kernel", "-l")
    of_a, of_b, of_c = truth_of([a, b, c])
    same_counts(with_comma.finish(), of_a + of_b, by=("pid", "kernel"))
    equal(pids(with_comma), {a.pid, b.pid}, "processes")
    same_counts(twice.finish(), of_a + of_c, by=("pid", "kernel"), errors=True)
    equal(pids(twice), {a.pid, c.pid}, "processes")


@case
def last_target_ends_the_run():
    """When one of two targets exits, the tool continues with the other. It exits when the last target exits."""
    a, b = Workload(script), Workload(script)
    tool = Tool("-p", f"{a.pid},{b.pid}", "--by", "pid,kernel")
    of_a = a.go().truth()
    # By now, the tool has detached most or all probes of the first target.
    of_b = b.go().truth()
    same_counts(tool.finish(), of_a + of_b, by=("pid", "kernel"))


@case
def one_thread():
    workload = Workload("threads 4; wait {dir}/threads; launch vecadd 1009; end; launch saxpy 50")
    workload.go()
    tid = workload.threads(4)[1]
    thread = Tool("-t", tid, "--by", "thread,kernel")
    leader = Tool("-t", workload.pid, "--by", "thread,kernel", "-l")
    (harness.here / "threads").touch()
    truth = workload.truth()
    for tool, wanted in (thread, tid), (leader, workload.pid):
        tool.finish()
        equal({row["tid"] for row in tool.rows}, {wanted}, "threads")
        same_counts(tool, [call for call in truth if call["tid"] == wanted], by=("tid", "kernel"), errors=tool is leader)


@case(alone=True)
def names():
    """-n matches a part of the name of a process or thread, up to all of its 15 bytes."""
    tag = f"q{os.getpid() % 0xfffff:x}z"
    long = f"{tag}-full-length-x"[:15]
    named = Workload(f"name {tag}; launch vecadd 1009; threads 2; name other; launch saxpy 11; end")
    in_the_end = Workload(f"name a-prefix-{tag}; launch vecadd 503")
    one_thread_only = Workload(f"threads 2; launch reduce 7; end; threads 2; name t-{tag}; launch saxpy 13; end")
    longest = Workload(f"name {long}; launch vecadd 251")
    nobody = Workload(f"name {tag[:-1]}; launch vecadd 17; name {tag[1:]}; launch vecadd 19")
    workloads = [named, in_the_end, one_thread_only, longest, nobody]
    tools = {text: Tool("-n", text, "--by", "thread,kernel") for text in (tag, long)}
    truth = truth_of(workloads)
    # The tool reads the process name (of the first thread) at the call; the truth has it at the end of the step.
    wanted = [call for calls in (truth[0], truth[1], truth[3]) for call in calls]
    wanted += [call for call in truth[2] if call["comm"] == f"t-{tag}"]
    same_counts(tools[tag].stop(), wanted, by=("tid", "kernel"))
    same_counts(tools[long].stop(), truth[3], by=("tid", "kernel"))
    everyone = {workload.pid for workload in workloads}
    equal(pids(tools[tag]) & everyone, everyone - {nobody.pid}, "processes")
    equal(pids(tools[long]) & everyone, {longest.pid}, "processes")


@case(each={tier: tier for tier in ("session", "multi", "tracefs", "perf")}, long=["perf"], alone=True)
def other_processes_hit_no_probes(tier):
    """A process outside -p, and its child, hit no breakpoint and run no BPF program."""
    bystanders.check_others_hit_no_probes(tier, lambda target: ("-p", target), Tool.finish)


@case(each={tier: tier for tier in ("session", "tracefs")}, alone=True)
def processes_with_other_names_hit_no_probes(tier):
    """With -n, processes with another name hit no breakpoint and run no BPF program."""
    bystanders.check_others_hit_no_probes(tier, lambda target: ("-n", "eedl"), Tool.stop, name="needle")


@case(alone=True)
def processes_that_get_the_name_later():
    """Processes that get the name later, through a thread, a fork or an exec, are counted once they have probes."""
    first = Workload("launch vecadd 11", name="needle")
    thread = Workload("threads 2; name b-needle; wait {dir}/traced; launch saxpy 7; end; launch vecadd 1000")
    forks = Workload("fork; wait {dir}/traced; launch vecadd 3; end; wait {dir}/traced; launch vecadd 5", name="a-needle")
    hay = Workload("launch vecadd 500; wait {dir}/traced", name="hay")
    tool = Tool("-n", "needle", "--by", "thread,kernel")
    for workload in thread, hay:
        leftovers.check_no_breakpoints(workload.pid, "libcuda.so")
    for workload in thread, forks, hay:
        workload.go()
    child, = wait_until(lambda: system.descendants(forks.pid), "the child")
    (harness.here / "needle").symlink_to(harness.standin / "workload-driver")
    late = Workload("touch {up}; wait {go}; launch scale 2", "needle", folder=harness.here, warm=False).ready()
    for pid in thread.pid, child, late.pid:
        wait_until(lambda: leftovers.breakpoints(pid, "libcuda.so"), "its probes")
    leftovers.check_no_breakpoints(hay.pid, "libcuda.so")
    (harness.here / "traced").touch()
    truth = [call for calls in truth_of([first, late, thread, forks]) for call in calls]
    hay.wait()
    same_counts(tool.stop(), [call for call in truth if "needle" in call["comm"]], by=("tid", "kernel"))
