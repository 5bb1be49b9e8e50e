# SPDX-License-Identifier: Apache-2.0
"""Comparison of cudalaunch's output with the calls made. Rows and calls are matched by handle, which differs between
calls."""
from collections import Counter

from harness import check, equal

measures = {"kernel": "launches", "graph": "graph_launches", "host": "host_functions"}


def shape(call):
    return tuple(call.get("grid", ())), tuple(call.get("block", ())), call.get("smem")


def shape_shown(record):
    return tuple(record.get("grid", ())), tuple(record.get("block", ())), record.get("shared_memory_bytes")


def name_or_handle(record):
    return record.get("kernel") or record.get("handle")


class Labels:
    """Labels for failure texts: the function that was called with a handle, and the handle."""

    def __init__(self, truth):
        self.functions = {name_or_handle(call): call["function"] for call in truth}

    def __call__(self, record):
        name = name_or_handle(record)
        return f"{self.functions.get(name, '(not called)')} {name}"


def same_table(tool, truth, errors=True):
    """Compares rows by kernel: counts, failures, and the launch shape, which is the same for all calls with one
    handle."""
    want, got, label = {}, {}, Labels(truth)
    for call in truth:
        seen = want.setdefault(label(call), [measures[call["kind"]], 0, 0, *shape(call)])
        seen[1] += call["count"]
        seen[2] += call["count"] if errors and call["result"] else 0
    for row in tool.rows:
        measure = next((m for m in ("graph_launches", "host_functions") if m in row), "launches")
        check(label(row) not in got, f"{tool}: two rows for {label(row)}")
        got[label(row)] = [measure, row.get(measure, 0), row.get("errors", 0), *shape_shown(row)]
    equal(got, want, f"{tool}: measure, calls, failures, grid, block, shared memory")


def same_failures(tool, truth, names):
    """Compares rows of -x, by kernel and result."""
    want, got, label = Counter(), Counter(), Labels(truth)
    for call in truth:
        if call["result"]:
            want[label(call), call["result"], names.get(call["result"])] += call["count"]
    for row in tool.rows:
        got[label(row), row["result_code"], row["result"]] += row["errors"]
    equal(dict(got), dict(want), f"{tool}: failures")


def same_events(tool, truth, names):
    """Compares lines of -e -l: every argument of every call."""
    want, got, label = Counter(), Counter(), Labels(truth)
    for call in truth:
        want[label(call), call["stream"], *shape(call), names.get(call["result"])] += call["count"]
    for event in tool.events:
        got[label(event), event["stream"], *shape_shown(event), event["result"]] += 1
        check(event["latency_ns"] > 0, f"{tool}: {event}")
    equal(dict(got), dict(want), f"{tool}: stream, grid, block, shared memory, result")
