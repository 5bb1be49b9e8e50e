# SPDX-License-Identifier: Apache-2.0
"""gpualloc: output of each combination of options, and options that it rejects."""
import math
import re
from collections import Counter

import harness
import memory
from harness import all_but, check, equal, wait_until
from memory import case
from programs import Tool, Workload, may_lose_stacks, check_record_types, trace
from test_alloc_ends import newest
from test_hostile import comms, no_control_bytes, no_control_bytes_in_json

script = """
alloc a 10001; alloc b 65536 fn=cudaMallocHost; alloc c 4097 fn=cudaMallocManaged; alloc z 777 result=2; alloc z 888 result=999
free b result=1; threads 2; repeat 5; alloc e 300; free e; end; end; free c; alloc d 5000 fn=cudaMallocAsync stream=1
alloc z 333 fn=cudaMallocHost result=2; touch {dir}/there; sleep 500
"""

modes = {
    "default": [], "timestamps": ["-T"], "failed": ["-x"], "stacks": ["-U"], "events": ["-e"], "events_stacks": ["-e", "-U"],
    "failed_events": ["-e", "-x"], "events_both": ["-e", "--api", "both"], "both": ["--api", "both"], "rows": ["-r", "1"],
    "intervals": ["-i", "0.2"], "sorted": ["-s", "allocs"], "sorted_header": ["-s", "LIVE"], "extra": ["-X"],
    "failed_by": ["-x", "--by", "api,kind"],
    **{f"by_{what}": ["--by", what] for what in ("kind", "size", "stack", "device", "api", "pid", "comm", "thread", "container",
                                                 "kind,size,stack,device,api,pid,comm,thread,container,pod,namespace,cgroup")},
    **{f"hist_{what}": ["-H", what] for what in ("size", "latency", "lifetime")}, "hist_failed": ["-H", "latency", "-x"],
    "hist_failed_sizes": ["-H", "size", "-x"], "hist_threads": ["-H", "latency", "-L", "-N"], "hist_processes": ["-H", "lifetime", "-P"],
    "hist_by": ["-H", "size", "--by", "kind,api"], "leaks": ["--leaks"], "leaks_intervals": ["--leaks", "-i", "0.2"],
    "leaks_old": ["--leaks", "-o", "0.2"], "exited": ["--exited"],
}

text, number, integer = str, (int, float), int
who = {"pid": integer, "ns_pid": integer, "process_start_ns": integer, "comm": text, "cgroup": text}
a_row = {"type": text, "time": text, "interval_ns": integer, "processes": integer}
failed = {"failures": integer, "out_of_memory": integer}
of_kinds = {f"{kind}_bytes": integer for kind in ("device", "pool", "vmm", "array", "managed", "pinned", "registered", "reserved",
                                                  "mapped", "external", "graph")} | {"imported": integer, "pools": integer}
counted = {name: integer for name in ("live_bytes", "live_allocations", "live_is_lower_bound", "approximate", "allocs", "frees", "allocated_bytes",
                                      "freed_bytes", "released", "released_bytes", "unknown_frees", "untracked", "unsized",
                                      "captured", "trims")} | {
                                          f"{name}_per_second": number for name in ("allocs", "frees", "churn_bytes")}
seldom = {"command_line": text, "failed_bytes": integer, "container": text, "container_id": text, "runtime": text, "pod": text, "pod_uid": text,
          "namespace": text, "unit": text, "uid": integer, "slurm_job": text, "slurm_step": text, "device": integer}
result = {"result": text, "result_code": integer}
an_event = {"type": text, "time": text, "time_ns": integer, "tid": integer, "layer": text, "vendor": text, "stream": text, "operation": text, "kind": text,
            "address": text, "latency_ns": integer, "captured": integer, "function": text} | result


def keys_of(mode):
    """Required and optional keys of a line."""
    by = mode[mode.index("--by") + 1].split(",") if "--by" in mode else ["pid"]
    may = dict(seldom)
    if "-e" in mode:
        return an_event | {key: who[key] for key in who if key != "process_start_ns"} | ({"frames": list} if "-U" in mode else {}), may | {"bytes": integer, "lifetime_ns": integer}
    if "--exited" in mode:
        return {"type": text, "time": text, "pid": integer, "comm": text, "cgroup": text, "event": text, "kind": text,
                "held_bytes": integer, "held_allocations": integer}, may | {"frames": list}
    if "--leaks" in mode:
        return a_row | who | {"kind": text, "bytes": integer, "allocations": integer, "oldest_ns": integer, "frames": list}, may
    must = a_row | who | failed | ({"operation": text, "result": text, "result_code": integer} if "-x" in mode else counted)
    whole = not {"kind", "size", "stack", "device", "api", "thread"} & set(by) and not {"-x", "-U", "both"} & set(mode)
    must |= {"kind": text} if "kind" in by else {} if "-x" in mode else of_kinds
    must |= {"tid": integer, "thread_comm": text} if "thread" in by else {}
    must |= {"function": text} if "api" in by else {}
    must |= {"layer": text} if "both" in mode and "-x" in mode else {}
    must |= {"frames": list} if "stack" in by or "-U" in mode else {}
    return must, may | {"size_bytes": integer, "vendor": text} | ({"peak_bytes": integer} if whole or "both" in mode else {})


