# SPDX-License-Identifier: Apache-2.0
"""cudasync: waits that go on while the tool prints, and those that never come to an end."""
import secrets
import signal
import time

import harness
import system
import waits
from containers import Cgroup
from harness import check, equal, wait_until
from programs import Tool, Workload
from waits import case, waiting_threads, row_while, same_times, same_waits, check_consistency

forever = "block_us=60000000"


@case(each={"driver": "driver", "both": "both"}, asan=True)
def three_seconds(api):
    """A part in each interval, no longer than that; all parts are the wait, which is a call when it returns."""
    workload = Workload("sync 1 block_us=3200000")  # does not end at a report
    tool = Tool("-p", workload.pid, "-i", "0.5", "--api", api)
    workload.go()
    truth = workload.truth()
    rows = tool.finish().rows
    same_waits(tool, truth, by=("pid", "wait"), api=api)
    same_times(tool, truth, by=("pid", "wait"), api=api)
    check(len(rows) >= 5, f"an interval each half second: {rows}")
    equal([(row["calls"], row["waiting"]) for row in rows], [(0, 1)] * (len(rows) - 1) + [(1, 0)], "calls and waits")
    for row, later in zip(rows, rows[1:]):
        check(row["total_ns"] <= row["interval_ns"] and row["wall_percent"] <= 100, f"part of an interval: {row}")
        check(row["duration_max_ns"] < later["duration_max_ns"], f"the wait grows: {row}, {later}")
    for row in rows[1:-1]:
        equal((row["total_ns"], row["wall_percent"]), (row["interval_ns"], 100), f"it waits all the time: {row}")
    check_consistency(tool)


@case
def one_behind_the_other():
    """A thread that waits always, and is at each report in another wait: nothing is told twice or left out."""
    workload = Workload("sync 30 block_us=70000; copy 1009; sync 2000 block_us=500; threads 8; sync 2000 block_us=300; end")
    tool = Tool("-p", workload.pid, "-i", "0.1", "--by", "thread,wait")
    workload.go()
    truth = workload.truth()
    tool.finish()
    same_waits(tool, truth, by=("tid", "wait"))
    same_times(tool, truth, by=("tid", "wait"))
    check(len(waits.intervals(tool)) > 15, "intervals")
    check_consistency(tool)


@case
def reports_without_end():
    """As many reports as there can be, into waits that begin and return all the time, on more threads than processors."""
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
        check(tool.rows, f"{tool} shows who waits")
        equal({(row["calls"], row["waiting"], row["wait"]) for row in tool.rows}, {(0, 2, "context")}, f"{tool}")
        check(all(row["total_ns"] <= 2 * row["interval_ns"] for row in tool.rows), f"time: {tool.rows}")
        check_consistency(tool)


@case
def when_asked_once():
    """Without intervals: what was waited before, and who waits at the end."""
    workload = Workload(f"sync 5; touch {{dir}}/there; copy 1 fn=cuMemcpyDtoH_v2 {forever}")
    tool = Tool("-p", workload.pid)
    workload.go()
    wait_until((harness.here / "there").exists, "it waits")
    wait_until(lambda: waiting_threads(tool, workload.pid) == 1, "the kernel knows that it waits")
    rows = {row["wait"]: row for row in tool.stop().rows}
    equal({wait: (row["calls"], row["waiting"]) for wait, row in rows.items()}, {"context": (5, 0), "copy": (0, 1)}, "rows")


@case(each={"first": "sync 1 {}", "another": "threads 3; sync 1 {}; end"}, asan=True, alone=True)
def killed(script):
    """Also while nobody has taken notice of its end: no row says that it waits, and the kernel keeps nothing of it."""
    workload = Workload(script.format(forever))
    tool = Tool("-i", "0.2")
    workload.go()
    threads = 3 if "threads" in script else 1
    row_while(tool, workload.pid, lambda row: row["waiting"] == threads, "it waits")
    equal(waiting_threads(tool, workload.pid), threads, "calls that wait")
    workload.process.send_signal(signal.SIGKILL)
    wait_until(lambda: system.stat_fields(workload.pid)[0] == "Z", "it is a zombie")
    last = [row for row in tool.rows if row["pid"] == workload.pid][-1]["time"]
    wait_until(lambda: waiting_threads(tool, workload.pid) == 0, "nothing is waiting_threads")
    after = {row["time"] for row in tool.stop().rows if row["pid"] == workload.pid and row["time"] > last}
    check(len(after) <= 1, f"it waits after its end: {tool.rows}")


@case(alone=True)
def killed_when_nothing_is_printed():
    """Without intervals nobody looks at those that wait; what is left of the dead goes with their process, and they
    are told in the end, with the time that they waited."""
    workloads = [Workload(f"threads 5; sync 1 {forever}; end") for _ in range(3)]
    tool = Tool()
    begin = time.monotonic_ns()
    for workload in workloads:
        workload.go()
    wait_until(lambda: waiting_threads(tool, *(w.pid for w in workloads)) == 15, "they wait")
    for workload in workloads:
        workload.process.kill()
        workload.process.wait()
    took = time.monotonic_ns() - begin
    wait_until(lambda: waiting_threads(tool, *(w.pid for w in workloads)) == 0, "they wait no more")
    pids = {workload.pid for workload in workloads}
    rows = {row["pid"]: row for row in tool.stop().rows if row["pid"] in pids}
    equal({pid: (row["calls"], row["waiting"], row["ended"]) for pid, row in rows.items()},
          {pid: (0, 0, 5) for pid in pids}, "calls, waits, and those that ended in them")
    for row in rows.values():
        check(0 < row["ended_ns"] == row["total_ns"] <= 5 * (took + 0.1e9), f"not longer than it lived, {took} ns: {row}")


