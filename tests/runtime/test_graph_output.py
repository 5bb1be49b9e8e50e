# SPDX-License-Identifier: Apache-2.0
"""cudagraph: output of each combination of options, and options that it rejects."""
import math
from collections import Counter

import graphs
from graphs import case
from harness import all_but, check, equal
from programs import Tool, Workload, may_lose_stacks, check_record_types, trace
from test_hostile import comms, no_control_bytes, no_control_bytes_in_json

script = """
graph create G; graph add G kernel 3; graph add G memcpy 2; graph add G memset; graph instantiate G X block_us=20000
graph launch X 10 stream=1; graph launch X 2 fn=cuGraphLaunch_ptsz; graph launch X 3 result=700; graph upload X; graph setparams X kernel
capture begin stream=1; launch scale 4 stream=1; hostfunc 1 stream=1; sleep 50; capture end H stream=1; graph instantiate H Y block_us=10000
graph launch Y 7 stream=1; graph update Y G; graph update Y H 2 update_result=2; launch vecadd 17; launch scale 3 stream=1 result=719
threads 3; graph launch Y 5; launch scale 11; end; graph instantiate G Z result=2; graph execdestroy Y; graph destroy H
capture begin stream=2; sync 1 fn=cuStreamSynchronize stream=2; capture end K stream=2; touch {dir}/there; sleep 300
"""

modes = {
    "default": [], "timestamps": ["-T"], "failed": ["-x"], "stacks": ["-U"], "events": ["-e"], "events_stacks": ["-e", "-U"],
    "failed_events": ["-e", "-x"], "events_both": ["-e", "--api", "both"], "both": ["--api", "both"], "rows": ["-r", "1"],
    "intervals": ["-i", "0.2"], "sorted": ["-s", "errors"], "sorted_header": ["-s", "NODES"], "extra": ["-X"],
    "summary": ["--summary"], "summary_intervals": ["--summary", "-i", "0.1"], "failed_by": ["-x", "--by", "api,graph"],
    **{f"by_{what}": ["--by", what] for what in ("graph", "stream", "device", "api", "pid", "comm", "thread", "container",
                                                 "graph,stream,device,api,pid,comm,thread,container,pod,namespace,cgroup")},
    **{f"hist_{what}": ["-H", what] for what in ("launch", "instantiate", "nodes")}, "hist_by": ["-H", "launch", "--by", "graph"],
}

text, number, integer = str, (int, float), int
who = {"pid": integer, "ns_pid": integer, "process_start_ns": integer, "comm": text, "cgroup": text}
seldom = {"command_line": text, "failed_bytes": integer, "container": text, "container_id": text, "runtime": text, "pod": text, "pod_uid": text,
          "namespace": text, "unit": text, "uid": integer, "slurm_job": text, "slurm_step": text, "device": integer}
a_row = {"type": text, "time": text, "interval_ns": integer, "processes": integer, "vendor": text}
sums = dict.fromkeys((*graphs.sums, "unknown_launches", "captures", "failed_captures", "instantiates", "capture_ns"), integer)
rates = {"launches_per_second": number, "kernels_per_second": number}
nodes = dict.fromkeys(graphs.kinds.values(), integer)
of_exec = {"exec": text, "exec_number": integer, "graph": text, "instantiate_ns": integer, "age_ns": integer}
latencies = {"latency_p50_ns": integer, "latency_p99_ns": integer}
summary = dict.fromkeys(("live_graphs", "live_execs", "direct_launches"), integer) | dict.fromkeys(
    ("captures_per_second", "instantiates_per_second", "setup_percent"), number)
result = {"result": text, "result_code": integer}
an_event = {"type": text, "time": text, "time_ns": integer, "tid": integer, "layer": text, "vendor": text, "stream": text, "call": text, "latency_ns": integer,
            "captured": integer, "function": text, **result}


