# SPDX-License-Identifier: Apache-2.0
"""Allocating functions, and memory released with contexts, as reported in the truth file. scripts.Truth checks every
truth file against the driver's own totals."""
import time

from harness import check, equal
from memory import bare, suffix
from scripts import DRIVERS, RUNTIMES, run

ARRAY = "width=10 height=6 depth=3 format=0x20 channels=4"
MIPMAPPED = "width=64 height=32 format=0x10 channels=2 levels=7"
# function: (arguments of alloc, bytes, holding, freeing function[, driver function of a runtime function])
DRIVER = {
    "cuMemAlloc_v2": ("10001", 10001, "device", "cuMemFree_v2"),
    "cuMemAllocPitch_v2": ("0 width=700 height=3", 3072, "device", "cuMemFree_v2"),
    "cuMemAllocManaged": ("10001", 10001, "managed", "cuMemFree_v2"),
    "cuMemAllocAsync": ("10001 stream=1", 10001, "pool", "cuMemFreeAsync"),
    "cuMemAllocAsync_ptsz": ("10001", 10001, "pool", "cuMemFreeAsync"),
    "cuMemAllocFromPoolAsync": ("10001 stream=1", 10001, "pool", "cuMemFreeAsync"),
    "cuMemHostAlloc": ("10001", 10001, "pinned", "cuMemFreeHost"),
    "cuMemAllocHost_v2": ("10001", 10001, "pinned", "cuMemFreeHost"),
    "cuMemHostRegister_v2": ("10001", 10001, "registered", "cuMemHostUnregister"),
    "cuMemCreate": ("2097152", 2097152, "vmm", "cuMemRelease"),
    "cuMemCreate ": ("2097152 location=host", 2097152, "pinned", "cuMemRelease"),
    "cuArrayCreate_v2": ("4096", 4096, "array", "cuArrayDestroy"),
    "cuArrayCreate_v2 ": ("0 width=10 height=6 format=9 channels=2", 240, "array", "cuArrayDestroy"),
    "cuArray3DCreate_v2": (f"0 {ARRAY}", 2880, "array", "cuArrayDestroy"),
    "cuMipmappedArrayCreate": (f"0 {MIPMAPPED}", 4 * 2731, "array", "cuMipmappedArrayDestroy"),
    "cuMemPoolCreate": ("0", 0, "pool-object", "cuMemPoolDestroy"),
    "cuMemPoolImportPointer": ("10001", 10001, "imported", "cuMemFreeAsync"),
    "cuIpcOpenMemHandle": ("10001", 10001, "imported", "cuIpcCloseMemHandle"),
    "cuIpcOpenMemHandle_v2": ("10001", 10001, "imported", "cuIpcCloseMemHandle"),
    "cuMemImportFromShareableHandle": ("2097152", 2097152, "imported", "cuMemRelease"),
    "cuImportExternalMemory": ("10001", 10001, "imported", "cuDestroyExternalMemory"),
    "cuExternalMemoryGetMappedBuffer": ("500 from=external+100", 500, "mapped", "cuMemFree_v2"),
    "cuMulticastCreate": ("2097152", 2097152, "multicast", "cuMemRelease"),
    "cuGraphAddMemAllocNode": ("10001", 10001, "graph", "cuGraphAddMemFreeNode"),
}
RUNTIME = {
    "cudaMalloc": ("10001", 10001, "device", "cudaFree", "cuMemAlloc_v2"),
    "cudaMallocPitch": ("0 width=700 height=3", 3072, "device", "cudaFree", "cuMemAllocPitch_v2"),
    "cudaMalloc3D": ("0 width=700 height=3 depth=5", 5 * 3072, "device", "cudaFree", "cuMemAllocPitch_v2"),
    "cudaMallocManaged": ("10001", 10001, "managed", "cudaFree", "cuMemAllocManaged"),
    "cudaMallocAsync_ptsz": ("10001", 10001, "pool", "cudaFreeAsync", "cuMemAllocAsync"),
    "cudaMallocFromPoolAsync": ("10001 pool=pool stream=1", 10001, "pool", "cudaFreeAsync", "cuMemAllocFromPoolAsync"),
    "cudaMallocHost": ("10001", 10001, "pinned", "cudaFreeHost", "cuMemHostAlloc"),
    "cudaHostAlloc": ("10001", 10001, "pinned", "cudaFreeHost", "cuMemHostAlloc"),
    "cudaHostRegister": ("10001", 10001, "registered", "cudaHostUnregister", "cuMemHostRegister_v2"),
    "cudaMallocArray": ("0 width=10 height=6 format=9 channels=2", 240, "array", "cudaFreeArray", "cuArray3DCreate_v2"),
    "cudaMallocArray ": ("4096", 4096, "array", "cudaFreeArray", "cuArray3DCreate_v2"),
    "cudaMalloc3DArray": (f"0 {ARRAY}", 2880, "array", "cudaFreeArray", "cuArray3DCreate_v2"),
    "cudaMallocMipmappedArray": (f"0 {MIPMAPPED}", 4 * 2731, "array", "cudaFreeMipmappedArray",
                                 "cuMipmappedArrayCreate"),
    "cudaMemPoolCreate": ("0", 0, "pool-object", "cudaMemPoolDestroy", "cuMemPoolCreate"),
    "cudaMemPoolImportPointer": ("10001 pool=pool", 10001, "imported", "cudaFreeAsync", "cuMemPoolImportPointer"),
    "cudaIpcOpenMemHandle": ("10001", 10001, "imported", "cudaIpcCloseMemHandle", "cuIpcOpenMemHandle_v2"),
    "cudaImportExternalMemory": ("10001", 10001, "imported", "cudaDestroyExternalMemory", "cuImportExternalMemory"),
    "cudaExternalMemoryGetMappedBuffer": ("500 from=external+9501", 500, "mapped", "cudaFree",
                                          "cuExternalMemoryGetMappedBuffer"),
    "cudaGraphAddMemAllocNode": ("10001", 10001, "graph", "cudaGraphAddMemFreeNode", "cuGraphAddMemAllocNode"),
}
PRELUDE = "alloc external 10001 fn=cuImportExternalMemory; alloc pool 0 fn=cuMemPoolCreate\n"
OWNED = {"device", "array", "managed", "pinned", "registered", "imported", "mapped"}


