# SPDX-License-Identifier: Apache-2.0
"""cudasync: waits that last over several reports, and waits that never return."""
import secrets
import signal
import time

import harness
import system
import waits
from containers import Cgroup
from harness import check, equal, wait_until
from programs import Tool, Workload
from waits import case, check_consistency, row_while, same_times, same_waits, waiting_threads

forever = "block_us=60000000"


@case
def frequent_reports():
    """Reports every 10 ms, during waits that begin and return all the time on more threads than CPUs."""
    workload = Workload("threads 20; sync 500 block_us=3000; copy 300; end; sync 1 block_us=300000", "workload-driver")
    tool = Tool("-p", workload.pid, "-i", "0.01", "--by", "thread,api,wait")
    workload.go()
    truth = workload.truth()
    tool.finish()
    same_waits(tool, truth, by=("tid", "function", "wait"))
    same_times(tool, truth, by=("tid", "function", "wait"))
    check_consistency(tool)


@case(each={"first": "sync 1 {}", "another": "threads 3; sync 1 {}; end"}, asan=True, alone=True)
def killed(script):
    """The process stays a zombie: no row shows it as waiting, and the kernel's table forgets it."""
    workload = Workload(script.format(forever))
    tool = Tool("-i", "0.2")
    workload.go()
    threads = 3 if "threads" in script else 1
    row_while(tool, workload.pid, lambda row: row["waiting"] == threads, "rows of the waits")
    equal(waiting_threads(tool, workload.pid), threads, "threads that wait")
    workload.process.send_signal(signal.SIGKILL)
    wait_until(lambda: system.stat_fields(workload.pid)[0] == "Z", "the process is a zombie")
    last = [row for row in tool.rows if row["pid"] == workload.pid][-1]["time"]
    wait_until(lambda: waiting_threads(tool, workload.pid) == 0, "the kernel's table forgets it")
    after = {row["time"] for row in tool.stop().rows if row["pid"] == workload.pid and row["time"] > last}
    check(len(after) <= 1, f"rows after the exit: {tool.rows}")


@case(alone=True)
def killed_without_intervals():
    """Without intervals, nothing reads the table of waits until the tool ends. Entries of a killed process are removed
    when it exits, and the final report has the time that they waited."""
    workloads = [Workload(f"threads 5; sync 1 {forever}; end") for _ in range(3)]
    tool = Tool()
    begin = time.monotonic_ns()
    for workload in workloads:
        workload.go()
    wait_until(lambda: waiting_threads(tool, *(w.pid for w in workloads)) == 15, "all threads wait")
    for workload in workloads:
        workload.process.kill()
        workload.process.wait()
    took = time.monotonic_ns() - begin
    wait_until(lambda: waiting_threads(tool, *(w.pid for w in workloads)) == 0, "the kernel's table forgets them")
    pids = {workload.pid for workload in workloads}
    rows = {row["pid"]: row for row in tool.stop().rows if row["pid"] in pids}
    equal({pid: (row["calls"], row["waiting"], row["ended"]) for pid, row in rows.items()},
          {pid: (0, 0, 5) for pid in pids}, "calls, waits in flight, and waits ended by exit")
    for row in rows.values():
        check(0 < row["ended_ns"] == row["total_ns"] <= 5 * (took + 0.1e9), f"unexpected time, with a lifetime of {took} ns: {row}")


@case
def killed_target():
    """The tool exits with its target. Its last table has the interrupted wait; in text, the column ENDED counts it."""
    workload = Workload(f"sync 3; touch {{dir}}/there; sync 1 {forever}")
    tools = [Tool("-p", workload.pid, json=False), Tool("-p", workload.pid, "-i", "0.1")]
    workload.go()
    wait_until((harness.here / "there").exists, "the target is about to wait")
    row_while(tools[1], workload.pid, lambda row: row["waiting"] == 1, "a row of the wait")
    workload.process.kill()
    workload.process.wait()
    header, row = (line.split() for line in tools[0].finish().lines)
    shown = dict(zip(header, row))
    equal([shown.get(name) for name in ("CALLS", "WAITING", "ENDED")], ["3", "0", "1"], f"{header}, {row}")
    rows = tools[1].finish().rows
    equal([row["ended"] for row in rows], [0] * (len(rows) - 1) + [1], "waits ended by exit, in the last interval")
    check(sum(row["total_ns"] for row in rows) >= rows[-1]["ended_ns"] > rows[-1]["total_ns"], f"the parts of the wait do not add up: {rows}")


