# SPDX-License-Identifier: Apache-2.0
"""Comparison of cudamemcpy's rows with the workload's truth file, and the copy functions that a workload can call."""
import functools
import re
import subprocess
from collections import Counter, namedtuple

import harness
from harness import equal
from programs import trace  # noqa: F401
from truth import layer_wanted

case = functools.partial(harness.case, tool="cudamemcpy")

small_copy = 64 << 10

# Fields of a row that are sums: `counted` over calls, `failed` over failed calls.
counted = ("copies", "calls", "bytes", "unsized", "synchronous", "small", "captured")
failed = ("errors", "failed_bytes")


def is_copy(call):
    return call["kind"] in ("copy", "set", "prefetch")


def sizes(call):
    """Bytes of each copy of one call."""
    return call["sizes"] or [call["bytes"]] * call["copies"]


# Kinds of memory in the truth -> names used by the tool.
memories = {"host": "host", "registered": "pinned", "pinned": "pinned", "managed": "managed", "device": "device",
            "array": "array", "vmm": "device", None: "unknown"}


def field_of(call, field):
    match field:
        case "kind":
            direction = call["direction"]
            return direction.upper() if "2" in direction else direction
        case "form":
            return "sync" if "Async" not in call["function"] else "async"
        case "source":
            return memories[call["source"] if call["kind"] == "copy" else None]
        case "destination":
            return memories[call["destination"]]
    return call[field]


def sums(call, results):
    """Amounts that one line of the truth file adds to the sums. Without `results`, failed calls count like others."""
    out, n, each = Counter(), call["count"], sizes(call)
    total = n * sum(each)
    if results and call["result"]:
        return Counter(errors=n, failed_bytes=total)
    if call["recorded"]:
        return Counter(captured=n * len(each))
    out.update(copies=n * len(each), calls=n, bytes=total, small=n * sum(size < small_copy for size in each))
    if call["synchronous"] and call["kind"] != "set":
        out["synchronous"] = n * len(each)
    return out


def expected(truth, by, api="driver", results=False, only_failed=False):
    """Sums over the truth file: {(values of `by`..., measure): amount}."""
    out = Counter()
    for call in truth:
        if is_copy(call) and layer_wanted(call, api) and (call["result"] or not only_failed):
            key = tuple(field_of(call, field) for field in by)
            for measure, n in sums(call, results).items():
                out[key + (measure,)] += n
    return {key: n for key, n in out.items() if n}


def count(tool, by, pids=None):
    out = Counter()
    for row in tool.rows:
        if pids is None or row.get("pid") is None or row["pid"] in pids:
            for measure in counted + failed:
                out[tuple(row.get(field) for field in by) + (measure,)] += row.get(measure, 0)
    return {key: n for key, n in out.items() if n}


def same(tool, truth, by=("function", "kind"), api="driver"):
    """Checks that the tool's rows equal the truth exactly."""
    results = bool({"-l", "-x"} & set(tool.arguments))
    want = expected(truth, by, api, results, only_failed="-x" in tool.arguments)
    equal(count(tool, by, {call["pid"] for call in truth}), want, f"{tool}, by {', '.join(by)}")


Row = namedtuple("Row", "name layer versions kind")
table_line = re.compile(r'\{"(cu\w+)(?:\[(_\w+)\])?", (KIND_COPY\w*),\s*((?:[^{}]|\{[^{}]*\})*)\}')


@functools.cache
def table():
    """Copy functions in the probe table; a variant, such as one with the suffix _ptsz, has a row of its own."""
    rows = []
    for name, variant, kind, rest in table_line.findall((harness.root / "src/attach/probe_table.cpp").read_text()):
        layer = "runtime" if name.startswith("cuda") else "driver"
        for suffix in ("", variant) if variant else ("",):
            rows.append(Row(name + suffix, layer, set(re.findall(r"cudart(\d+)", rest)), kind))
    return rows


# Functions that the stand-in's programs cannot call.
not_callable = {"cuMemcpyWithAttributesAsync", "cuMemcpy3DWithAttributesAsync", "cuMemDiscardAndPrefetchBatchAsync",
                "cudaMemDiscardAndPrefetchBatchAsync", "cudaMemPrefetchAsync_v2"}


def callable_functions(layer, form="workload"):
    """Functions that this build of the workload program can call, in the order of the probe table."""
    names = []
    for row in table():
        version = "13" if form == "workload13" else "12"
        if row.layer == layer and bare(row.name) not in not_callable and row.name not in names \
                and (not row.versions or version in row.versions):
            names.append(row.name)
    return names


def bare(name):
    return re.sub("_pt[sd][zs]$", "", name)


def primes():
    found = []
    n = 1009
    while True:
        if all(n % p for p in found if p * p <= n) and all(n % p for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)):
            found.append(n)
            yield n
        n += 2


def steps(functions, more="", plus=0):
    """Script with one step per function, each with a unique size. `plus`: added to the number of calls of each step."""
    numbers = primes()
    lines = []
    for i, function in enumerate(functions):
        n = next(numbers)
        size = f"bytes={n}"
        if "3DBatch" in function:
            size = f"sizes={n},{n + 1},{n + 2} height=3 depth=2"
        elif "Batch" in function:
            size = f"sizes={n},{n + 1},70001"
        elif "2D" in function or "D2D" in function:
            size = f"width={n} height={i % 7 + 2}"
        elif "3D" in function:
            size = f"width={n} height={i % 5 + 2} depth={i % 3 + 2}"
        lines.append(f"copy {i % 11 + 1 + plus} fn={function} stream=1 {size} {more}")
    return "\n".join(lines)


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return {fields[2].partition("@")[0] for fields in map(str.split, lines) if len(fields) == 3}
