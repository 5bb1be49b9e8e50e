# SPDX-License-Identifier: Apache-2.0
"""cudalaunch's output in every mode: records are complete, and each interval has the calls made in it."""
import re

import harness
from harness import all_but, case, check, equal, wait_until
from programs import Tool, Workload, check_record_types
from truth import Rows, expected, same_counts

script = """
launch vecadd 101 grid=3 stream=1; launch saxpy 7 result=719; launch scale 3 runtime_result=35; build reduce 2; graph 5
hostfunc 6; capture begin; launch apply 2 stream=1; capture end; threads 2; launch vecadd 11; end; device 1; launch vecadd 13
"""

modes = {
    "default": [], "timestamps": ["-T"], "latency": ["-l"], "failed": ["-x"], "stacks": ["-U"], "events": ["-e"],
    "events_all": ["-e", "-l", "-U"], "failed_events": ["-e", "-x"], "both": ["--api", "both"], "rows": ["-r", "1"],
    "sorted": ["-s", "launches_per_second"], "full": ["--names", "full"], "base": ["--names", "base"],
    **{f"by_{what}": ["--by", what] for what in ("kernel", "pid", "comm", "thread", "stream", "device",
                                                 "kernel,pid,comm,thread,stream,device")},
    **{f"hist_{what}": ["-H", what] for what in ("latency", "grid", "block", "gap")},
    "hist_per_thread": ["-H", "latency", "-L", "-N"], "hist_by_all": ["-H", "grid", "--by", "kernel,stream,device"],
}


@case(each=modes, asan=True, long=all_but(modes, "default", "stacks", "failed_events", "both", "by_kernel,pid,comm,thread,stream,device",
                                           "hist_by_all"))
def every_mode(mode):
    """Each line is a JSON object with a type, from "start" to "end" (Tool checks that), with records in between."""
    workload = Workload(script)
    tool = Tool("-p", workload.pid, *mode)
    workload.go()
    truth = workload.truth()
    tool.finish()
    kind = check_record_types(tool, mode, "cudalaunch")
    start, attached = tool.records[:2]
    check(re.fullmatch(r"\d+\.\d+\.\d+", start["version"]), f"unexpected version: {start}")
    check(attached["functions"] > 20 and attached["files"] == 2, f"unexpected counts of attached functions and files: {attached}")
    check(0 < tool.records[-1]["duration_ns"] < 60e9, f"unexpected last record: {tool.records[-1]}")
    if kind == "row" and mode not in (["-x"], ["--api", "both"]):
        # All groupings have the same sum.
        equal(Rows(truth).count(tool.rows, ()), expected(truth, ()), "sums")


@case(each={"by_call": [("kernel",), ("stream",), ("device",), ("kernel", "stream")],
            "by_process": [("pid",), ("comm",), ("tid",), ("device", "tid", "kernel")]})
def rows_by(ways):
    """Contexts are created during tracing, so that the device of each launch is known."""
    workload = Workload("touch {up}; wait {go}; launch vecadd 101 stream=1; device 1; launch vecadd 53; launch saxpy 7 stream=1\n"
                        "threads 2; launch saxpy 11; end; device 0; launch reduce 17",
                        "workload-driver", warm=False).ready()
    tools = [Tool("-p", workload.pid, "--by", ",".join(keys).replace("tid", "thread")) for keys in ways]
    workload.go()
    truth = workload.truth()
    for keys, tool in zip(ways, tools):
        same_counts(tool.finish(), truth, by=keys)


@case(alone=True)
def intervals_are_deltas():
    """Calls made during an interval are in that interval's rows, and the intervals add up."""
    workload = Workload("\n".join(f"launch vecadd {n} grid={n}; touch {{dir}}/{n}; wait {{dir}}/{n}.seen"
                                  for n in (101, 53, 29)))
    tool = Tool("-p", workload.pid, "1")
    workload.go()
    for n in (101, 53, 29):
        wait_until((harness.here / str(n)).exists, "the calls are made")
        rows = wait_until(lambda: [row for row in tool.rows if row["launches"] == n], f"rows of the interval with {n}")
        equal([row["grid"] for row in rows], [[n, 1, 1]], "grids")
        check(0.9e9 < rows[0]["interval_ns"] < 3e9, f"unexpected length of the interval: {rows}")
        check(abs(rows[0]["launches_per_second"] * rows[0]["interval_ns"] / 1e9 - n) < 0.01 * n, f"the rate does not match the count: {rows}")
        (harness.here / f"{n}.seen").touch()
    truth = workload.truth()
    tool.finish()
    equal([row["launches"] for row in tool.rows], [101, 53, 29], "launches per interval")
    same_counts(tool, truth)


