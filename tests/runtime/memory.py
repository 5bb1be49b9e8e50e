# SPDX-License-Identifier: Apache-2.0
"""Comparison of gpualloc's rows with the truth file: its calls, and the memory that the stand-in's driver still
holds."""
import functools
import json
from collections import Counter

import harness
from harness import equal
from truth import layer_wanted

case = functools.partial(harness.case, tool="gpualloc")

# Kinds that are memory. Other kinds (reservations, mappings, ...) count only in rows by kind.
memory = {"device", "array", "pool", "vmm", "managed", "pinned", "registered"}
on_device = {"device", "array", "pool", "vmm"}


def kind_of(holding):
    return {"external": "imported", None: "unknown"}.get(holding, holding)


def truth_lines(workload, kind):
    """Lines of one type (other than calls) in the truth file."""
    workload.wait()
    rows = [json.loads(line) for line in workload.truth_file.read_text().splitlines()]
    return [row for row in rows if row["type"] == kind]


def is_memory(call):
    return call["kind"] in ("alloc", "free")


def expected(truth, by=("kind",), api="driver"):
    """{(values of `by`..., measure): amount} of the calls in the truth file. One call can unmap several mappings, so
    only the bytes of mappings are compared, not their number."""
    out = Counter()
    for call in filter(is_memory, truth):
        if not layer_wanted(call, api):
            continue
        n, size = call["count"], call["bytes"] or 0
        holding = kind_of(call["holding"])
        key = tuple(holding if field == "kind" else call[field] for field in by)
        if call["result"]:
            out[key + ("failures",)] += n
            out[key + ("out_of_memory",)] += n * (call["kind"] == "alloc" and call["result"] == 2)
        elif call["kind"] == "free" and holding == "unknown":
            pass  # a free of a null pointer
        elif call["recorded"] or holding == "graph":
            out[key + ("captured",)] += n
            out[key + (call["kind"] + "s",)] += n
        else:
            out[key + (call["kind"] + "s",)] += n * (holding != "mapped")
            if holding != "imported" and holding != "multicast":  # these have no known size
                out[key + ("allocated_bytes" if call["kind"] == "alloc" else "freed_bytes",)] += n * size
    return {key: value for key, value in out.items() if value}


def counted(rows, by=("kind",)):
    measures = ("allocs", "frees", "allocated_bytes", "freed_bytes", "failures", "out_of_memory", "unknown_frees", "captured")
    out = Counter()
    for row in rows:
        kind = kind_of(row.get("kind"))
        key = tuple(kind if field == "kind" else row.get(field) for field in by)
        for measure in measures:
            no_count = kind == "mapped" and measure in ("allocs", "frees")
            no_bytes = kind in ("imported", "multicast", "graph") and measure.endswith("_bytes")
            if not no_count and not no_bytes:
                out[key + (measure,)] += row.get(measure, 0)
    return {key: value for key, value in out.items() if value}


def same_calls(tool, truth, by=("kind",), api="driver"):
    """Checks that allocations and frees by kind equal the truth exactly. The tool's rows must be by kind."""
    got, want = counted(tool.rows, by), expected(truth, by, api)
    if "captured" not in {key[-1] for key in want}:  # captured calls are compared only if the truth file has some
        got = {key: value for key, value in got.items() if key[-1] != "captured"}
    equal(got, want, f"{tool}, by {', '.join(by)}")


def unfreed(tool):
    """Count and bytes by pid and kind: memory that rows show as held at the end, or as released without a free."""
    last, out = {}, Counter()
    for row in tool.rows:
        key = row["pid"], kind_of(row.get("kind")), row.get("container_id"), row.get("tid"), row.get("kind")
        last[key] = row
        out[key[:2] + ("count",)] += row["released"]
        out[key[:2] + ("bytes",)] += row["released_bytes"]
    for key, row in last.items():
        out[key[:2] + ("count",)] += row["live_allocations"]
        out[key[:2] + ("bytes",)] += row["live_bytes"]
    return {key: value for key, value in out.items() if value}


def same_unfreed(tool, workload):
    """Checks memory that was not freed: held by the driver at the end, or released with a context."""
    want = Counter()
    for row in truth_lines(workload, "memory") + truth_lines(workload, "released"):
        kind = kind_of(row["holding"])
        want[row["pid"], kind, "count"] += row["count"]
        if kind not in ("imported", "multicast"):
            want[row["pid"], kind, "bytes"] += row["bytes"]
    got = {key: value for key, value in unfreed(tool).items() if key[1] not in ("imported", "multicast") or key[2] == "count"}
    equal(got, {key: value for key, value in want.items() if value}, f"{tool}: memory that was not freed")


def no_loss(tool):
    for row in tool.rows:
        equal((row.get("approximate"), row.get("untracked"), row.get("unsized")), (0, 0, 0), f"approximate, untracked and unsized allocations: {row}")
