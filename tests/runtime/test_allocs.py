# SPDX-License-Identifier: Apache-2.0
"""gpualloc: every allocation and free counts once with its kind, and live memory equals what the driver holds."""
import collections

import harness
import memory
import system
from harness import all_but, check, equal, wait_until
from memory import case, same_calls, same_unfreed
from programs import Tool, Workload

driver_kinds = """
alloc a 10001 fn=cuMemAlloc_v2; alloc b 65536 height=16 fn=cuMemAllocPitch_v2; alloc c 4097 fn=cuMemAllocManaged
alloc d 12007 fn=cuMemAllocAsync; alloc e 13007 fn=cuMemAllocAsync_ptsz stream=1; alloc P 0 fn=cuMemPoolCreate
alloc f 14009 fn=cuMemAllocFromPoolAsync pool=P; alloc g 15013 fn=cuMemAllocFromPoolAsync_ptsz pool=P stream=1
alloc h 16001 fn=cuMemHostAlloc; alloc i 17011 fn=cuMemAllocHost_v2; alloc j 18013 fn=cuMemHostRegister_v2
alloc k 0 width=100 height=30 format=2 channels=4 fn=cuArrayCreate_v2
alloc l 0 width=10 height=6 depth=3 format=0x20 channels=4 fn=cuArray3DCreate_v2
alloc m 0 width=64 height=32 format=0x10 channels=2 levels=7 fn=cuMipmappedArrayCreate
alloc n 2097152 fn=cuMemCreate; alloc o 8192 fn=cuMemCreate location=host; reserve R 16777216; map M handle=n at=R+2097152
alloc p 4096 fn=cuIpcOpenMemHandle_v2; alloc q 70 fn=cuMemPoolImportPointer; alloc r 2097152 fn=cuMemImportFromShareableHandle
alloc s 10001 fn=cuImportExternalMemory; alloc t 500 fn=cuExternalMemoryGetMappedBuffer from=s+100
alloc u 4096 fn=cuGraphAddMemAllocNode; alloc v 2097152 fn=cuMulticastCreate
"""
driver_frees = """
free a; free b; free c; free d; free e fn=cuMemFreeAsync_ptsz; free f; free g; free P; free h; free i; free j; free k; free l
free m; unmap M; free n; free o; unreserve R; free p; free q; free r; free t; free s; free u; free v
"""
runtime_kinds = """
alloc a 10001; alloc b 65536 height=16 fn=cudaMallocPitch; alloc c 0 width=700 height=3 depth=5 fn=cudaMalloc3D
alloc d 4097 fn=cudaMallocManaged; alloc e 12007 fn=cudaMallocAsync; alloc f 13007 fn=cudaMallocAsync_ptsz stream=1
alloc P 0 fn=cudaMemPoolCreate; alloc g 99 fn=cudaMallocFromPoolAsync pool=P; alloc h 16001 fn=cudaMallocHost
alloc i 17011 fn=cudaHostAlloc; alloc j 18013 fn=cudaHostRegister; alloc k 0 width=100 height=30 format=2 channels=4 fn=cudaMallocArray
alloc l 0 width=10 height=6 depth=3 format=0x20 channels=4 fn=cudaMalloc3DArray
alloc m 0 width=64 height=32 format=0x10 channels=2 levels=7 fn=cudaMallocMipmappedArray
alloc n 4096 fn=cudaIpcOpenMemHandle; alloc o 70 fn=cudaMemPoolImportPointer; alloc p 10001 fn=cudaImportExternalMemory
alloc q 500 fn=cudaExternalMemoryGetMappedBuffer from=p+100; alloc r 4096 fn=cudaGraphAddMemAllocNode
""" + "; ".join(f"free {name}" for name in "bcdefgPhijlmnoqpr")


def trace_by_kind(script, *arguments, form="workload", **options):
    workload = Workload(script, form)
    tool = Tool("-p", workload.pid, "--by", "pid,kind", *arguments, **options)
    workload.go()
    truth = workload.truth()
    tool.finish()
    same_calls(tool, truth)
    same_unfreed(tool, workload)
    return tool, truth


