# SPDX-License-Identifier: Apache-2.0
"""Child processes, and exec."""
import sys

import harness
import system
from harness import case, equal, wait_until
from programs import Tool, Workload
from truth import opening, same_counts

family = """
launch vecadd 1009
fork; launch vecadd 7; threads 2; launch saxpy 11; end; fork; launch reduce 5; end; end
launch saxpy 13
exec; launch vecadd 17; fork; launch apply 3; end; end
"""


def pids(tool):
    return {row["pid"] for row in tool.rows}


@case(each={"entry": [], "latency": ["-l"]}, alone=True)
def system_wide_counts_all(mode):
    workload = Workload(family)
    tool = Tool("--by", "pid,kernel", *mode)
    workload.go()
    truth = workload.truth()
    equal(len({call["pid"] for call in truth}), 4, "processes in the truth")
    same_counts(tool.stop(), truth, by=("pid", "kernel"), errors=bool(mode))


@case(each={"entry": [], "latency": ["-l"]}, asan=True)
def a_process_without_its_children(mode):
    """-p traces the process before and after exec, but not its children."""
    workload = Workload(family)
    tool = Tool("-p", workload.pid, "--by", "pid,kernel", *mode)
    workload.go()
    truth = [call for call in workload.truth() if call["pid"] == workload.pid]
    tool.finish()
    equal(pids(tool), {workload.pid}, "processes")
    same_counts(tool, truth, by=("pid", "kernel"), errors=bool(mode))


@case
def a_child_alone():
    """-p of a child that already exists. The child has a copy of its parent's memory, and the parent is not traced."""
    workload = Workload("fork; touch {dir}/child; wait {dir}/run; launch vecadd 7; end; launch vecadd 11")
    workload.go()
    wait_until((harness.here / "child").exists, "the child runs")
    child, = system.descendants(workload.pid)
    tool = Tool("-p", child, "--by", "pid,kernel")
    (harness.here / "run").touch()
    truth = [call for call in workload.truth() if call["pid"] == child]
    tool.finish()
    equal(pids(tool), {child}, "processes")
    same_counts(tool, truth, by=("pid", "kernel"))


@case(gpu=True)
def a_child_of_a_parent_without_a_context():
    """On a real device, a child can use CUDA only if its parent had not used it before the fork. Both launch."""
    workload = Workload("dlopen; fork; touch {dir}/child; wait {dir}/run; launch vecadd 7; end; launch vecadd 11",
                        "workload-dlopen", warm=False)
    wait_until((harness.here / "child").exists, "the child runs")
    child, = system.descendants(workload.pid)
    tool = Tool("-p", f"{child},{workload.pid}", "--by", "pid,kernel")
    (harness.here / "run").touch()
    truth = workload.truth()
    tool.finish()
    equal(pids(tool), {child, workload.pid}, "processes")
    same_counts(tool, truth, by=("pid", "kernel"))


@case(gpu=True)
def exec_of_the_same_program():
    """The same files are mapped again: no call is missed, and the contexts are new ones."""
    workload = Workload("launch vecadd 19; exec; launch vecadd 23; launch saxpy 5; exec; launch vecadd 3; end; end",
                        "workload-driver")
    tool = Tool("-p", workload.pid, "--by", "pid,kernel")
    truth = workload.go().truth()
    same_counts(tool.finish(), truth, by=("pid", "kernel"))


@case
def exec_of_other_programs():
    """After exec the process maps other files: another runtime, another program."""
    workload = Workload("launch vecadd 19; exec workload13; launch scale 1; sleep 200; launch vecadd 23\n"
                        "exec workload-driver; launch scale 1; sleep 200; launch vecadd 29; launch mine 31; end; end")
    tools = [Tool("-p", workload.pid, "--api", api) for api in ("driver", "both")]
    workload.go()
    truth = workload.truth()
    for tool, api in zip(tools, ("driver", "both")):
        same_counts(tool.finish(), truth, api=api, ignore=opening)


# clone3() with the given pid, and SIGCHLD at exit; then exec of the given program.
run_with_pid = """
import ctypes, os, struct, sys
pid = ctypes.c_int(int(sys.argv[1]))
arguments = struct.pack("11Q", 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(pid), 1, 0)
child = ctypes.CDLL(None, use_errno=True).syscall(435, arguments, len(arguments))
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child > 0 else os.strerror(ctypes.get_errno()))
"""


@case(each={tier: tier for tier in ("session", "tracefs")}, long=["tracefs"])
def reused_pid(tier):
    """-p of two processes, one of which exits: a new process with its pid is not traced."""
    system.need_tier(tier)
    first, other = Workload("launch vecadd 3"), Workload("wait {dir}/end; launch reduce 5")
    tool = Tool("-p", f"{first.pid},{other.pid}", "--by", "pid,kernel", "--attach", tier)
    other.go(), first.go().wait()
    system.time.sleep(0.3 * harness.patience)  # until the tool has noticed the exit
    again = Workload("sleep 500; launch saxpy 7", wrap=lambda command: [sys.executable, "-c", run_with_pid, str(first.pid), *command])
    equal({call["pid"] for call in again.go().truth()}, {first.pid}, "pid of the new process")
    (harness.here / "end").touch()
    truth = first.truth() + other.truth()
    same_counts(tool.finish(), truth, by=("pid", "kernel"))
