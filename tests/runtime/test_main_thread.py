# SPDX-License-Identifier: Apache-2.0
"""Processes whose main thread has exited while other threads run: they are read and traced as usual."""
import re

import harness
import memory
import system
from containers import Cgroup
from harness import case, check, equal, wait_until
from programs import Tool, Workload
from test_alloc_ends import exits, held, newest
from test_cgroups import fresh
from test_python import Script, interpreter
from truth import same_counts

tiers = {tier: tier for tier in ("session", "multi", "tracefs", "perf")}

calls = "launch vecadd 101; launch saxpy 7; launch reduce 3; threads 2; launch vecadd 11; end"


def wait_for_exit_of_main(workload):
    wait_until(lambda: system.stat_fields(workload.pid)[:1] == ["Z"], "the main thread exits")


def without_main_thread(script, form="workload", **options):
    """A workload whose main thread has exited. Another thread runs the script once {dir}/run exists."""
    workload = Workload(f"background; wait {{dir}}/run; {script}; end; exitmain", form, **options).go()
    wait_for_exit_of_main(workload)
    return workload


def go():
    (harness.here / "run").touch()


def by_pid(tool, *workloads):
    """Checks the counts of these processes, and that all kernels have names."""
    truth = [call for workload in workloads for call in workload.truth()]
    rows = [row for row in tool.rows if row["pid"] in {workload.pid for workload in workloads}]
    same_counts(tool, truth, by=("pid", "kernel"))
    equal([row for row in rows if not row["kernel"]], [], "kernels without a name")


@case(each=tiers, long=["perf"])
def exited_before_tracing(tier):
    """-p of a process without main thread. Other processes call the same libraries."""
    system.need_tier(tier)
    workload, other = without_main_thread(calls), Workload("wait {dir}/run; launch vecadd 1009; fork; launch saxpy 5; end")
    tool = Tool("-p", workload.pid, "--by", "pid,kernel", "--attach", tier)
    check("yet" not in tool.error, f"the tool did not find the driver: {tool.error}")
    other.go()
    go()
    other.wait()
    workload.wait()
    by_pid(tool.finish(), workload)
    equal({row["pid"] for row in tool.rows}, {workload.pid}, "processes")


@case(each={"machine": [], "name": ["-n", "mainless"]}, alone=True)
def system_wide_or_by_name(scope):
    workload = without_main_thread(calls, name="mainless")
    tool = Tool("--by", "pid,kernel", *scope)
    go()
    workload.wait()
    by_pid(tool.stop(), workload)


@case(each={"v2": "v2", "memory": "memory"})
def in_a_cgroup(hierarchy):
    """Another member of the cgroup has its main thread, and a third process is not a member."""
    group = Cgroup(hierarchy, fresh())
    workload = without_main_thread(calls, preexec=group.join)
    other = Workload("wait {dir}/run; launch vecadd 13", preexec=group.join).go()
    stranger = Workload("wait {dir}/run; launch vecadd 17").go()
    tool = Tool("-c", group.path, "--by", "pid,kernel")
    go()
    stranger.wait(), workload.wait(), other.wait()
    by_pid(tool.stop(), workload, other)
    equal({row["pid"] for row in tool.rows}, {workload.pid, other.pid}, "processes")


@case(each=tiers, long=["perf"], alone=True)
def exits_while_traced(tier):
    """No call is lost or counted twice, even after another tool with probes at the same places has detached."""
    system.need_tier(tier)
    workload = Workload(f"""
        background; launch vecadd 5; touch {{dir}}/begun; wait {{dir}}/run; {calls}; touch {{dir}}/called; wait {{dir}}/again; {calls}; wait {{dir}}/end; end
        launch apply 19; wait {{dir}}/exit; exitmain""")
    other = Workload("wait {dir}/run; launch vecadd 1009").go()
    tool = Tool("-p", workload.pid, "--by", "pid,kernel", "--attach", tier, "-l")
    beside = Tool("-p", workload.pid, "--by", "pid,kernel")
    workload.go()
    wait_until((harness.here / "begun").exists, "the other thread runs")
    (harness.here / "exit").touch()
    wait_for_exit_of_main(workload)
    if tier in ("tracefs", "perf"):  # lose calls until the process has probes again, and report the loss
        wait_until(lambda: "switch to system-wide" in tool.error, "the process has probes again", 60)
    go()
    wait_until((harness.here / "called").exists, "the calls are made")
    other.wait()
    beside.stop()
    (harness.here / "again").touch()
    equal(tool.process.poll(), None, "exit status while a thread runs")
    (harness.here / "end").touch()
    workload.wait()
    by_pid(tool.finish(), workload)
    equal({row["pid"] for row in tool.rows}, {workload.pid}, "processes")