@case
def tagged_addresses():
    """A free matches its allocation even if the tag bits of the address (top byte ignore) differ."""
    system.need_ignored_bits()
    tool, _ = trace_by_kind("alloc a 4099 tag=7; alloc b 70001 fn=cuMemAllocManaged tag=255; alloc c 5003 fn=cuMemAllocHost_v2 tag=1\n"
                            "alloc d 6007 tag=32; alloc e 6011; free a; free b; free c", form="workload-driver")
    memory.no_loss(tool)


@case(each={form: form for form in ("workload13", "workload-static")})
def every_runtime_function(form):
    """Live memory is the same with --api driver, runtime and both, and nothing counts twice."""
    workload = Workload(runtime_kinds, form)
    tools = {api: Tool("-p", workload.pid, "--by", "pid,kind", "--api", api) for api in ("driver", "runtime", "both")}
    workload.go()
    truth = workload.truth()
    for api, tool in tools.items():
        tool.finish()
        same_calls(tool, truth, api=api)
        same_unfreed(tool, workload)


# Scripts with sizes that a real device accepts, and the memory held at their end.
on_devices = {
    "linear": "alloc a 10001 fn=cuMemAlloc_v2; alloc b 65536 height=16 fn=cuMemAllocPitch_v2; alloc c 5000000000000 fn=cuMemAlloc_v2\n"
              "free a; repeat 20; alloc d 3000000 fn=cuMemAlloc_v2; free d; end; badfree 0x1234 fn=cuMemFree_v2",
    "managed": "alloc a 4097 fn=cuMemAllocManaged; alloc b 70000 fn=cuMemAllocManaged; free a",
    "pinned": "alloc a 16001 fn=cuMemHostAlloc; alloc b 17011 fn=cuMemAllocHost_v2; alloc c 18013 fn=cuMemHostRegister_v2; free a; free c",
    "pools": "alloc P 0 fn=cuMemPoolCreate; alloc a 12007 fn=cuMemAllocAsync; alloc b 13007 fn=cuMemAllocAsync stream=1\n"
             "alloc c 14009 fn=cuMemAllocFromPoolAsync pool=P; sync 1 fn=cuCtxSynchronize; free a; free b stream=1; trim P",
    "arrays": "alloc a 0 width=100 height=30 format=2 channels=4 fn=cuArrayCreate_v2; free a\n"
              "alloc b 0 width=10 height=6 depth=3 format=0x20 channels=4 fn=cuArray3DCreate_v2\n"
              "alloc c 0 width=64 height=32 format=0x10 channels=2 levels=6 fn=cuMipmappedArrayCreate",
    "threads": "threads 8; churn 500 held=100 fn=cuMemAlloc_v2,cuMemAllocAsync,cuMemHostAlloc; end",
}


@case(each=on_devices, gpu=True, long=all_but(on_devices, "linear", "threads"))
def each_kind_on_a_device(script):
    workload = Workload(script, "workload-driver")
    tool = Tool("-p", workload.pid, "--by", "pid,kind")
    truth = workload.go().truth()
    same_calls(tool.finish(), truth)
    check(any(memory.is_memory(call) and not call["result"] for call in truth), "no call succeeded")


@case(gpu=True)
def physical_memory_on_a_device():
    """Physical memory is held until both its mapping and its handle are released. The rows are compared with numbers in
    the script, since only the stand-in records the call that freed the memory."""
    workload = Workload("alloc a 2097152 fn=cuMemCreate; alloc b 4194304 fn=cuMemCreate; reserve R 16777216; map M handle=a at=R\n"
                        "map N handle=b at=R+4194304; unmap M; free a; free b; unmap N; unreserve R", "workload-driver")
    tool = Tool("-p", workload.pid, "--by", "pid,kind")
    workload.go().wait()
    moved = collections.defaultdict(dict)
    for (kind, measure), amount in memory.counted(tool.finish().rows).items():
        moved[kind][measure] = amount
    equal(dict(moved), {"vmm": {"allocs": 2, "frees": 2, "allocated_bytes": 6291456, "freed_bytes": 6291456},
                  "mapped": {"allocated_bytes": 6291456, "freed_bytes": 6291456},
                  "reserved": {"allocs": 1, "frees": 1, "allocated_bytes": 16777216, "freed_bytes": 16777216}}, "memory")


