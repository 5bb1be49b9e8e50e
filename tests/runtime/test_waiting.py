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


@case(each={"driver": "driver", "both": "both"}, asan=True)
def three_seconds(api):
    """Each interval has its part of the wait. The parts add up to the wait, which counts as a call when it returns."""
    workload = Workload("sync 1 block_us=3200000")  # the wait returns between two reports
    tool = Tool("-p", workload.pid, "-i", "0.5", "--api", api)
    workload.go()
    truth = workload.truth()
    rows = tool.finish().rows
    same_waits(tool, truth, by=("pid", "wait"), api=api)
    same_times(tool, truth, by=("pid", "wait"), api=api)
    check(len(rows) >= 5, f"too few rows for reports every half second: {rows}")
    equal([(row["calls"], row["waiting"]) for row in rows], [(0, 1)] * (len(rows) - 1) + [(1, 0)], "calls and waits")
    for row, later in zip(rows, rows[1:]):
        check(row["total_ns"] <= row["interval_ns"] and row["wall_percent"] <= 100, f"a wait is longer than the interval: {row}")
        check(row["duration_max_ns"] < later["duration_max_ns"], f"the wait does not grow: {row}, {later}")
    for row in rows[1:-1]:
        equal((row["total_ns"], row["wall_percent"]), (row["interval_ns"], 100), f"the whole interval: {row}")
    check_consistency(tool)


@case
def consecutive_waits():
    """A thread always waits, in another call at each report: no time is counted twice or left out."""
    workload = Workload("sync 30 block_us=70000; copy 1009; sync 2000 block_us=500; threads 8; sync 2000 block_us=300; end")
    tool = Tool("-p", workload.pid, "-i", "0.1", "--by", "thread,wait")
    workload.go()
    truth = workload.truth()
    tool.finish()
    same_waits(tool, truth, by=("tid", "wait"))
    same_times(tool, truth, by=("tid", "wait"))
    check(len(waits.intervals(tool)) > 15, "too few intervals")
    check_consistency(tool)


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


@case(asan=True)
def longer_than_the_run():
    workload = Workload(f"threads 2; sync 1 {forever}; end")
    each, whole = Tool("-p", workload.pid, "-i", "0.3", "-d", "1.5"), Tool("-p", workload.pid, "-d", "1.5")
    workload.go()
    for tool in each.finish(), whole.finish():
        check(tool.rows, f"{tool} has no rows")
        equal({(row["calls"], row["waiting"], row["wait"]) for row in tool.rows}, {(0, 2, "context")}, f"{tool}")
        check(all(row["total_ns"] <= 2 * row["interval_ns"] for row in tool.rows), f"too much time: {tool.rows}")
        check_consistency(tool)


@case
def single_report():
    """Without intervals, the report has the completed waits and those in flight at the end."""
    workload = Workload(f"sync 5; touch {{dir}}/there; copy 1 fn=cuMemcpyDtoH_v2 {forever}")
    tool = Tool("-p", workload.pid)
    workload.go()
    wait_until((harness.here / "there").exists, "the workload is about to wait")
    wait_until(lambda: waiting_threads(tool, workload.pid) == 1, "the kernel's table has the wait")
    rows = {row["wait"]: row for row in tool.stop().rows}
    equal({wait: (row["calls"], row["waiting"]) for wait, row in rows.items()}, {"context": (5, 0), "copy": (0, 1)}, "rows")


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


@case(each={"whole": [], "intervals": ["-i", "0.2"]}, asan=True)
def more_rows_than_the_table_has(mode):
    """Calls without a row in the kernel's table are sent to user space one by one. Counts and times are still exact."""
    script = "threads 40; sync 5 block_us=60000; copy 20; sync 3 fn=cuStreamQuery result=600; sync 1 block_us=300000; end"
    workload = Workload(script)
    tool = Tool("-p", workload.pid, "--table-rows", 16, "--by", "thread,wait", *mode)
    workload.go()
    truth = workload.truth()
    same_waits(tool.finish(), truth, by=("tid", "wait"))
    same_times(tool, truth, by=("tid", "wait"))
    check_consistency(tool)


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