@case
def exec_by_another_thread():
    """exec() makes the calling thread the main thread, and ends the old one: the process gets probes again."""
    workload = Workload("background; launch vecadd 11; exec; wait {dir}/on; launch vecadd 13; launch saxpy 3; end; end; wait {dir}/never")
    tool = Tool("-p", workload.pid, "--by", "pid,kernel", "-v")
    workload.go()
    wait_until(lambda: re.search("system-wide probes|probes were attached again are not counted", tool.error),
               "the program has probes")
    (harness.here / "on").touch()
    workload.wait()
    by_pid(tool.finish(), workload)


@memory.case
def allocations_stay_held():
    """gpualloc: memory is held while any thread runs, and the process counts as exited with its last thread."""
    workload = Workload("alloc a 5000; alloc b 600 fn=cudaMallocHost; background; wait {dir}/more; alloc c 70; touch {dir}/there; wait {dir}/end; end; exitmain")
    tools = [Tool("-p", workload.pid, "-i", "0.2", "--by", "kind"), Tool("-p", workload.pid, "--exited")]
    workload.go()
    wait_for_exit_of_main(workload)
    live = lambda: sum(row["live_bytes"] for row in newest(tools[0]))
    wait_until(lambda: live() == 5600, "all allocations are shown")
    reports = lambda: len({row["time"] for row in tools[0].rows})
    before = reports()
    wait_until(lambda: reports() > before + 5, "more reports")
    equal(live(), 5600, "held without the main thread")
    (harness.here / "more").touch()
    wait_until(lambda: live() == 5670, "the other thread's allocation")
    equal(tools[1].events, [], "exits")
    (harness.here / "end").touch()
    workload.wait()
    equal(exits(tools[1].finish(), workload.pid)[0], [held(workload)], "held at exit")
    tools[0].finish()


@memory.case(alone=True)
def allocations_stay_held_system_wide():
    """Without -p, memory is released when the last thread has exited."""
    workload = Workload("alloc a 5000; background; wait {dir}/end; end; exitmain")
    tools = [Tool("-i", "0.2", "--by", "pid"), Tool("--exited", losses=True)]
    workload.go()
    wait_for_exit_of_main(workload)
    mine = lambda: [row for row in newest(tools[0]) if row["pid"] == workload.pid]
    wait_until(lambda: [row["live_bytes"] for row in mine()] == [5000], "the allocation is shown")
    reports = lambda: len({row["time"] for row in tools[0].rows if row["pid"] == workload.pid and row["live_bytes"] == 5000})
    before = reports()
    wait_until(lambda: reports() > before + 10, "reports for longer than it takes to detect an exit")
    equal([event for event in tools[1].events if event["pid"] == workload.pid], [], "exits")
    (harness.here / "end").touch()
    workload.wait()
    wait_until(lambda: exits(tools[1], workload.pid)[0] == [(5000, 1)], "the exit")
    released = lambda: sum(row["released_bytes"] for row in tools[0].rows if row["pid"] == workload.pid)
    wait_until(lambda: released() == 5000, "the memory is released")
    tools[0].stop()
    equal(released(), 5000, "released at exit")
    tools[1].stop()


@case
def user_stacks():
    workload = without_main_thread("launch vecadd 101; touch {dir}/called; wait {dir}/end")
    tool = Tool("-p", workload.pid, "-U")
    go()
    wait_until((harness.here / "called").exists, "the calls are made")
    rows = tool.stop().rows
    (harness.here / "end").touch()
    workload.wait()
    equal(sum(row["launches"] for row in rows), 101, "launches")
    for row in rows:
        check(any("workload::" in frame for frame in row["frames"]), f"no function of the workload in {row}")


python = """
import ctypes, sys, threading
driver = ctypes.CDLL(sys.argv[1])
driver.cuLaunchKernel.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
state = "/proc/self/task/%d/stat" % threading.main_thread().native_id
def launch_all():
    for _ in range(20):
        driver.cuLaunchKernel(16, 1, 1, 1, 1, 1, 1, 0, None, None, None)
def other():
    while open(state).read().rpartition(") ")[2][0] != "Z":
        pass
    print("up", flush=True)
    sys.stdin.readline()
    launch_all()
    print("done", flush=True)
    sys.stdin.readline()
threading.Thread(target=other).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@case
def python_lines():
    """The tool uses another thread of the process to find the interpreter and read its frames."""
    script = Script(interpreter("3.11"), "-c", python, harness.standin / "libcuda.so.1")
    tool = Tool("-p", script.pid, "-U")
    script.go()
    rows = tool.stop().rows
    equal(sum(row["launches"] for row in rows), 20, "launches")
    for row in rows:
        frames = [frame["function"] for frame in row["stack"] if frame["language"] == "python"]
        equal(frames[:2], ["launch_all", "other"], f"{row}")
