# SPDX-License-Identifier: Apache-2.0
"""Comparison of cudasync's rows with the truth file, and lists of the functions that wait."""
import functools
import mmap
import os
import re
from collections import Counter

import harness
import leftovers
import system
from harness import check, equal, wait_until
from truth import layer_wanted

case = functools.partial(harness.case, tool="cudasync")

# Functions that wait, including their variants with _ptsz or _ptds if the library has them. Functions that do not wait
# (Async, fills, prefetches) are left out. Values: kind of wait; for functions that free, a function that allocates.
driver_syncs = {"cuStreamSynchronize": "stream", "cuStreamSynchronize_ptsz": "stream", "cuCtxSynchronize": "context",
                "cuCtxSynchronize_v2": "context", "cuEventSynchronize": "event",
                **{f"cuStreamWaitValue{bits}": "value" for bits in (
                    "32", "32_ptsz", "32_v2", "32_v2_ptsz", "64", "64_ptsz", "64_v2", "64_v2_ptsz")},
                "cuStreamQuery": "poll", "cuStreamQuery_ptsz": "poll", "cuEventQuery": "poll"}
driver_copies = [name + suffix for name in
                 ("cuMemcpy", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuMemcpyHtoA_v2",
                  "cuMemcpyAtoH_v2", "cuMemcpyDtoA_v2", "cuMemcpyAtoD_v2", "cuMemcpyAtoA_v2", "cuMemcpyPeer",
                  "cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2", "cuMemcpy3D_v2", "cuMemcpy3DPeer")
                 for suffix in ("", "_ptds")]
driver_frees = {"cuMemFree_v2": "cuMemAlloc_v2", "cuMemFreeHost": "cuMemHostAlloc",
                "cuMemHostUnregister": "cuMemHostRegister_v2"}
runtime_syncs = {"cudaStreamSynchronize": "stream", "cudaStreamSynchronize_ptsz": "stream",
                 "cudaDeviceSynchronize": "context", "cudaEventSynchronize": "event", "cudaStreamQuery": "poll",
                 "cudaStreamQuery_ptsz": "poll", "cudaEventQuery": "poll"}

# Probed, but not called by the workloads.
not_called = {"driver": {"cuIpcCloseMemHandle"}, "runtime": {"cudaIpcCloseMemHandle"}}

# Calls that must not be counted.
no_waits = """
copy 3 fn=cuMemcpyHtoDAsync_v2; copy 4 fn=cuMemcpyAsync; copy 5 fn=cuMemsetD8_v2; copy 6 fn=cuMemsetD2D32_v2
copy 7 fn=cuMemsetD8Async; alloc a 64 fn=cuMemAllocAsync; free a; sync 8 fn=cuStreamWaitEvent
copy 9 fn=cuMemcpyBatchAsync sizes=1,2; copy 2 fn=cuMemPrefetchAsync; launch vecadd 3; hostfunc 2
"""

measures = ("calls", "not_ready", "errors")


def wait_of(call):
    """The tool's name for the object that this call waits for; None if the call does not wait."""
    name = re.sub(r"_pt[sd][sz]$", "", call["function"])
    syncs = driver_syncs | runtime_syncs | {"cudaThreadSynchronize": "context"}
    if call["kind"] in ("sync", "poll"):
        return syncs.get(name)
    return call["kind"] if call["kind"] in ("copy", "free") and call["synchronous"] else None


def waits(truth, api="driver"):
    return [call | {"wait": wait_of(call)} for call in truth if layer_wanted(call, api) and wait_of(call)]


def expected(truth, by=("function", "wait"), api="driver", failed_only=False):
    """{(values of `by`..., figure): count}."""
    out = Counter()
    for call in waits(truth, api):
        key = tuple(call[field] for field in by)
        not_ready = call["wait"] == "poll" and call["result"] == 600
        failed = call["result"] and not not_ready
        if failed_only and not failed:
            continue
        out[*key, "calls"] += call["count"]
        out[*key, "not_ready"] += call["count"] if not_ready else 0
        out[*key, "errors"] += call["count"] if failed else 0
    return {key: n for key, n in out.items() if n}


def found(rows, by=("function", "wait")):
    out = Counter()
    for row in rows:
        for measure in measures:
            out[*(row.get(field) for field in by), measure] += row[measure]
    return {key: n for key, n in out.items() if n}


def same_waits(tool, truth, by=("function", "wait"), api="driver", failed_only=False):
    """Compares the tool's rows with the truth, exactly. With `pid` in `by`, only rows of the truth's processes are
    compared."""
    pids = {call["pid"] for call in truth}
    rows = [row for row in tool.rows if "pid" not in by or row["pid"] in pids]
    equal(found(rows, by), expected(truth, by, api, failed_only), f"{tool}, by {', '.join(by)}")


def same_times(tool, truth, by=("function", "wait"), api="driver"):
    """Each group's total time is at least the time that the driver slept, and at most the time that the callers
    measured; the workload records both."""
    slept, took, got = Counter(), Counter(), Counter()
    for call in waits(truth, api):
        key = tuple(call[field] for field in by)
        slept[key] += call["slept_ns"]
        took[key] += call["duration_ns"]
    for row in tool.rows:
        got[tuple(row.get(field) for field in by)] += row["total_ns"]
    for key in took:
        check(slept[key] <= got[key] <= took[key], f"{tool}: {key}: slept {slept[key]}, counted {got[key]}, took {took[key]}")


def check_consistency(tool):
    """Checks that the figures of each row are consistent."""
    for row in tool.rows:
        had = row["interval_ns"] * row["threads"]
        check(abs(row["wall_percent"] - 100 * row["total_ns"] / had) < 0.01, f"wrong share of the threads' time: {row}")
        check(row["threads"] >= 1 and (row["calls"] or row["waiting"] or row["total_ns"]), f"row without waits: {row}")
        check(row["not_ready"] + row["errors"] <= row["calls"], f"more outcomes than calls: {row}")
        if row["calls"]:
            check(row["duration_p50_ns"] <= row["duration_p95_ns"] <= row["duration_p99_ns"] <= row["duration_max_ns"],
                  f"inconsistent durations: {row}")


# Table of struct waiting (bpf/shared/wait.h): entries, their size, and offsets of the start and the process of a wait.
places, place_bytes, since, image = 16384, 272, 8, 24


def waiting_threads(tool, *pids):
    """Number of threads of these processes that wait, according to the kernel's table."""
    maps = [m for m in leftovers.ids_held(tool.pid, "map_id")
            if leftovers.show("map", "id", m).get("name") == "waiting"]
    equal(len(maps), 1, "maps named 'waiting'")
    fd = system.map_fd(maps[0])
    with mmap.mmap(fd, places * place_bytes, prot=mmap.PROT_READ) as table:
        waiting = sum(any(table[at + since:at + since + 8]) and
                      int.from_bytes(table[at + image:at + image + 4], "little") in pids
                      for at in range(0, len(table), place_bytes))
    os.close(fd)
    return waiting


def row_while(tool, pid, condition, what):
    """Waits for rows of a process that meet the condition; returns the newest."""
    return wait_until(lambda: [row for row in tool.rows if row["pid"] == pid and condition(row)][-1:], what)[0]