def keys_of(mode):
    """Required and optional keys of a line."""
    by = mode[mode.index("--by") + 1].split(",") if "--by" in mode else ["pid"] if {"-x", "--summary"} & set(mode) else ["graph"]
    if "-e" in mode:
        whose = {key: who[key] for key in who if key != "process_start_ns"}
        known = {"graph": text, "exec": text, "kernels": integer, "copies": integer, "other_nodes": integer, "update_reason": text}
        return an_event | whose | ({"frames": list} if "-U" in mode else {}), seldom | known
    must, may = a_row | sums | rates, seldom | latencies | {"update_reason": text}
    must |= who if {"pid", "graph"} & set(by) else {}
    may |= who | of_exec | nodes
    must |= {"exec": text, "exec_number": integer} if "graph" in by else {"instantiate_total_ns": integer}
    must |= of_exec | nodes if "graph" in by and "-x" not in mode else {}
    must |= {} if "--summary" in mode else {"latency_max_ns": integer}
    must |= summary if "--summary" in mode else {}
    may |= {"graph_percent": number} if "--summary" in mode else {}
    must |= {"tid": integer, "thread_comm": text} if "thread" in by else {}
    must |= {"stream": text} if "stream" in by else {}
    must |= {"function": text} if "api" in by or "-x" in mode else {}
    must |= {"layer": text} if "both" in mode else {}
    must |= result if "-x" in mode else {}
    must |= {"frames": list} if "-U" in mode else {}
    return must, may


def right_type(value, kind):
    return isinstance(value, kind) and not isinstance(value, bool)


@case(each=modes, asan=True, long=all_but(modes, "default", "stacks", "failed_events", "failed_by", "both", "summary", "hist_by"))
def every_mode(mode):
    """Each line is an object with a type (checked by Tool), all required keys, and no unknown ones."""
    workload = Workload(script, "workload-driver")
    tool = Tool("-p", workload.pid, *mode)
    workload.go().wait()
    kind = check_record_types(tool.finish(), mode, "cudagraph")
    must, may = keys_of(mode)
    for line in tool.rows + tool.events:
        missing, more = set(must) - set(line), set(line) - set(must) - set(may)
        equal((missing, more), (set(), set()), f"keys of {line}")
        wrong = [key for key, value in line.items() if not right_type(value, (must | may)[key])]
        equal(wrong, [], f"types of values of {line}")
    calls = graphs.calls(workload)
    want = sum((graphs.count_of(call) for call in calls), Counter())
    if kind == "row" and "-x" not in mode and mode != ["-r", "1"]:
        graph = "exec_number" in tool.rows[0]
        for name in ("updates", "failed_updates", "uploads", "parameter_sets", "destroyed"):
            equal(sum(row[name] for row in tool.rows), want[name], f"{name} of {tool}")
        failed = graphs.failed_launches(calls) if "--summary" in mode else Counter()  # --summary does not see results
        for name in "launches", "kernels_launched":
            equal(sum(row[name] for row in tool.rows), want[name] + failed[name], f"{name} of {tool}")
        want["errors"] -= failed["launches"]
        equal(sum(row["instantiates"] for row in tool.rows), 2, "instantiations")
        if not graph:  # a capture belongs to no executable graph
            equal([sum(row[name] for row in tool.rows) for name in ("captures", "failed_captures")], [1, 1], "captures")
            equal(sum(row["errors"] for row in tool.rows), want["errors"], "errors")
    for record in tool.of_type("hist"):
        equal((record["measure"], record["total"]), (mode[1], sum(b["count"] for b in record["buckets"])), "histogram")


@case(each=modes, long=True)
def every_mode_as_text(mode):
    tool, _ = trace(script, *mode, form="workload-driver", json=False, losses=may_lose_stacks(mode))
    check(tool.text.strip() and "nan" not in tool.text, f"{tool}: {tool.text}")


@case(each={"what": ("api", "graph", "thread,api,stream"), "who": ("pid", "thread", "comm", "container", "pod")})
def rows_by(ways):
    """Rows of each grouping have the same totals."""
    workload = Workload(script, "workload-driver")
    tools = [Tool("-p", workload.pid, "--by", what) for what in ways]
    workload.go().wait()
    for what, tool in zip(ways, tools):
        same_graph_rows(tool.finish(), what, workload)


def same_graph_rows(tool, what, workload):
    fields = [{"thread": "tid", "api": "function"}.get(word, word) for word in what.split(",")
              if word in ("pid", "thread", "comm", "api", "stream")]
    want, got = Counter(), Counter()
    for call in graphs.calls(workload):
        stream = "0x2" if call["function"].endswith("_ptsz") and call["stream"] == "0x0" else call["stream"] or "0x0"
        key = tuple((call | {"stream": stream})[field] for field in fields)
        for name, n in graphs.count_of(call).items():
            if "graph" not in what or call["exec"] or name != "errors":
                want[key + (name,)] += n
    for row in tool.rows:
        for name in graphs.sums:
            got[tuple(row[field] for field in fields) + (name,)] += row[name]
    if "graph" in what:
        want["errors",] = sum(call["count"] for call in graphs.calls(workload) if call["result"] and call["exec"])
    equal(+got, +want, f"{tool}")


