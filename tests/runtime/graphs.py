# SPDX-License-Identifier: Apache-2.0
"""Comparison of cudagraph's rows with the truth file, graph by graph. The driver reuses handles immediately, so a graph
is identified by its handle and a generation: the number of earlier graphs with that handle."""
import functools
from collections import Counter, defaultdict

import harness
from harness import check, equal
from memory import truth_lines
from programs import Tool, Workload
from truth import layer_wanted

case = functools.partial(harness.case, tool="cudagraph")

kinds = {"kernels": "kernels", "copies": "copies", "memsets": "memsets", "host": "host_functions", "others": "other_nodes",
         "nodes": "nodes"}
sums = ("launches", "captured", "kernels_launched", "errors", "updates", "failed_updates", "uploads", "parameter_sets",
        "destroyed")
reasons = ("none", "error", "topology", "node type", "function", "parameters", "not supported", "unsupported function",
           "attributes")

def calls(workload, api="driver"):
    """Graph calls in the truth file that belong to the API layer that the tool counts."""
    return [call for call in truth_lines(workload, "graph-call") if layer_wanted(call, api)]


def count_of(call):
    """Amounts that a call adds to the sums of a row."""
    n, kind, ok = call["count"], call["kind"], not call["result"]
    out = Counter(errors=0 if ok else n)
    if kind == "launch" and ok:
        out["captured" if call["recorded"] else "launches"] += n
        out["kernels_launched"] += 0 if call["recorded"] else n * call["kernels"]
    elif kind == "update":
        out["updates" if ok else "failed_updates"] += n
    elif ok and (what := {"upload": "uploads", "setparams": "parameter_sets", "enable": "parameter_sets",
                          "execdestroy": "destroyed"}.get(kind)):
        out[what] += n
    return out


def failed_launches(some):
    """Graph launches that failed, and their kernels. A tool that does not see results counts them, too."""
    failed = [call for call in some if call["kind"] == "launch" and call["result"]]
    return Counter(launches=sum(call["count"] for call in failed), kernels_launched=sum(call["count"] * call["kernels"] for call in failed))


def expected(workload, api="driver"):
    """Instantiated graphs in the truth file: {(pid, handle, generation): values}, and the reasons of refused
    updates."""
    out, why = {}, defaultdict(set)
    for row in truth_lines(workload, "exec"):
        out[row["pid"], row["handle"], row["generation"]] = Counter({kinds[kind]: row[kind] for kind in kinds})
    for call in calls(workload, api):
        key = call["pid"], call["exec"], call["exec_generation"]
        if call["exec"] and key in out:
            out[key].update(count_of(call))
            if call["kind"] == "update" and call["result"]:
                why[key].add(reasons[call["update_result"]])
    if api == "driver":  # the stand-in also counts per graph: its counts must equal the sums over calls
        for row in truth_lines(workload, "exec"):
            want = out[row["pid"], row["handle"], row["generation"]]
            equal((want["launches"] + want["captured"], want["updates"], want["failed_updates"], want["uploads"]),
                  (row["launches"], row["updates"], row["failed_updates"], row["uploads"]), f"the truth of {row}")
    return {key: {name: n for name, n in values.items() if n} for key, values in out.items()}, why


def graph_rows(tool):
    """{number of the graph: sums over all intervals, and the last row}"""
    out = {}
    for row in tool.rows:
        graph = out.setdefault(row["exec_number"], {"pid": row["pid"], "handle": row["exec"], "sums": Counter(), "reasons": set()})
        graph["sums"].update({name: row[name] for name in sums})
        graph["last"] = row
        if "update_reason" in row:
            graph["reasons"].add(row["update_reason"])
    return out


def reported(tool, keys):
    """Values of the tool's rows by the keys of expected(): graphs with the same handle are numbered in order of
    creation."""
    generations = defaultdict(list)
    for pid, handle, generation in sorted(keys):
        generations[pid, handle].append(generation)
    out, why, seen = {}, defaultdict(set), Counter()
    for number, graph in sorted(graph_rows(tool).items()):
        name = graph["pid"], graph["handle"]
        check(seen[name] < len(generations[name]), f"{tool}: more graphs with handle {name} than were created: {graph['last']}")
        key = *name, generations[name][seen[name]]
        seen[name] += 1
        out[key] = {n: graph["last"][n] for n in kinds.values() if graph["last"].get(n)}
        out[key] |= {n: v for n, v in graph["sums"].items() if v}
        if graph["reasons"]:
            why[key] = graph["reasons"]
        check(graph["last"].get("instantiate_ns", 0) > 0, f"no duration of the instantiation: {graph['last']}")
    return out, why


def same_graphs(tool, *workloads, api="driver", ignore=lambda key: False):
    """Checks that each instantiated graph has a row that equals the truth, except graphs for which ignore(key) is
    true."""
    want, why = {}, {}
    for workload in workloads:
        values, refusals = expected(workload, api)
        want |= values
        why |= refusals
    got, reported_why = reported(tool, want)
    equal({k: v for k, v in got.items() if not ignore(k)}, {k: v for k, v in want.items() if not ignore(k)}, f"{tool}")
    for key, some in reported_why.items():
        check(some <= why[key], f"{tool}: {key}: reasons of refused updates: {some}, not {why[key]}")
    equal(set(reported_why), set(why), f"{tool}: graphs with refused updates")


def trace_graphs(script, *arguments, form="workload-driver", api="driver", **options):
    """Traces one workload from before its script to its end; returns the tool and the workload."""
    workload = Workload(script, form)
    tool = Tool("-p", workload.pid, *arguments, *(["--api", api] if api != "driver" else []), **options)
    workload.go().wait()
    tool.finish()
    same_graphs(tool, workload, api=api)
    return tool, workload