@case
def killed_target():
    """The end of the one that is traced ends the tool: its last table has the wait, in text in a column of its own."""
    workload = Workload(f"sync 3; touch {{dir}}/there; sync 1 {forever}")
    tools = [Tool("-p", workload.pid, json=False), Tool("-p", workload.pid, "-i", "0.1")]
    workload.go()
    wait_until((harness.here / "there").exists, "it is about to wait")
    row_while(tools[1], workload.pid, lambda row: row["waiting"] == 1, "it waits")
    workload.process.kill()
    workload.process.wait()
    header, row = (line.split() for line in tools[0].finish().lines)
    shown = dict(zip(header, row))
    equal([shown.get(name) for name in ("CALLS", "WAITING", "ENDED")], ["3", "0", "1"], f"{header}, {row}")
    rows = tools[1].finish().rows
    equal([row["ended"] for row in rows], [0] * (len(rows) - 1) + [1], "ended, in the last interval")
    check(sum(row["total_ns"] for row in rows) >= rows[-1]["ended_ns"] > rows[-1]["total_ns"], f"its parts are it: {rows}")


@case
def threads_that_end():
    """A process goes on, its threads come and go."""
    workload = Workload("repeat 20; threads 6; sync 3 block_us=20000; end; end")
    tool = Tool("-p", workload.pid, "-i", "0.1")
    workload.go()
    truth = workload.truth()
    same_waits(tool.finish(), truth, by=("pid", "wait"))
    same_times(tool, truth, by=("pid", "wait"))
    check(all(row["waiting"] <= 6 for row in tool.rows), "there are six at once")


@case(each={tier: tier for tier in ("session", "multi", "tracefs")})
def begun_before(tier):
    """Nobody saw its start: it is not counted, nor its time; what follows is."""
    system.need_tier(tier)
    workload = Workload("touch {dir}/there; sync 1 block_us=2500000 fn=cuStreamSynchronize; sync 7; sync 1 block_us=400000",
                        "workload-driver")
    workload.go()
    wait_until((harness.here / "there").exists, "it waits")
    system.time.sleep(0.3)
    tool = Tool("-p", workload.pid, "-i", "0.2", "--attach", tier, losses=True)
    check(workload.process.poll() is None, "it waits still")
    truth = [call for call in workload.truth() if call["function"] != "cuStreamSynchronize"]
    same_waits(tool.finish(), truth, by=("pid", "wait"))
    same_times(tool, truth, by=("pid", "wait"))
    check(set(tool.lost) <= {"ends_unmatched"}, f"losses: {tool.lost}")


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
    check(full, f"all wait at once: {table.rows}")
    check(all(row["threads"] == 64 and row["calls"] == 0 for row in full), f"64 threads: {full}")
    check(max(row["wall_percent"] for row in full) > 99, "they do nothing else")
    equal(max(row["threads"] for row in table.rows), 64, "threads")
    equal(len({row["tid"] for row in threads.rows}), 64, "rows by thread")
    equal({row["threads"] for row in threads.rows}, {1}, "a thread is one")


@case(each={"whole": [], "intervals": ["-i", "0.2"]}, asan=True)
def more_rows_than_the_table_has(mode):
    """They come one by one: counts and times are the same."""
    script = "threads 40; sync 5 block_us=60000; copy 20; sync 3 fn=cuStreamQuery result=600; sync 1 block_us=300000; end"
    workload = Workload(script)
    tool = Tool("-p", workload.pid, "--table-rows", 16, "--by", "thread,wait", *mode)
    workload.go()
    truth = workload.truth()
    same_waits(tool.finish(), truth, by=("tid", "wait"))
    same_times(tool, truth, by=("tid", "wait"))
    check_consistency(tool)


@case(each={"v2": "v2", "memory": "memory"})
def moved_while_it_waits(hierarchy):
    """-c: who has left the cgroup does not wait for ever."""
    group, other = (Cgroup(hierarchy, f"gpusnoop-test-{secrets.token_hex(4)}") for _ in range(2))
    workload = Workload("sync 1 block_us=700000; touch {dir}/end; wait {dir}/ended", preexec=group.join)
    resident = Workload("", preexec=group.join)
    tool = Tool("-c", group.path, "-i", "0.2")
    workload.go()
    row_while(tool, workload.pid, lambda row: row["waiting"] == 1, "it is seen to wait")
    other.add(workload.pid)
    wait_until((harness.here / "end").exists, "it has waited")
    wait_until(lambda: waiting_threads(tool, workload.pid) == 0, "it waits no more")
    (harness.here / "ended").touch()
    workload.wait(), resident.go().wait()
    tool.stop()