def is_owned(name, holding):
    return holding in OWNED and bare(name.strip()) not in ("cuMemCreate", "cuMemPoolImportPointer",
                                                           "cudaMemPoolImportPointer", "cuMemImportFromShareableHandle")


@check
def every_function_allocates_the_expected_bytes():
    for form in DRIVERS + RUNTIMES:
        for name, (options, size, holding, free, *nested) in (DRIVER | (RUNTIME if form in RUNTIMES else {})).items():
            function, free = name.strip(), free + (suffix(name) if "Async" in name else "")
            alloc = f"alloc a {options} fn={function}\n"
            truth = run(form, f"name before; {PRELUDE} name main; {alloc} free a fn={free}; {alloc}"
                              f"alloc b {options} fn={function} result=2; free a fn={free} result=1")
            requested = {3072: 2100, 5 * 3072: 5 * 2100}.get(size, size)  # the pitch is unknown if the call fails
            want = sorted((layer, kind, code, n, requested if code == 2 else size, holding)
                          for layer in (("runtime", "driver") if nested else ("driver",))
                          for kind, code, n in (("alloc", 0, 2), ("alloc", 2, 1), ("free", 0, 1), ("free", 1, 1)))
            got = sorted((r["layer"], r["kind"], r["result"], r["count"], r["bytes"], r["holding"])
                         for r in truth.calls if r["kind"] in ("alloc", "free") and r["comm"] == "main")
            equal(got, want, f"{form} {name}")
            if nested:
                equal(truth.one(layer="driver", kind="alloc", result=2)["function"], nested[0] + suffix(name), name)
            held = {key[1]: of for key, of in truth.memory.items()}
            before = {"imported": (10001, 1), "pool-object": (0, 1)}
            was = before.get(holding, (0, 0))
            equal(held, before | {holding: (was[0] + size, was[1] + 1)}, f"{form} {name}")