@case(each={"latency": ["-l"], "failed": ["-x"], "grid": ["-H", "grid"], "pid": ["--by", "pid"]})
def intervals_add_up(mode):
    """Each of many continuous launches is in exactly one interval."""
    workload = Workload("repeat 150; launch vecadd 100; launch saxpy 3 result=719; sleep 10; end")
    tool = Tool("-p", workload.pid, "-i", "0.1", *mode)
    workload.go()
    truth = workload.truth()
    tool.finish()
    if mode[0] == "-H":
        equal(sum(record["total"] for record in tool.of_type("hist")), 150 * 103, "total of all histograms")
        return
    check(len({row["time"] for row in tool.rows}) >= 8, "too few intervals")
    by = ("pid",) if "pid" in mode else ("kernel",)
    same_counts(tool, truth, by=by, errors=mode[0].startswith("-") and "--by" not in mode, failed_only="-x" in mode)


@case(alone=True)
def duration():
    workload = Workload("launch vecadd 101; touch {dir}/done; wait {dir}/end; launch vecadd 53")
    tool = Tool("-p", workload.pid, "-d", "1.5")
    workload.go()
    tool.finish()
    check(1.45e9 <= tool.records[-1]["duration_ns"] <= 2.5e9, f"unexpected duration: {tool.records[-1]}")
    equal([row["launches"] for row in tool.rows], [101], "launches")
    (harness.here / "end").touch()
    workload.wait()


@case(alone=True)
def a_count_of_intervals():
    """`0.3 3`: three reports with rows, then the tool exits."""
    workload = Workload("forever; launch vecadd 1; sleep 5; end")
    workload.go()
    tools = [Tool("-p", workload.pid, *words) for words in (["0.3", "3"], ["-i", "0.3", "-d", "1"])]
    for tool in tools:
        tool.finish()
    equal(len({row["time"] for row in tools[0].rows}), 3, "reports")
    check(len({row["time"] for row in tools[1].rows}) == 4, "not four reports in one second, the last after a shorter interval")
    check(all(0.25e9 < row["interval_ns"] < 0.9e9 for row in tools[0].rows), "unexpected lengths of intervals")
    workload.stop()


@case
def text():
    """Values are below their headers, -T prints the time above each table, and -r limits the number of rows."""
    workload = Workload(script)
    plain, dated = Tool("-p", workload.pid, json=False), Tool("-p", workload.pid, "-T", "-r", 2, json=False)
    by_pid = Tool("-p", workload.pid, "--by", "pid", "-l", json=False)
    workload.go().wait()
    lines = plain.finish().text.splitlines()
    equal(lines[0].split()[:2], ["LAUNCHES", "LAUNCH/s"], "header")
    equal(sum(int(line.split()[0]) for line in lines[1:]), 101 + 7 + 5 + 6 + 22 + 13, "launches")
    stamp, _, *rows = dated.finish().text.splitlines()
    check(re.fullmatch(r"\d\d:\d\d:\d\d", stamp), f"no time of day: {stamp}")
    equal(len(rows), 2, "rows with -r 2")
    head, row = (line.split() for line in by_pid.finish().text.splitlines())
    equal((row[head.index("PID")], row[head.index("COMM")], row[head.index("ERRORS")]),
          (str(workload.pid), "workload", "7"), "row by pid")


@case
def sorting():
    """-s takes the header or the JSON key of a column; rows are in descending order."""
    workload = Workload("launch vecadd 1000; launch saxpy 10 delay_us=1000; launch reduce 100 result=719")
    orders = {"launches": ["vecadd", "reduce", "saxpy"], "latency_p50_ns": ["saxpy"], "errors": ["reduce"],
              "ERRORS": ["reduce"]}
    tools = {column: Tool("-p", workload.pid, "-l", "-s", column) for column in orders}
    workload.go().wait()
    for column, tool in tools.items():
        names = [re.search(r"vecadd|saxpy|reduce", row["kernel"])[0] for row in tool.finish().rows]
        equal(names[:len(orders[column])], orders[column], f"order by {column}")


@case
def no_calls():
    tool = Tool("-d", "0.2", "-p", Workload("").pid)
    equal(tool.finish().rows, [], "rows")