@case(timeout=300, alone=True, long=True)
def a_million_pairs():
    """16 threads free each other's memory, and its addresses are reused immediately. Some calls fail."""
    script = """threads 16
    churn 62500 held=1000 fail=5 fn=cuMemAlloc_v2,cuMemAllocAsync,cuMemAllocPitch_v2,cuMemAllocManaged,cuMemHostAlloc,cuArrayCreate_v2,cuMemCreate,cuMemAllocFromPoolAsync
    end"""
    tool, truth = trace_by_kind(script, form="workload-driver")
    equal(sum(call["count"] for call in truth if call["kind"] == "alloc" and not call["result"]), 1_000_000, "pairs")
    check(sum(row["live_allocations"] + row["released"] for row in tool.rows) == 0, "unfreed memory is left")


@case(each={tier: tier for tier in ("session", "multi", "tracefs", "perf")}, long=["perf"])
def tiers_are_equal(tier):
    system.need_tier(tier)
    script = driver_kinds + """
    threads 4; churn 2000 held=100 fail=5 fn=cuMemAlloc_v2,cuMemAllocAsync,cuMemCreate; end; free a; unmap M; free n; free k"""
    trace_by_kind(script, "--attach", tier, form="workload-driver")


@case(alone=True)
def forked():
    """A forked child has its own memory; its frees of the parent's addresses are unknown."""
    script = "alloc a 5000; fork; alloc b 700; alloc c 800; free c; end; alloc d 60; free d"
    workload = Workload(script, "workload-driver")
    tool = Tool("--by", "pid,kind")
    truth = workload.go().truth()
    tool.stop()
    pids = {call["pid"] for call in truth}
    tool.all_records = [r for r in tool.records if r["type"] != "row" or r.get("pid") in pids]
    same_calls(tool, truth, by=("pid", "kind"))
    same_unfreed(tool, workload)


@case(alone=True)
def killed_in_a_call():
    """A process that is killed during a call holds nothing afterwards."""
    workload = Workload("alloc a 5000; alloc b 600; free a block_us=60000000", "workload-driver")
    tool = Tool("-i", "0.3")
    workload.go()
    wait_until(lambda: any(r.get("pid") == workload.pid and r["live_bytes"] == 5600 for r in tool.rows), "both allocations are live")
    workload.process.kill()
    workload.process.wait()
    mine = lambda: [r for r in tool.rows if r.get("pid") == workload.pid]
    wait_until(lambda: mine()[-1]["live_bytes"] == 0, "no live memory")
    tool.stop()
    rows = mine()
    equal((sum(r["released"] for r in rows), sum(r["released_bytes"] for r in rows), sum(r["frees"] for r in rows)),
          (2, 5600, 0), "released allocations, released bytes, frees")


@case
def executed():
    """After exec, a process holds no memory of its earlier program, whether the new one uses CUDA or not. Each program
    has its own peak, except in the interval with the exec."""
    script = "alloc a 5000; alloc b 600 fn=cudaMallocHost; sleep 300; exec; alloc c 70; sleep 1500; exec; sleep 1500; end; end"
    workload = Workload(script)
    tool = Tool("-p", workload.pid, "-i", "0.25")
    workload.go().wait()
    tool.finish()
    live = [row["live_bytes"] for row in tool.rows]
    check({5000, 70} <= set(live), f"{live}")
    check(live[-1] == 0 or live[-1] == 70 and "released" in tool.rows[-1], f"{live}")
    equal({row["peak_bytes"] for row in tool.rows if row.get("peak_bytes")}, {5000, 70}, "peaks")
    equal(sum(row["released_bytes"] for row in tool.rows) + max(tool.rows[-1]["live_bytes"], 0), 5670, "released or unfreed bytes")
