# SPDX-License-Identifier: Apache-2.0
"""Comparison of a tool's counts with the truth file: two counters with the same keys must be equal."""
from collections import Counter

from harness import equal
from programs import warm_grid

# Figures of a row.
counted = ("launches", "captured", "graph_launches", "host_functions")


def layer_wanted(call, api):
    """Selects one call per launch: the call in the given layer, or for "both", the outermost call."""
    return call["layer"] == api or api == "both" and not call["nested"]


def weight(call):
    """Number of launches: a call may start several kernels; a graph counts as one."""
    return call["count"] * (call["kernels"] if call["kind"] == "kernel" else 1)


def measure(call):
    if call["recorded"]:
        return "captured"
    return {"kernel": "launches", "graph": "graph_launches", "host": "host_functions"}[call["kind"]]


def of_call(call, field):
    if field == "kernel":
        return call["demangled"]
    value = call[field]
    return tuple(value) if isinstance(value, list) else value


def expected(truth, by, api="driver", errors=False):
    """Counter of (values of `by`..., figure). With `errors`, failed calls count as errors, too."""
    out = Counter()
    for call in truth:
        if not layer_wanted(call, api):
            continue
        key = tuple(of_call(call, field) for field in by)
        out[key + (measure(call),)] += weight(call)
        if errors and call["result"]:
            out[key + ("errors",)] += weight(call)
    return dict(out)


def launched(truth, api="driver"):
    """Number of all launches."""
    return sum(weight(call) for call in truth if layer_wanted(call, api) and measure(call) == "launches")


def totals(rows, *fields):
    """Launches by the values of these fields, including rows of other processes on this machine."""
    out = Counter()
    for row in rows:
        out[tuple(row.get(field) for field in fields)] += row.get("launches", 0)
    return dict(out)


class Rows:
    """Rows (or events) of a tool. If the tool does not know the name of a kernel, the truth's name for its handle is
    used, so that counts can be compared."""

    def __init__(self, truth):
        self.handles = {}
        for call in truth:
            if call["demangled"]:
                self.handles[call["pid"], call["handle"]] = call["demangled"]
        self.pids = {call["pid"] for call in truth}

    def value(self, row, field):
        if field == "kernel":
            if row.get("graph_launches") or row.get("host_functions"):
                return None
            name = row.get("kernel") or self.handles.get((row.get("pid"), row.get("handle")))
            if not name and row.get("grid") == warm_grid:
                return opening  # not in the truth: launched before the runtime, which registers names, was probed
            return None if name and name.endswith("::unregistered") else name  # a variable of the workload, not a kernel
        if field == "smem":
            field = "shared_memory_bytes"
        if field == "result":
            field = "result_code"
        value = row.get(field)
        return tuple(value) if isinstance(value, list) else value

    def count(self, rows, by, errors=False):
        out = Counter()
        for row in rows:
            if row.get("pid") is not None and row["pid"] not in self.pids:
                continue  # another CUDA process on this machine
            key = tuple(self.value(row, field) for field in by)
            for figure in counted + (("errors",) if errors else ()):
                if row.get(figure):
                    out[key + (figure,)] += row[figure]
        return dict(out)


# Kernel of a launch that only makes a program open its libraries. Tools that already run may or may not count it.
opening = "scale(float*, int)"


def same_counts(tool, truth, by=("kernel",), api="driver", errors=False, failed_only=False, ignore=None):
    """Checks that the tool's rows equal the truth exactly, except for the kernel `ignore`."""
    if failed_only:
        truth = [call for call in truth if call["result"]]
    got, want = Rows(truth).count(tool.rows, by, errors), expected(truth, by, api, errors)
    for counts in (got, want) if ignore else ():
        for key in [key for key in counts if ignore in key]:
            del counts[key]
    equal(got, want, f"{tool}, by {', '.join(by)}")


def same_shapes(tool, truth, api="driver"):
    """Each kernel of the script has one launch shape, which its row must show."""
    rows = Rows(truth)
    want = {}
    for call in truth:
        if call["kind"] == "kernel" and layer_wanted(call, api):
            want[call["demangled"]] = [call["grid"], call["block"], call["smem"], product(call["grid"]),
                                       product(call["block"])]
    got = {rows.value(row, "kernel"): [row.get(field) for field in ("grid", "block", "shared_memory_bytes", "blocks_p95",
                                                                    "threads_p95")]
           for row in tool.rows if "launches" in row}
    equal(got, want, f"{tool}: grid, block, shared memory, blocks, threads")


def product(triple):
    return triple[0] * triple[1] * triple[2]


def bucket(value):
    """Bounds of a value's histogram bucket: 16 buckets with one value each, then 8 for each power of two."""
    if value < 16:
        return value, value
    shift = value.bit_length() - 4
    low = value >> shift << shift
    return low, low + (1 << shift) - 1
