# SPDX-License-Identifier: Apache-2.0
"""Allocations, copies and waits: calls every function of the export lists in every form that has it."""
import re
import time

from harness import check, equal, table
from scripts import DRIVERS, RUNTIMES, run

DEFAULTS = ("bytes", "copies", "sizes", "source", "destination", "direction", "synchronous")


def driver_functions(pattern):
    """Driver functions whose name matches. Omits the 32-bit forms, which CUDA 3.2 replaced."""
    versions = dict(table("driver_exports.txt"))
    return [name for name in versions if re.fullmatch(pattern, name) and versions.get(name + "_v2") != "3020"]


def runtime_functions(pattern, form):
    """Runtime functions whose name matches. Omits cudaMemPrefetchAsync_v2, whose name has no _v2 in CUDA 13."""
    major = "13" if form == "workload13" else "12"
    return [name for name, *majors in table("runtime_exports.txt")
            if re.fullmatch(pattern, name) and major in majors and "PrefetchAsync_v2" not in name]


def bare(name):
    return re.sub("_pt(sz|ds)$", "", name)


def suffix(name):
    return name[len(bare(name)):]


COPIES = r"cuMem(cpy|set|Prefetch)\w+|cuMemcpy"
RUNTIME_COPIES = r"cudaMem(cpy|set|Prefetch)\w*"


@check
def every_driver_function_copies():
    names = driver_functions(COPIES)
    assert len(names) > 85, len(names)
    for form in DRIVERS + RUNTIMES:
        truth = run(form, "\n".join(f"copy {i + 1} fn={name} stream=1" for i, name in enumerate(names)))
        for i, name in enumerate(names):
            row = truth.one(function=name)
            kind = "set" if "set" in name else "prefetch" if "Prefetch" in name else "copy"
            equal((row["count"], row["result"], row["nested"], row["kind"]), (i + 1, 0, False, kind), name)
            equal(row["synchronous"], "Async" not in name, name)
            equal(row["stream"] == "0x0", row["synchronous"], name)
            equal(row["copies"], 2 if "Batch" in name else 1, name)
            assert row["bytes"] >= 1024 and row["destination"] and bool(row["source"]) == (kind == "copy"), name
            named = re.match("cuMemcpy([HDA])to([HDA])", name)
            if named:
                equal(row["direction"], "2".join("h" if side == "H" else "d" for side in named.groups()), name)


def nested_of(name, form):
    """The driver function that this runtime function calls for a copy between the workload's default allocations."""
    asynchronous, new = "Async" in name, form == "workload13"
    base = bare(name).replace("Async", "")
    a = "Async" if asynchronous else ""
    if base in ("cudaMemcpy", "cudaMemcpyToSymbol"):
        return f"cuMemcpyHtoD{a}_v2"
    if base == "cudaMemcpyFromSymbol":
        return f"cuMemcpyDtoD{a}_v2"
    if "Prefetch" in base:
        return base.replace("cuda", "cu") + a + ("_v2" if new and "Batch" not in base else "")
    if "Batch" in base:
        return base.replace("cuda", "cu") + a + ("_v2" if new else "")
    if "Peer" in base:
        return base.replace("cuda", "cu") + a
    if "Memset" in base:
        return ("cuMemsetD8" if base == "cudaMemset" else "cuMemsetD2D8") + (a or "_v2")
    if "3D" in base:
        return f"cuMemcpy3D{a}_v2"
    return "cuMemcpy2DAsync_v2" if asynchronous else "cuMemcpy2DUnaligned_v2"


@check
def every_runtime_function_copies():
    for form in RUNTIMES:
        names = runtime_functions(RUNTIME_COPIES, form)
        assert len(names) > 60, len(names)
        for i, name in enumerate(names):
            truth = run(form, f"copy {i + 1} fn={name} stream=1\ncopy 2 fn={name} runtime_result=9")
            kind = "set" if "set" in name else "prefetch" if "Prefetch" in name else "copy"
            upper = truth.one(layer="runtime", kind=kind, result=0)
            lower = truth.one(layer="driver", kind=kind)
            equal((upper["function"], lower["function"]), (name, nested_of(name, form) + suffix(name)), form)
            equal((upper["count"], lower["count"], lower["nested"]), (i + 1, i + 1, True), name)
            for field in DEFAULTS + ("stream", "duration_ns"):
                equal(upper[field], lower[field], f"{name} {field}")
            equal(truth.one(result=9)["count"], 2)