def right_type(value, kind):
    return isinstance(value, kind) and not isinstance(value, bool)


@case(each=modes, asan=True, long=all_but(modes, "default", "stacks", "failed_events", "failed_by", "both", "hist_by", "leaks", "exited"))
def every_mode(mode):
    """Each line is an object with a type (checked by Tool), all required keys, and no unknown ones."""
    workload = Workload(script)
    tool = Tool("-p", workload.pid, *mode)
    workload.go()
    truth = workload.truth()
    tool.finish()
    if "--exited" in mode:
        equal({record["type"] for record in tool.records}, {"start", "attached", "event", "end"}, "types of lines")
    else:
        kind = check_record_types(tool, mode, "gpualloc")
    must, may = keys_of(mode)
    for line in tool.rows + tool.events:
        missing, more = set(must) - set(line), set(line) - set(must) - set(may)
        equal((missing, more), (set(), set()), f"keys of {line}")
        wrong = [key for key, value in line.items() if not right_type(value, (must | may)[key])]
        equal(wrong, [], f"types of values of {line}")
    if "--leaks" in mode or "--exited" in mode:
        return
    calls = [c for c in truth if memory.is_memory(c) and c["layer"] == "driver"]
    failures = sum(c["count"] for c in calls if c["result"])
    if kind == "row" and "both" not in mode and mode != ["-r", "1"]:
        equal(sum(row["failures"] for row in tool.rows), failures, "failures")
    if kind == "row" and mode[:1] in ([], ["-T"], ["-U"], ["-i"], ["-s"], ["-X"]):
        equal(sum(row["allocs"] for row in tool.rows), sum(c["count"] for c in calls if c["kind"] == "alloc" and not c["result"]),
              "allocations")
    for record in tool.of_type("hist"):
        equal(record["measure"], mode[1], "measure")
        equal(record["total"], sum(b["count"] for b in record["buckets"]), "total")
    if "-H" in mode and "-x" in mode:
        equal(sum(r["total"] for r in tool.of_type("hist")), failures - (mode[1] == "size"), "failed calls (for sizes: without the free)")


@case(each={name: mode for name, mode in modes.items() if name not in ("events_stacks",)}, long=True)
def every_mode_as_text(mode):
    tool, _ = trace(script, *mode, json=False, losses=may_lose_stacks(mode))
    check(tool.text.strip() and "nan" not in tool.text, f"{tool}: {tool.text}")


@case
def failed_calls():
    """-x: number of failed calls by function and result, and the size that the last one requested."""
    tool, _ = trace(script + "alloc z 999999 result=2\n", "-x", "--by", "api")
    got = {(row["function"], row["result_code"]): (row["failures"], row["out_of_memory"], row.get("failed_bytes"))
           for row in tool.rows}
    equal(got, {("cuMemAlloc_v2", 2): (2, 2, 999999), ("cuMemAlloc_v2", 999): (1, 0, 888), ("cuMemHostAlloc", 2): (1, 1, 333),
                ("cuMemFreeHost", 1): (1, 0, None)}, "rows")
    equal({row["result"] for row in tool.rows if row["result_code"] == 2}, {"CUDA_ERROR_OUT_OF_MEMORY"}, "name")


@case
def derived_values():
    workload = Workload(script)
    tool = Tool("-p", workload.pid, "--by", "thread,kind", "-i", "0.3", "-r", 0)
    workload.go().wait()
    for row in tool.finish().rows:
        seconds = row["interval_ns"] / 1e9
        for what, total in (("allocs", row["allocs"]), ("frees", row["frees"]),
                            ("churn_bytes", row["allocated_bytes"] + row["freed_bytes"])):
            check(math.isclose(row[what + "_per_second"], total / seconds, rel_tol=1e-3, abs_tol=1e-3), f"{what}: {row}")
    first = min(row["time"] for row in tool.rows)
    held = [row["live_bytes"] for row in tool.rows if row["time"] == first]
    equal(held, sorted(held, reverse=True), "order")


@case
def every_direction_of_sorting():
    workload = Workload(script)
    columns = "allocs", "live_bytes", "freed_bytes", "failures"
    tools = [Tool("-p", workload.pid, "--by", "api", "-s", column) for column in columns]
    workload.go().wait()
    for column, tool in zip(columns, tools):
        values = [row[column] for row in tool.finish().rows]
        equal(values, sorted(values, reverse=True), f"{tool}")