@check
def contexts_release_their_memory():
    for form in ("workload-driver", "workload"):
        for end in ("reset", "destroycontext"):
            for name, (options, size, holding, *_) in (DRIVER | (RUNTIME if form == "workload" else {})).items():
                truth = run(form, ("newcontext; " if end != "reset" else "") + PRELUDE +
                            f"alloc a {options} fn={name.strip()}; {end}")
                released = {"imported": (10001, 1)}
                held = {"pool-object": (0, 1)}
                into = released if is_owned(name, holding) else held
                was = into.get(holding, (0, 0))
                into[holding] = (was[0] + size, was[1] + 1)
                equal({key[1]: of for key, of in truth.released.items()}, released, f"{form} {end} {name}")
                equal({key[1]: of for key, of in truth.memory.items()}, held, f"{form} {end} {name}")
    truth = run("workload-driver", "alloc a 700; newcontext; alloc b 10; alloc p 20 fn=cuMemAllocAsync\n"
                                   "destroycontext; free p; free a; alloc c 5; device 1; alloc d 6; reset")
    equal(sorted(truth.released.values()), [(16, 2)])
    equal(list(truth.memory.values()), [(5, 1)])


@check
def peak_is_the_maximum_held():
    peaks = {"alloc a 1000": 1000, "alloc a 1000; free a; alloc b 300": 1000,
              "alloc a 1000; alloc b 24 fn=array; free a; alloc c 90 fn=cuMemAllocAsync": 1024,
              "alloc a 10 fn=cuMemAllocManaged; alloc b 10 fn=cuMemHostAlloc; alloc c 9 fn=cuIpcOpenMemHandle": 0,
              "repeat 9; alloc a 10 fn=cuMemMap; end": 90, "alloc a 0 width=1 height=2 fn=cuMemAllocPitch_v2": 1024,
              "alloc a 100; reset; alloc b 60": 100}
    for script, want in peaks.items():
        equal(list(run("workload-driver", script).peaks.values()), [want], script)
    truth = run("workload-driver", "alloc a 100; fork; alloc b 7; end; free a")
    equal(sorted(truth.peaks.values()), [7, 100])
    equal([of for of in truth.memory.values()], [(7, 1)])


@check
def capture_records_allocations():
    for form, alloc, free in (("workload-driver", "cuMemAllocAsync", "cuMemFreeAsync"),
                              ("workload", "cudaMallocAsync_ptsz", "cudaFreeAsync_ptsz"),
                              ("workload13", "cudaMallocFromPoolAsync", "cudaFreeAsync")):
        truth = run(form, f"alloc o 10 fn={alloc} stream=1; capture begin; alloc a 100 fn={alloc} stream=1\n"
                          f"alloc b 200 fn={alloc} stream=1; free b fn={free} stream=1\n"
                          f"alloc c 50 fn={alloc} stream=2; free o fn={free} stream=1; capture end\n"
                          f"free a fn={free} stream=1; free o fn={free}; trim graph")
        rows = sorted((r["kind"], r["bytes"], r["holding"], r["recorded"], r["result"])
                      for r in truth.find(layer="driver") if r["kind"] in ("alloc", "free"))
        equal(rows, [("alloc", 10, "pool", False, 0), ("alloc", 50, "pool", False, 0), ("alloc", 100, "graph", True, 0),
                     ("alloc", 200, "graph", True, 0), ("free", 10, "pool", False, 0), ("free", 10, "pool", False, 1),
                     ("free", 100, "graph", False, 0), ("free", 200, "graph", True, 0)], form)
        equal({key[1]: of for key, of in truth.memory.items()}, {"pool": (50, 1)})
        equal(list(truth.peaks.values()), [60])