@case(each={form: form for form in ("workload-driver", "workload")})
def whole_processes(form):
    """--summary: number of graphs, share of kernels launched by graphs, and time spent creating them."""
    workload = Workload(script, form)
    tool = Tool("-p", workload.pid, "--summary")
    workload.go()
    truth = workload.truth()
    row, = tool.finish().rows
    end, = graphs.truth_lines(workload, "graphs")
    for name, want in (("captures", end["captures"]), ("instantiates", end["instantiates"]), ("live_graphs", end["graphs_live"]),
                       ("live_execs", end["execs_live"])):
        equal(row[name], want, f"{name}: {row}")
    calls = graphs.calls(workload)
    kernels = graphs.failed_launches(calls)["kernels_launched"]  # --summary does not see results
    kernels += sum(graphs.count_of(call)["kernels_launched"] for call in calls)
    direct = sum(call["count"] for call in truth if call["kind"] == "kernel" and call["layer"] == "driver" and not call["recorded"])
    equal((row["kernels_launched"], row["direct_launches"]), (kernels, direct), "kernels")
    check(math.isclose(row["graph_percent"], 100 * kernels / (kernels + direct), abs_tol=0.001), f"unexpected share of graphs: {row}")
    check(50e6 <= row["capture_ns"] <= end["capture_ns"] + sum(c["duration_ns"] for c in calls), f"unexpected capture: {row}, {end}")
    failed = sum(call["duration_ns"] for call in calls if call["kind"] == "instantiate" and call["result"])
    check(30e6 <= row["instantiate_total_ns"] <= end["instantiate_ns"] + failed, f"unexpected instantiation: {row}, {end}")
    percent = 100 * (row["capture_ns"] + row["instantiate_total_ns"]) / row["interval_ns"]
    check(math.isclose(row["setup_percent"], percent, rel_tol=0.02, abs_tol=0.01), f"unexpected share of time: {row}, {percent}")


@case
def failed_calls():
    """-x: number of failed calls by function and result."""
    workload = Workload(script, "workload-driver")
    tool = Tool("-p", workload.pid, "-x")
    workload.go().wait()
    want = Counter()
    for call in graphs.calls(workload):
        want[call["function"], call["result"]] += call["count"] if call["result"] else 0
    got = {(row["function"], row["result_code"]): row["errors"] for row in tool.finish().rows}
    equal(got, dict(+want), "rows")
    names = {row["result_code"]: row["result"] for row in tool.rows}
    equal((names[700], names[910], names[2]), ("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
                                               "CUDA_ERROR_OUT_OF_MEMORY"), "names of results")


@case
def derived_values():
    workload = Workload(script, "workload-driver")
    tools = [Tool("-p", workload.pid, "-i", "0.3", "-r", 0, *more) for more in ([], ["--summary"])]
    workload.go().wait()
    for tool in tools:
        for row in tool.finish().rows:
            for rate, what in ("launches", "launches"), ("kernels", "kernels_launched"), ("captures", "captures"):
                if rate + "_per_second" in row:
                    want = row[what] / (row["interval_ns"] / 1e9)
                    check(math.isclose(row[rate + "_per_second"], want, rel_tol=1e-3, abs_tol=1e-3), f"{rate}: {row}")
    for row in tools[0].rows:
        equal(row["nodes"], sum(row[name] for name in graphs.kinds.values() if name != "nodes"), f"nodes: {row}")
        check(0 < row["instantiate_ns"] and 0 < row["age_ns"] and row["latency_max_ns"] >= row.get("latency_p99_ns", 0), f"{row}")


@case
def every_direction_of_sorting():
    workload = Workload(script, "workload-driver")
    columns = "launches", "errors", "kernels", "age_ns", "instantiate_ns"
    tools = [Tool("-p", workload.pid, "-s", column) for column in columns]
    workload.go().wait()
    for column, tool in zip(columns, tools):
        values = [row[column] for row in tool.finish().rows]
        equal(values, sorted(values, reverse=True), f"{tool}")