@case
def threads_that_end():
    """The threads of a process start and exit."""
    workload = Workload("repeat 20; threads 6; sync 3 block_us=20000; end; end")
    tool = Tool("-p", workload.pid, "-i", "0.1")
    workload.go()
    truth = workload.truth()
    same_waits(tool.finish(), truth, by=("pid", "wait"))
    same_times(tool, truth, by=("pid", "wait"))
    check(all(row["waiting"] <= 6 for row in tool.rows), "more than six waits at once")


@case(each={tier: tier for tier in ("session", "multi", "tracefs")})
def began_before_tracing(tier):
    """Neither the wait that began before tracing nor its time is counted. Later waits are counted."""
    system.need_tier(tier)
    workload = Workload("touch {dir}/there; sync 1 block_us=2500000 fn=cuStreamSynchronize; sync 7; sync 1 block_us=400000",
                        "workload-driver")
    workload.go()
    wait_until((harness.here / "there").exists, "the workload waits")
    system.time.sleep(0.3)
    tool = Tool("-p", workload.pid, "-i", "0.2", "--attach", tier, losses=True)
    check(workload.process.poll() is None, "the wait has returned too early")
    truth = [call for call in workload.truth() if call["function"] != "cuStreamSynchronize"]
    same_waits(tool.finish(), truth, by=("pid", "wait"))
    same_times(tool, truth, by=("pid", "wait"))
    check(set(tool.lost) <= {"ends_unmatched"}, f"unexpected losses: {tool.lost}")


@case(alone=True)
def forks_and_execs():
    script = """
    sync 3 block_us=100000; threads 2; sync 1 block_us=500000; end
    fork; sync 2 block_us=400000; fork; copy 5; sync 1 block_us=300000 fn=cuStreamSynchronize; end; end
    exec workload-driver; launch scale 1; sleep 200; sync 2 block_us=500000; copy 11; end
    """
    workload = Workload(script)
    tool = Tool("-i", "0.2", "--by", "pid,wait")
    workload.go()
    truth = workload.truth()
    equal(len({call["pid"] for call in truth}), 3, "processes")
    tool.stop()
    same_waits(tool, truth, by=("pid", "wait"))
    tool.all_records = [r for r in tool.records if r["type"] != "row" or r["pid"] in {c["pid"] for c in truth}]
    same_times(tool, truth, by=("pid", "wait"))
    check_consistency(tool)


@case(asan=True, alone=True)
def sixty_four_threads():
    script = "threads 64; sync 1 block_us=1500000; copy 101; sync 3 fn=cuStreamQuery result=600; end"
    workload = Workload(script)
    tools = [Tool("-p", workload.pid, "-i", "0.3", *by) for by in ([], ["--by", "thread,wait"])]
    workload.go()
    truth = workload.truth()
    for tool, by in zip(tools, (("pid", "wait"), ("pid", "tid", "wait"))):
        same_waits(tool.finish(), truth, by=by)
        same_times(tool, truth, by=by)
        check_consistency(tool)
    table, threads = tools
    full = [row for row in table.rows if row["waiting"] == 64]
    check(full, f"not 64 waits at once: {table.rows}")
    check(all(row["threads"] == 64 and row["calls"] == 0 for row in full), f"not 64 threads: {full}")
    check(max(row["wall_percent"] for row in full) > 99, "the share of the threads' time is too small")
    equal(max(row["threads"] for row in table.rows), 64, "threads")
    equal(len({row["tid"] for row in threads.rows}), 64, "rows by thread")
    equal({row["threads"] for row in threads.rows}, {1}, "threads in rows by thread")


@case(each={"v2": "v2", "memory": "memory"})
def leaves_the_cgroup_while_waiting(hierarchy):
    """-c: the wait is forgotten when it returns, although its process has left the cgroup."""
    group, other = (Cgroup(hierarchy, f"gpusnoop-test-{secrets.token_hex(4)}") for _ in range(2))
    workload = Workload("sync 1 block_us=700000; touch {dir}/end; wait {dir}/ended", preexec=group.join)
    resident = Workload("", preexec=group.join)
    tool = Tool("-c", group.path, "-i", "0.2")
    workload.go()
    row_while(tool, workload.pid, lambda row: row["waiting"] == 1, "a row of the wait")
    other.add(workload.pid)
    wait_until((harness.here / "end").exists, "the wait has returned")
    wait_until(lambda: waiting_threads(tool, workload.pid) == 0, "the kernel's table forgets it")
    (harness.here / "ended").touch()
    workload.wait(), resident.go().wait()
    tool.stop()
