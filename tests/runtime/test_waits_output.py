# SPDX-License-Identifier: Apache-2.0
"""cudasync's output in every mode."""
import waits
from harness import all_but, check, equal
from programs import Tool, Workload, may_lose_stacks, check_record_types, trace
from waits import case, same_waits

script = """
sync 53; sync 7 fn=cuStreamSynchronize stream=1 result=719; copy 101; sync 11 fn=cudaStreamQuery result=600
alloc a 64; free a; threads 2; sync 3 fn=cuEventSynchronize; end; sync 1 block_us=900000; sync 5 runtime_result=35
"""

modes = {
    "default": [], "timestamps": ["-T"], "failed": ["-x"], "stacks": ["-U"], "events": ["-e"], "events_stacks": ["-e", "-U"],
    "failed_events": ["-e", "-x"], "long_events": ["-e", "-l", "1"], "both": ["--api", "both"], "rows": ["-r", "1"],
    "intervals": ["-i", "0.2"], "sorted": ["-s", "waiting"], "sorted_header": ["-s", "WALL%"], "least": ["-l", "0"],
    **{f"by_{view}": ["--by", view] for view in ("wait", "pid", "comm", "thread", "api", "stream", "device",
                                                 "wait,pid,comm,thread,api,stream,device,container,pod,namespace,cgroup")},
    "hist": ["-H", "duration"], "hist_threads": ["-H", "duration", "-L", "-N"], "hist_by": ["-H", "duration", "--by", "wait,api"],
    "hist_intervals": ["-H", "duration", "-m", "-i", "0.2"],
}

always = {"type", "time", "interval_ns", "processes", "calls", "calls_per_second", "not_ready", "errors", "total_ns",
          "threads", "wall_percent", "duration_max_ns"}
percentiles = {"duration_p50_ns", "duration_p95_ns", "duration_p99_ns"}


@case(each=modes, asan=True, long=all_but(modes, "default", "stacks", "failed_events", "long_events", "both", "hist_by"))
def every_mode(mode):
    """Each line is an object with a type (Tool checks that), and rows have all keys that scripts rely on."""
    workload = Workload(script)
    tool = Tool("-p", workload.pid, *mode)
    workload.go()
    truth = workload.truth()
    tool.finish()
    kind = check_record_types(tool, mode, "cudasync")
    start = tool.records[0]
    check(start["duration_floor_ns"] < 20000, f"the cost of the probes is too high: {start}")
    api, failed = "both" if "both" in mode else "driver", "-x" in mode
    for row in tool.rows:
        wanted = always | (percentiles if row["calls"] else set()) | (set() if failed else {"waiting"})
        equal(wanted - set(row), set(), f"missing keys of {row}")
        equal("result" in row, failed, f"a result only with -x: {row}")
        equal("layer" in row, api == "both", f"a layer only with --api both: {row}")
    if kind == "row":
        same_waits(tool, truth, by=(), api=api, failed_only=failed)
    if kind == "event":
        want = [c for c in waits.waits(truth) if not failed or c["result"] == 719]
        equal(sum(1 for _ in tool.events), sum(c["count"] for c in want) if "-l" not in mode else len(tool.events), "lines")
    if kind == "hist":
        equal(sum(b["count"] for record in tool.of_type("hist") for b in record["buckets"]),
              sum(c["count"] for c in waits.waits(truth)), "calls in the buckets")
        check(not any("waiting" in record for record in tool.of_type("hist")), "waits in flight in histograms")


@case(each={name: mode for name, mode in modes.items() if name not in ("events_stacks", "by_comm", "by_device")}, long=True)
def every_mode_as_text(mode):
    tool, _ = trace(script, *mode, json=False, losses=may_lose_stacks(mode))
    check(tool.text.strip() and "nan" not in tool.text, f"{tool}: {tool.text}")


@case
def every_direction_of_sorting():
    """Rows are in descending order of the requested column."""
    workload = Workload(script)
    columns = "calls", "total_ns", "duration_max_ns", "errors", "duration_p50_ns"
    tools = [Tool("-p", workload.pid, "--by", "api", "-s", column) for column in columns]
    workload.go().wait()
    for column, tool in zip(columns, tools):
        values = [row[column] for row in tool.finish().rows]
        equal(values, sorted(values, reverse=True), f"{tool}")
