# SPDX-License-Identifier: Apache-2.0
"""differences.py: increments each count that CUPTI and the tools share, on one side at a time. The comparison must
report the difference under the count's name, and nothing if no count was changed. Ends with "N passed, N failed"."""
import copy
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent))

import witness  # noqa: E402

theirs = {
    "calls": {name: {"count": count, "failed": failed} for name, count, failed in (
        ("cuLaunchKernel", 10, 2), ("cuGraphLaunch", 5, 0), ("cuLaunchHostFunc", 3, 0), ("cuMemcpyHtoD_v2", 7, 1),
        ("cuMemsetD8_v2", 4, 0), ("cuCtxSynchronize", 6, 1), ("cuStreamQuery", 9, 4), ("cuMemAlloc_v2", 8, 3),
        ("cuMemFree_v2", 5, 1), ("cuGraphInstantiateWithFlags", 3, 1), ("cuGraphExecDestroy", 1, 0))},
    "launches": {"_Z1kv": 8}, "kernels": 8 + 20,
    "copies": {"h2d": {"count": 6, "bytes": 600}}, "sets": {"count": 4, "bytes": 400},
    "allocated": {"device": {"count": 5, "bytes": 5000}}, "released": {"device": {"count": 4, "bytes": 4000}},
    "dropped_records": 0, "unknown_records": 0, "calls_beyond": 0}
table = {"cudalaunch": {"cuLaunchKernel", "cuGraphLaunch", "cuLaunchHostFunc"}, "cudamemcpy": {"cuMemcpyHtoD_v2", "cuMemsetD8_v2"},
         "cudasync": {"cuCtxSynchronize", "cuStreamQuery"}, "gpualloc": {"cuMemAlloc_v2"}, "gpualloc -e": {"cuMemFree_v2"},
         "cudagraph": {"cuGraphLaunch", "cuGraphInstantiateWithFlags", "cuGraphExecDestroy"}}
truth = [{"type": "call", "kernel": "_Z1kv", "demangled": "k()"}]
rows = {
    "cudalaunch": [{"function": "cuLaunchKernel", "kernel": "k()", "launches": 9, "captured": 0, "errors": 2},
                   {"function": "cuLaunchKernel", "kernel": "k()", "launches": 0, "captured": 1, "errors": 0},
                   {"function": "cuGraphLaunch", "graph_launches": 5, "graph_kernels": 21, "errors": 0},
                   {"function": "cuLaunchHostFunc", "host_functions": 3}],
    "cudamemcpy": [{"function": "cuMemcpyHtoD_v2", "kind": "H2D", "calls": 6, "copies": 6, "bytes": 600, "errors": 1, "captured": 0},
                   {"function": "cuMemsetD8_v2", "kind": "set", "calls": 4, "copies": 4, "bytes": 400, "errors": 0, "captured": 0}],
    "cudasync": [{"function": "cuCtxSynchronize", "calls": 6, "errors": 1, "not_ready": 0},
                 {"function": "cuStreamQuery", "calls": 9, "errors": 0, "not_ready": 4}],
    "gpualloc": [{"function": "cuMemAlloc_v2", "kind": "device", "allocs": 5, "failures": 3, "captured": 0, "allocated_bytes": 5000,
                  "frees": 4, "freed_bytes": 4000}],
    "gpualloc -e": [{"function": "cuMemFree_v2", "result_code": code} for code in (0, 0, 0, 0, 1)],
    "cudagraph": [{"function": "cuGraphLaunch", "launches": 5, "errors": 0},
                  {"function": "cuGraphInstantiateWithFlags", "instantiates": 2, "errors": 1},
                  {"function": "cuGraphExecDestroy", "destroyed": 1}]}
rows = {tool: [{"type": "row", **row} for row in some] for tool, some in rows.items()}


def differences(theirs, rows):
    return {key for key, (witness_, ours) in witness.compared(theirs, rows, truth, table).items() if witness_ != ours}


def numbers(value, path=()):
    """Paths of all integers in a structure."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, (dict, list)):
            yield from numbers(inner, (*path, key))
        elif isinstance(inner, int):
            yield *path, key


def one_more(value, path):
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] += 1
    return value


def undetected():
    """Changes that are not reported, or are reported under a wrong name."""
    if differences(theirs, rows):
        yield f"differences without a change: {differences(theirs, rows)}"
    for path in numbers(theirs):
        if path[0] in ("dropped_records", "unknown_records", "calls_beyond"):
            if not witness.losses(one_more(theirs, path), {}):
                yield f"CUPTI's {path}: the loss is not reported"
            continue
        name = {"launches": "k()", "kernels": "all", "sets": "all"}.get(path[0], path[1] if len(path) > 1 else None)
        if {of for _, of in differences(one_more(theirs, path), rows)} != {name}:
            yield f"CUPTI's {path}: {differences(one_more(theirs, path), rows)}"
    for path in numbers(rows):
        row = rows[path[0]][path[1]]
        if path[2] == "result_code" and row["result_code"]:
            continue  # the comparison treats all nonzero results alike
        found = differences(theirs, one_more(rows, path))
        if not {row["function"], row.get("kernel"), row.get("kind", "").lower(), "all"} & {of for _, of in found}:
            yield f"the tools' {path} of {row['function']}: {found}"
    for tool, some in rows.items():
        for number, row in enumerate(some):
            without = rows | {tool: some[:number] + some[number + 1:]}
            if any(row.get(field) for field in witness.call_fields[tool]) and not differences(theirs, without):
                yield f"a missing row of {tool} is not reported: {row}"
    if not witness.losses(theirs, {"cudasync": [{"type": "lost", "calls": 3}]}):
        yield "a tool's loss is not reported"


found = list(undetected())
for one in found:
    print(f"FAIL gpu.differences: {one}")
print(f"{0 if found else 1} passed, {len(found)} failed")
sys.exit(bool(found))