@check
def every_function_allocates_and_frees():
    """Functions whose memory can be copied to; allocations.py tests the others."""
    names = driver_functions(r"cuMem(Alloc\w*|HostAlloc|HostRegister_v2)") + ["cuMemMap", "array"]
    what = {"Managed": "managed", "Host": "pinned", "Register": "registered", "Map": "vmm", "array": "array"}

    def expected(name):
        return next((what[part] for part in ("Managed", "Register", "Host", "Map", "array") if part in name), "device")

    for form in DRIVERS + RUNTIMES:
        runtime = runtime_functions(r"cuda(Malloc|MallocPitch|MallocManaged|MallocHost|HostAlloc|HostRegister|"
                                    r"Malloc\w*Async\w*)", form) if form in RUNTIMES else []
        for name in names + runtime:
            truth = run(form, f"alloc a 8192 fn={name} stream=1 width=128 height=64\n"
                              "copy 1 dst=a+8 fn=cuMemcpyAsync\nfree a")
            kinds = sorted((r["kind"], r["bytes"], r["destination"], r["count"], r["synchronous"])
                           for r in truth.find(nested=name in runtime) if r["destination"] and r["kind"] != "copy")
            size, synchronous = 512 * 64 if "Pitch" in name else 8192, "Async" not in name
            equal(kinds, [("alloc", size, expected(name), 1, synchronous),
                          ("free", size, expected(name), 1, synchronous)], f"{form} {name}")
            copy = truth.one(kind="copy")
            wanted = {"managed": "unknown", "pinned": "h2h", "registered": "h2h"}.get(expected(name), "h2d")
            equal((copy["destination"], copy["direction"]), (expected(name), wanted), name)
            for layer in {"driver", "runtime"} if name in runtime else {"driver"}:
                equal(sum(r["count"] for r in truth.find(layer=layer, kind="free") if r["destination"]), 1)
            if name == "cuMemMap":
                equal([(r["kind"], r["holding"]) for f in ("cuMemAddressReserve", "cuMemMap", "cuMemUnmap",
                                                           "cuMemAddressFree") for r in truth.find(function=f)],
                      [("alloc", "reserved"), ("alloc", "mapped"), ("free", "mapped"), ("free", "reserved")])
        truth = run(form, "alloc a 9999 fn=host; alloc b 9999 fn=mmap; copy 1 fn=cuMemcpy dst=a src=b+9; free a; free b")
        equal(truth.one(kind="copy")["direction"], "h2h")
        equal(truth.count(kind="alloc"), 0)


@check
def every_sync_function_waits_or_polls():
    names = driver_functions(r"cu(CtxSynchronize|StreamSynchronize|EventSynchronize|StreamQuery|EventQuery|"
                             r"StreamWaitEvent|StreamWaitValue\d\d)(_v2)?(_ptsz)?")
    equal(len(names), 18, names)
    for form in DRIVERS + RUNTIMES:
        runtime = runtime_functions(r"cuda(Device|Thread|Stream|Event)Synchronize(_ptsz)?|cuda(Stream|Event)Query"
                                    r"(_ptsz)?|cudaStreamWaitEvent(_ptsz)?", form) if form in RUNTIMES else []
        for i, name in enumerate(names + runtime):
            truth = run(form, f"sync {i + 1} fn={name} stream=1; sync 2 fn={name} result=600 stream=1")
            kind = "poll" if "Query" in name else "sync"
            for layer in ("driver", "runtime") if name in runtime else ("driver",):
                row = truth.one(layer=layer, kind=kind, result=0)
                equal((row["count"], row["synchronous"]), (i + 1, "Synchronize" in name), name)
                equal(int(row["stream"], 16) > 4096, "Stream" in name, name)
                equal(int(row["handle"], 16) > 4096, "Event" in name, name)
                equal(truth.one(layer=layer, kind=kind, result=600)["count"], 2, name)
            if name in runtime:
                driver = re.sub("cuda(Device|Thread)", "cuCtx", name).replace("cuda", "cu")
                equal({r["function"] for r in truth.find(layer="driver", kind=kind)}, {driver}, form)


