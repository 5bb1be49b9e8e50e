# SPDX-License-Identifier: Apache-2.0
"""How a run ends (by a signal, the exit of its target, or a closed output), and that it leaves nothing behind."""
import os
import re
import signal
import subprocess

import harness
import leftovers
import system
from harness import case, check, equal, wait_until
from programs import Tool, Workload
from truth import same_counts


@case(each={name: getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP")}, alone=True)
def signal_ends_with_a_report(number):
    workload = Workload("launch vecadd 101; touch {dir}/done; wait {dir}/end")
    tool, text = Tool("-p", workload.pid, "1000"), Tool("-p", workload.pid, json=False)
    workload.go()
    wait_until((harness.here / "done").exists, "the launches are made")
    equal([row["launches"] for row in tool.stop(number).rows], [101], "launches")
    check("101" in text.stop(number).text, f"no count in the text: {text.text}")
    leftovers.check_no_breakpoints(workload.pid, "libcuda")
    equal(workload.process.poll(), None, "exit status of the workload")


@case
def nohup():
    """If SIGHUP is ignored at the start, it does not end the tool. Other signals do, even if they are ignored, as in
    background jobs of a shell."""
    def ignore():
        for number in signal.SIGHUP, signal.SIGINT:
            signal.signal(number, signal.SIG_IGN)
    workload = Workload("launch vecadd 101; touch {dir}/done; wait {dir}/end")
    tool = Tool("-p", workload.pid, "-i", "0.2", preexec=ignore)
    tool.process.send_signal(signal.SIGHUP)
    workload.go()
    wait_until((harness.here / "done").exists, "the launches are made")
    wait_until(lambda: tool.rows, "reports continue")
    equal([row["launches"] for row in tool.stop(signal.SIGINT).rows], [101], "launches")


@case(alone=True)
def report_before_detaching():
    """Ctrl-C prints the final report immediately, even if detaching takes seconds (--attach perf)."""
    workload = Workload("launch vecadd 101; touch {dir}/done; wait {dir}/end", "workload-driver")
    tool = Tool("-p", workload.pid, "--attach", "perf")
    workload.go()
    wait_until((harness.here / "done").exists, "the launches are made")
    tool.process.send_signal(signal.SIGINT)
    wait_until(lambda: tool.lines and '"end"' in tool.lines[-1], "the last line")
    equal(tool.process.poll(), None, "exit status: detaching takes seconds")
    tool.finish()


@case(long=True)
def report_before_detaching_from_an_exited_target():
    """The exit of the target also ends the tool. The last report is printed before the probes are detached."""
    workload = Workload("launch vecadd 101", "workload-driver")
    tool = Tool("-p", workload.pid, "--attach", "perf")
    workload.go().wait()
    wait_until(lambda: tool.lines and '"end"' in tool.lines[-1], "the last line")
    equal(tool.process.poll(), None, "exit status: detaching takes seconds")
    tool.finish()


@case(asan=True)
def target_is_killed():
    """The target is killed while it launches: the tool ends with the counts so far."""
    workload = Workload("launch vecadd 101; touch {dir}/done; forever; launch vecadd 100; end")
    tool, with_another_target = Tool("-p", workload.pid), Tool("-p", f"{workload.pid},{Workload('').pid}")
    workload.go()
    wait_until((harness.here / "done").exists, "the target launches")
    workload.process.kill()
    launches = sum(row["launches"] for row in tool.finish().rows)
    check(launches > 100, f"only {launches} launches")
    equal(sum(row["launches"] for row in with_another_target.stop().rows), launches, "launches according to another tool")


@case(each={"table": ["0.1"], "events": ["-e"], "json": ["-e", "--json"], "histogram": ["-H", "grid", "0.1"]},
      asan=True)
def reader_exits(mode):
    """With `| head -1`, the tool exits with 0 and prints no message."""
    workload = Workload("forever; launch vecadd 100; sleep 1; end")
    workload.go()
    head = subprocess.Popen(["head", "-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    tool = Tool("-p", workload.pid, *mode, json=False, stdout=head.stdin)
    head.stdin.close()
    equal(tool.process.wait(20), 0, f"exit status ({tool.error})")
    check(head.stdout.read(), "head printed no line")
    equal(head.wait(), 0, "exit status of head")
    equal(re.sub("Tracing .*\n", "", tool.error), "", "standard error")
    workload.stop()


@case
def output_on_a_full_disk():
    """The tool exits with 1, and states the reason."""
    workload = Workload("launch vecadd 10")
    with open("/dev/full", "w") as full:
        tool = Tool("-p", workload.pid, json=False, stdout=full)
    workload.go().wait()
    tool.finish(code=1)
    check("standard output" in tool.error, f"no reason given: {tool.error}")


@case
def a_slow_reader():
    """A reader that pauses delays the output, but no event is lost."""
    workload = Workload("repeat 20; launch vecadd 100; launch saxpy 3; sleep 30; end; touch {dir}/done")
    reading, writing = os.pipe()
    tool = Tool("-p", workload.pid, "-e", stdout=writing)
    os.close(writing)
    workload.go()
    wait_until((harness.here / "done").exists, "the launches are made")
    with open(reading, "rb") as pipe:
        lines = pipe.read().splitlines()
    equal(tool.process.wait(20), 0, "exit status")
    equal(sum(b'"event"' in line for line in lines), 20 * 103, "events")


@case(each={tier: tier for tier in ("session", "multi", "tracefs", "perf")}, long=["perf"], alone=True)
def nothing_left_after_sigkill(tier):
    """The tool is killed: the target continues with its original code, and no BPF program remains."""
    system.need_tier(tier)
    workload = Workload("touch {dir}/done; wait {dir}/end; launch vecadd 1000", "workload-driver")
    killed = Tool("-p", workload.pid, "-l", "--attach", tier)
    held = leftovers.programs_of(killed.pid)
    check(len(held) >= 3 and leftovers.breakpoints(workload.pid, "libcuda"), "the tool has too few programs, or no breakpoints")
    killed.process.kill()
    killed.process.wait()
    if tier == "tracefs":
        # Uprobe events of a killed tool remain until the next run or --clean (see the manual); they are harmless.
        leftovers.remove(leftovers.stale_events({killed.pid}))
    wait_until(lambda: not held & leftovers.programs(), "the programs are unloaded")
    leftovers.check_no_breakpoints(workload.pid, "libcuda")
    (harness.here / "end").touch()
    workload.go().wait()


@case
def start_is_prompt():
    """Limits the CPU time of a run, including the verifier's. Unlike elapsed time, it does not depend on other load."""
    workload = Workload("")
    for mode in ([], ["-l"], ["-x", "--by", "thread,stream,kernel"], ["-U"], ["-e", "-l"], ["-H", "grid"]):
        before = os.times()
        tool = Tool("-p", workload.pid, "-d", "0.05", *mode).finish()
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        check(spent < 1, f"{tool} used {spent:.2f} s of CPU time")


@case
def several_tools_at_once():
    """Tools that start and stop while the workload runs do not disturb each other's counts."""
    workload = Workload("touch {dir}/up; wait {dir}/start; launch vecadd 10009; launch saxpy 503 result=719; touch {dir}/done\n"
                        "wait {dir}/end")
    workload.go()
    tools = [Tool("-p", workload.pid, *mode) for mode in ([], ["-l"], ["-x"], ["-e"], ["--api", "both", "-l"],
                                                          ["--api", "runtime"])]
    for tool in tools[:2]:
        tool.stop()
    tools += [Tool("-p", workload.pid, "-l")]
    (harness.here / "start").touch()
    wait_until((harness.here / "done").exists, "the launches are made")
    for tool in tools[2:]:
        tool.stop()
    (harness.here / "end").touch()
    truth = workload.truth()
    same_counts(tools[2], truth, errors=True, failed_only=True)
    equal(len(tools[3].events), 10512, "events")
    same_counts(tools[4], truth, api="both", errors=True)
    same_counts(tools[5], truth, api="runtime")
    same_counts(tools[6], truth, errors=True)