more = "+DEVICE,+POOL,+VMM,+MANAGED,+PINNED,+FREE/s,+CHURN/s"
columns = {"default": ([], "PID COMM LIVE COUNT PEAK ALLOC/s FAILED OOM ASKED NVML BEFORE+CTX"),
           "all": (["--columns", more], "PID COMM LIVE COUNT PEAK DEVICE POOL VMM MANAGED PINNED ALLOC/s FREE/s CHURN/s FAILED OOM ASKED "
                                        "NVML BEFORE+CTX"),
           "kind": (["--by", "kind"], "KIND LIVE COUNT ALLOC/s FAILED OOM ASKED"),
           "failed": (["-x"], "PID COMM CALL FAILED OOM ASKED RESULT"), "leaks": (["--leaks"], "PID COMM KIND BYTES COUNT OLDEST(s)")}


@case(each=columns, asan=True, long=all_but(columns, "default", "leaks"))
def tables_of_text(chosen):
    mode, want = chosen
    tool, _ = trace("alloc a 2000000; alloc b 500 fn=cudaMallocHost; alloc c 77 result=2; free b; sleep 300", *mode, json=False)
    head, row, *_ = (line.split() for line in tool.text.splitlines() if line.strip())
    equal(" ".join(head), want, "header")
    values = dict(zip(head, row))
    wanted = {"LIVE": ">=1.9M", "BYTES": "1.9M", "COUNT": "1" if "--leaks" in mode else ">=1", "FAILED": "1", "OOM": "1", "ASKED": "77", "PEAK": "1.9M", "DEVICE": "1.9M",
              "PINNED": "0", "KIND": "device", "NVML": "n/a", "BEFORE+CTX": "n/a", "RESULT": "CUDA_ERROR_OUT_OF_MEMORY"}
    equal({name: values[name] for name in head if name in wanted}, {name: v for name, v in wanted.items() if name in head}, tool.text)


@case
def inexact_values_are_marked():
    """Text marks inexact values with ~, only in rows of the affected process, and has a column of unknown frees."""
    workload, exact = (Workload(f"alloc x 9; wait {{dir}}/ready; {more}; touch {{dir}}/{i}; wait {{dir}}/end", "workload-driver")
                       for i, more in enumerate(("repeat 2000; alloc a 64; end; free x", "alloc b 4444")))
    for each in workload, exact:
        each.go()
    pids = f"{workload.pid},{exact.pid}"
    tools = [Tool("-p", pids, "--live-entries", 1024, "-i", "0.3", losses=True, json=json) for json in (True, False)]
    (harness.here / "ready").touch()
    rows = lambda: {row["pid"]: row for row in newest(tools[0])}
    wait_until(lambda: rows().get(workload.pid, {}).get("approximate") == 1 and exact.pid in rows(), "an approximate row")
    check(rows()[exact.pid]["live_allocations"] <= 1, "too many live allocations of the process with exact values")
    wait_until(lambda: re.search(rf"^ *{workload.pid} .* ~ ", tools[1].text, re.M), "~ in the text")
    (harness.here / "end").touch()
    for each in workload, exact:
        each.wait()
    for tool in tools:
        tool.finish()
    last = tools[1].text.split("PID COMM")[-2].splitlines()
    check("UNKNOWN" in tools[1].text, f"no column of unknown frees: {tools[1].text}")
    check(any(str(workload.pid) in line and " ~ " in line for line in last), f"{last}")
    check("--live-entries" in tools[1].error, f"the remedy is missing: {tools[1].error}")


@case(each={"table": ["--by", "thread,kind"], "comm": ["--by", "comm"], "events": ["-e"], "stacks": ["--by", "stack"],
            "leaks": ["--leaks"], "exited": ["--exited"], "histogram": ["-H", "size", "--by", "thread,kind"], "failed": ["-x"]}, asan=True,
      long=["comm", "stacks", "histogram", "failed"])
def hostile_names(mode):
    """Process names with escape sequences, newlines or invalid UTF-8 are escaped."""
    text = "\n".join(f"name {comm}\nalloc a{i} {1000 + i}; alloc z 5 result=2" for i, comm in enumerate(comms))
    for comm in comms[0], comms[3]:
        workload = Workload(text + f"; name {comm}; sleep 300", "workload-driver")
        tools = [Tool("-p", workload.pid, *mode, json=json) for json in (False, True)]
        workload.go().wait()
        no_control_bytes(tools[0].finish())
        no_control_bytes_in_json(tools[1].finish())
        if mode == ["-e"]:
            equal(len(tools[0].lines) - 1, 2 * len(comms), "lines")