ALLOCATIONS = """alloc d 1000000; alloc m 8192 fn=cuMemAllocManaged; alloc p 8192 fn=cuMemHostAlloc
alloc r 8192 fn=cuMemHostRegister_v2; alloc h 8192 fn=host; alloc a 8192 fn=array; alloc v 2097152 fn=cuMemMap
alloc n 2097152 fn=cuMemMap location=host\n"""
TRUTHS = {
    "fn=cuMemcpy dst=d src=p bytes=10": (10, 1, None, "pinned", "device", "h2d", True),
    "fn=cuMemcpyAsync dst=p+64 src=v bytes=10": (10, 1, None, "vmm", "pinned", "d2h", False),
    "fn=cuMemcpy dst=n src=r bytes=7": (7, 1, None, "registered", "vmm", "h2h", True),
    "fn=cuMemcpy dst=m src=r bytes=7": (7, 1, None, "registered", "managed", "unknown", True),
    "fn=cuMemcpyHtoD_v2 dst=m src=h bytes=8": (8, 1, None, "host", "managed", "h2d", True),
    "fn=cuMemcpy2D_v2 dst=d+4096 src=m types=1,2 width=30 height=4": (120, 1, None, "managed", "device", "h2d", True),
    "fn=cuMemcpy2D_v2 dst=d src=h types=4,4 width=30 height=4": (120, 1, None, "host", "device", "h2d", True),
    "fn=cuMemcpy3DAsync_v2 dst=h src=a width=9 height=3 depth=2": (54, 1, None, "array", "host", "d2h", False),
    "fn=cuMemcpy3D_v2 dst=m src=a bytes=99": (99, 1, None, "array", "managed", "unknown", True),
    "fn=cuMemcpy3DPeer dst=d src=v bytes=99": (99, 1, None, "vmm", "device", "p2p", True),
    "fn=cuMemcpyBatchAsync dst=d src=h sizes=10,20,30": (60, 3, [10, 20, 30], "host", "device", "h2d", False),
    "fn=cuMemcpyBatchAsync_v2 dst=d src=m sizes=10": (10, 1, [10], "managed", "device", "unknown", False),
    "fn=cuMemcpy3DBatchAsync_v2 dst=d src=h sizes=10,5 height=2 depth=3":
        (90, 2, [60, 30], "host", "device", "h2d", False),
    "fn=cuMemsetD32_v2 dst=d bytes=400": (400, 1, None, None, "device", "set", True),
    "fn=cuMemsetD2D16Async dst=m width=10 height=3": (60, 1, None, None, "managed", "set", False),
    "fn=cuMemPrefetchAsync_v2 dst=m bytes=4096 location=host": (4096, 1, None, None, "managed", "prefetch", False),
    "fn=cuMemPrefetchBatchAsync dst=m sizes=1,2,3": (6, 3, [1, 2, 3], None, "managed", "prefetch", False),
    "fn=cuMemcpy3D_v2 params=unreadable": (None, 1, None, None, None, "unknown", True),
    "fn=cuMemcpy2DAsync_v2 params=unreadable": (None, 1, None, None, None, "unknown", False),
    "fn=cuMemcpy3DPeerAsync params=unreadable": (None, 1, None, None, None, "p2p", False),
    "fn=cuMemcpyBatchAsync params=unreadable sizes=1,2": (None, 2, None, None, None, "unknown", False),
    "fn=cuMemcpy3DBatchAsync_ptsz params=unreadable": (None, 2, None, None, None, "unknown", False),
    "fn=cuMemPrefetchBatchAsync params=unreadable": (None, 2, None, None, None, "prefetch", False),
}
RUNTIME_TRUTHS = {
    "dst=d src=h bytes=5": (5, 1, None, "host", "device", "h2d", True),
    "dst=d src=m bytes=5": (5, 1, None, "managed", "device", "unknown", True),
    "dst=d src=m bytes=5 kind=1": (5, 1, None, "managed", "device", "h2d", True),
    "dst=d src=p bytes=5 kind=4": (5, 1, None, "pinned", "device", "h2d", True),
    "fn=cudaMemcpy2DAsync dst=p src=d width=8 height=2": (16, 1, None, "device", "pinned", "d2h", False),
    "fn=cudaMemcpy2D kind=0 width=8 height=2": (16, 1, None, "host", "host", "h2h", True),
    "fn=cudaMemcpy3D kind=4 src=m": (2048, 1, None, "managed", "device", "unknown", True),
    "fn=cudaMemcpy2DToArray kind=1 width=3 height=3": (9, 1, None, "host", "array", "h2d", True),
    "fn=cudaMemcpyFromSymbol kind=2 bytes=4": (4, 1, None, "device", "host", "d2h", True),
    "fn=cudaMemset3D width=2 height=3 depth=4": (24, 1, None, None, "device", "set", True),
    "fn=cudaMemcpyBatchAsync params=unreadable": (None, 2, None, None, None, "unknown", False),
}


@check
def copies_report_bytes_and_direction():
    for form in DRIVERS + RUNTIMES:
        cases = TRUTHS | (RUNTIME_TRUTHS if form in RUNTIMES else {})
        for step, want in cases.items():
            truth = run(form, ALLOCATIONS + f"copy 3 {step}")
            for row in [r for r in truth.calls if r["kind"] in ("copy", "set", "prefetch")]:
                equal((row["count"], *(row[field] for field in DEFAULTS)), (3, *want), f"{form} {step}")