columns = {
    "default": ([], "PID COMM EXEC NODES LAUNCH/s KERN/s p99(us) UPDATES REFUSED ERRORS"),
    "all": (["--columns", "+KERNELS,+COPIES,+SETS,+HOST,+LAUNCHES,+LAT_p50(us),+INST(us),+REASON,+AGE(s)"],
            "PID COMM EXEC NODES KERNELS COPIES SETS HOST LAUNCHES LAUNCH/s KERN/s LAT_p50(us) p99(us) INST(us) UPDATES REFUSED REASON "
            "ERRORS AGE(s)"),
    "summary": (["--summary", "--columns", "+CAPTURES,+INSTANT,+GRAPHS,+LAUNCHES,+DIRECT,+REASON"],
                "PID COMM CAPTURES CAPT/s INSTANT INST/s GRAPHS EXECS LAUNCHES LAUNCH/s KERN/s DIRECT GRAPH% SETUP% UPDATES REFUSED "
                "REASON ERRORS"),
    "pid": (["--by", "pid"], "PID COMM CAPTURES INSTANT LAUNCHES LAUNCH/s KERN/s p99(us) UPDATES REFUSED ERRORS"),
    "failed": (["-x"], "PID COMM FUNCTION CAPTURES INSTANT LAUNCHES LAUNCH/s KERN/s p99(us) UPDATES REFUSED ERRORS RESULT"),
}


@case(each=columns, asan=True, long=all_but(columns, "default", "summary"))
def tables_of_text(chosen):
    mode, want = chosen
    steps = """graph create G; graph add G kernel 3; graph add G memcpy 2; graph add G memset; graph add G host; graph instantiate G X
    graph launch X 12; graph update X G update_result=8; graph update X G; launch scale 36; sleep 300"""
    tool, workload = trace(steps, *mode, form="workload-driver", json=False)
    head, row, *_ = (line.split("  ") for line in tool.text.splitlines() if line.strip())
    head, row = " ".join(head).split(), [cell for cell in row if cell]
    equal(" ".join(head), want, "header")
    values = dict(zip(head, " ".join(row).split()))
    wanted = {"NODES": "7", "KERNELS": "3", "COPIES": "2", "SETS": "1", "HOST": "1", "LAUNCHES": "0" if "-x" in mode else "12",
              "DIRECT": "36", "GRAPH%": "50.0", "REFUSED": "1", "UPDATES": "0" if "-x" in mode else "1", "REASON": "attributes",
              "ERRORS": "1", "GRAPHS": "1", "EXECS": "1", "INSTANT": "0" if "-x" in mode else "1", "CAPTURES": "0"}
    if "-x" in mode:  # with -x, cells without values are empty
        values = {name: n for name, n in values.items() if name not in ("UPDATES", "REFUSED", "REASON", "ERRORS")}
    equal({name: values[name] for name in values if name in wanted}, {n: v for n, v in wanted.items() if n in values}, tool.text)


@case
def columns_of_updates_only_with_updates():
    tool, _ = trace("graph create G; graph add G kernel; graph instantiate G X; graph launch X", form="workload-driver", json=False)
    check("LAUNCHES" in tool.text and "UPDATES" not in tool.text and "REASON" not in tool.text, tool.text)


@case(each={"table": ["--by", "thread,graph"], "comm": ["--by", "comm"], "events": ["-e"], "summary": ["--summary"], "failed": ["-x"],
            "storms": ["--storms", "1", "--warm-up", "0"], "histogram": ["-H", "launch", "--by", "thread,graph"]}, asan=True,
      long=["comm", "failed", "histogram"])
def hostile_names(mode):
    """Process names with escape sequences, newlines or invalid UTF-8 are escaped."""
    one = "graph instantiate G X; graph launch X 2; graph launch X result=700; graph execdestroy X"
    steps = "graph create G; graph add G kernel\n" + "\n".join(f"name {comm}\n{one}" for comm in comms)
    for comm in comms[0], comms[3]:
        workload = Workload(f"{steps}; name {comm}; sleep 1200", "workload-driver")
        tools = [Tool("-p", workload.pid, *mode, json=json) for json in (False, True)]
        workload.go().wait()
        no_control_bytes(tools[0].finish())
        no_control_bytes_in_json(tools[1].finish())
        check(tools[0].text.strip() and len(tools[1].records) > 3, f"{tools[1]}: no output")