@check
def freeing_invalid_memory_fails():
    for form, free in (("workload-driver", "cuMemFree_v2"), ("workload", "cudaFree")):
        truth = run(form, "alloc a 100; free a; free a again; badfree 0x1234; badfree 0x1234 fn=cuMemFreeAsync\n"
                          "freenull; badfree 64 fn=cuArrayDestroy; freenull fn=cuMemHostUnregister\n"
                          "alloc p 0 fn=cuMemPoolCreate; free p; free p again; freenull fn=cuMemFreeHost\n"
                          "alloc h 10 fn=cuMemCreate; free h; free h again")
        got = {(r["function"], r["result"]): r["count"] for r in truth.find(kind="free", holding=None, nested=False)}
        equal(got, {("cuArrayDestroy", 400): 1, ("cuMemFreeAsync", 1): 1, ("cuMemFreeHost", 0): 1,
                    ("cuMemHostUnregister", 713): 1, ("cuMemPoolDestroy", 1): 1, ("cuMemRelease", 1): 1, (free, 0): 1,
                    (free, 1): 2}, form)
        assert "there was memory" in run(form, "alloc a 100; free a; alloc b 90; free a again", code=2)
        assert "was not freed" in run(form, "alloc a 100; free a again", code=2)


@check
def memory_can_be_imported():
    truth = run("workload-driver", "alloc a 100; alloc i 9 fn=cuIpcOpenMemHandle_v2 from=a\n"
                                   "alloc p 70 fn=cuMemAllocAsync; alloc q 9 fn=cuMemPoolImportPointer from=p\n"
                                   "alloc v 2097152 fn=cuMemCreate\n"
                                   "alloc w 9 fn=cuMemImportFromShareableHandle from=v")
    equal({key[1]: of for key, of in truth.memory.items()},
          {"device": (100, 1), "pool": (70, 1), "vmm": (2097152, 1), "imported": (2097152 + 170, 3)})
    equal(truth.one(function="cuIpcGetMemHandle")["kind"], "setup")
    equal(list(truth.peaks.values()), [2097152 + 170])


@check
def churn_is_fast_and_its_truth_is_short():
    start = time.monotonic()
    truth = run("workload-driver", "threads 16; churn 62500 fail=10; end")
    took = time.monotonic() - start
    assert took < 20, took
    rows = truth.find(kind="alloc")
    equal(truth.count(kind="alloc", result=0), 1_000_000)
    equal(truth.count(kind="free", result=0), 1_000_000)
    equal(len({r["tid"] for r in rows}), 16)
    equal(len({r["bytes"] for r in rows}), 32)
    assert all(r["bytes"] % 2 for r in rows)
    for kind, code in (("alloc", 2), ("free", 1)):
        equal({r["result"] for r in truth.find(kind=kind)}, {0, code})
        assert 90_000 < truth.count(kind=kind, result=code) < 130_000, truth.count(kind=kind, result=code)
    assert len(truth.calls) < 3000 and not truth.memory
    peak, = truth.peaks.values()
    assert 32 * 1000 < peak < 1010 * 1_000_000


@check
def churn_mixes_functions_and_can_keep_memory():
    functions = ("cudaMalloc,cuMemAllocPitch_v2,cuMemAllocAsync_ptsz,cuMemCreate,cuMemHostAlloc,cuMemAllocManaged,"
                 "cuArrayCreate_v2,cudaMallocAsync,cuMipmappedArrayCreate")
    truth = run("workload13", f"threads 4; churn 5000 keep held=40 sizes=5 seed=7 fail=3 stream=1 fn={functions}; end")
    equal(truth.count(layer="driver", kind="alloc", result=0), 20000)
    equal({r["holding"] for r in truth.find(kind="alloc")}, {"device", "pool", "vmm", "pinned", "managed", "array"})
    left = sum(of[1] for of in truth.memory.values())
    equal(truth.count(layer="driver", kind="free", result=0), 20000 - left)
    assert 15 < left < 50, left
    again = run("workload-driver", "churn 500 keep held=40 seed=3")
    for field in ("memory", "peaks"):
        equal(list(getattr(again, field).values()),
              list(getattr(run("workload-driver", "churn 500 keep held=40 seed=3"), field).values()))
    assert "churn does not support" in run("workload", "churn 1 fn=cuMemMap", code=2)