@check
def copies_are_recorded_by_capture():
    for form in DRIVERS + RUNTIMES:
        truth = run(form, "capture begin; copy 2 fn=cuMemcpyHtoDAsync_v2 stream=1; copy 3 fn=cuMemsetD2D8Async stream=1\n"
                          "copy 4 fn=cuMemcpyHtoDAsync_v2 stream=2; launch vecadd 5 stream=1; capture end; graph 1\n"
                          "copy 6 fn=cuMemcpyHtoDAsync_v2 stream=1")
        equal(truth.count(kind="copy", recorded=True), 2, form)
        equal(truth.count(kind="set", recorded=True), 3, form)
        equal(truth.count(kind="copy", recorded=False), 10, form)
        equal(truth.one(layer="driver", kind="graph")["kernels"], 5)
        equal(truth.count(layer="driver", kind="kernel", recorded=True), 5)


@check
def durations_are_reported():
    for form in ("workload", "workload13", "workload-driver"):
        start = time.monotonic()
        truth = run(form, "alloc a 100 block_us=9000; copy 10 fn=cuMemcpy block_us=3000; sync 20 delay_us=1000\n"
                          "free a delay_us=5000 block_us=5000; sync 5 fn=cuStreamQuery")
        took = (time.monotonic() - start) * 1e9
        for kind, slept in (("alloc", 9e6), ("copy", 30e6), ("sync", 20e6), ("free", 10e6), ("poll", 0)):
            rows = [r for r in truth.find(layer="driver", kind=kind) if r["bytes"] != 256 << 20]
            equal(sum(r["slept_ns"] for r in rows), slept, f"{form} {kind}")
            assert slept <= sum(r["duration_ns"] for r in rows) < took, (kind, rows)
    truth = run("workload", "sync 3 runtime_result=700 block_us=50000; sync 4")
    equal({(r["result"], r["slept_ns"]) for r in truth.find(kind="sync")}, {(700, 0), (0, 0)})
    assert all(r["duration_ns"] is r["synchronous"] is r["bytes"] is None
               for r in run("workload", "launch vecadd 3; alloc a 1").calls if r["kind"] in ("kernel", "setup"))


@check
def names_are_shared_until_their_context_is_destroyed():
    for form in ("workload", "workload-driver"):
        truth = run(form, "threads 4; repeat 25; alloc a 64; alloc h 64 fn=host; copy 1 dst=a src=h; free a; free h; end\n"
                          "end; alloc b 64; threads 2; copy 3 dst=b; end")
        equal((truth.count(layer="driver", kind="alloc"), truth.count(layer="driver", kind="free")), (101, 100), form)
        equal(truth.count(layer="driver", kind="copy"), 106)
        assert "no memory named a" in run(form, "alloc a 64; reset; copy 1 dst=a", code=2)
        assert "no memory named a" in run(form, "alloc a 64; free a; free a", code=2)
        assert "no memory named a" in run(form, "newcontext; alloc a 64; destroycontext; free a", code=2)
        assert "created no context" in run(form, "destroycontext", code=2)
        truth = run(form, "alloc a 64; newcontext; alloc b 64; copy 1 dst=b; sync 1 fn=cuStreamSynchronize stream=1\n"
                          "destroycontext; copy 1 dst=a; reset; alloc a 64; copy 1 dst=a; launch vecadd 1; free a")
        equal(truth.count(layer="driver", kind="copy"), 3)
        truth = run(form, "alloc a 64; free a result=1; free a")
        equal([r["count"] for r in truth.find(layer="driver", kind="free")], [1, 1])


@check
def invalid_memory_steps_are_refused():
    for step, message in (("copy 1 fn=cudaLaunchKernel", "does not copy"), ("copy 1 dst=x", "no memory named x"),
                          ("copy 1 fn=cuMemcpy kind=1", "takes no kind"), ("copy 1 kind=7", "kind must be 0 to 4"),
                          ("copy 1 types=1,2", "types takes"), ("copy 1 sizes=1", "takes no sizes"),
                          ("copy 1 fn=cudaMemcpy3D params=unreadable", "takes no structure"),
                          ("alloc a 10 fn=cuMemCreate params=unreadable", "cuMemCreate that fails"),
                          ("alloc a 10 fn=cuMemFree_v2", "does not allocate"), ("alloc a 10 width=3", "is not 10"),
                          ("alloc a 10; free a fn=cuMemAlloc_v2", "does not free"), ("sync 1 fn=cuInit", "does not wait")):
        assert message in run("workload", step, code=2), step
