# SPDX-License-Identifier: Apache-2.0
"""gpualloc --by: rows of each grouping have the same totals, and show memory that was allocated and not freed."""
from collections import Counter

import harness
import memory
from containers import Cgroup, Name, kubepods
from harness import check, equal
from memory import case, kind_of
from programs import Tool, Workload, trace
from test_cgroups import fresh
from test_alloc_lines import failing
from truth import bucket

# Threads that free each other's memory, two devices, failures, a destroyed context, and unfreed memory.
script = """
alloc a 10001; alloc b 65536 fn=cudaMallocHost; alloc c 4097 fn=cudaMallocManaged; alloc k 0 width=100 height=30 fn=cudaMallocArray
threads 4; churn 300 keep held=60 fail=5 fn=cudaMalloc,cudaMallocHost,cudaMallocAsync; end
device 1; alloc g 5000; alloc g2 333 result=2; device 0; free a; alloc h 2097152 fn=cuMemCreate; alloc o 8192 fn=cuMemCreate location=host
reserve R 4194304; map M handle=h at=R; free h; threads 2; repeat 50; alloc x 512; free x; end; alloc y 600; end; threads 1; free b
end; newcontext; alloc i 7777; destroycontext; badfree 0x4711; sleep 300; free y; sleep 300; unmap M; free g
"""

identity = ("pid", "process_start_ns", "tid", "comm", "kind", "size_bytes", "device", "function", "container_id", "pod_uid",
            "namespace", "cgroup", "result_code", "layer")
sums = ("allocs", "frees", "allocated_bytes", "freed_bytes", "released", "released_bytes", "failures", "out_of_memory",
        "unknown_frees", "captured", "untracked", "unsized")


def live(row):
    """Number and bytes of live allocations of a row, over all kinds."""
    if "kind" in row:
        return row["live_allocations"], row["live_bytes"]
    return row["live_allocations"], sum(row[kind + "_bytes"] for kind in memory.memory)


def counts_as_memory(row):
    return row.get("kind", "device") in memory.memory


def totals(tool):
    """Sums over the whole run. Kinds that are not memory exist only in rows by kind, and are excluded."""
    out = Counter()
    for row in tool.rows:
        for name in sums:
            if counts_as_memory(row) or name in ("failures", "out_of_memory", "unknown_frees", "captured"):
                out[name] += row[name]
    return dict(out)


def check_live_memory(tool):
    """Checks that live memory of every row equals allocations minus frees at the end of each interval. Returns the
    number of intervals."""
    count, size, intervals = Counter(), Counter(), {}
    for row in tool.rows:
        intervals.setdefault(row["time"], []).append(row)
    for time in sorted(intervals):
        now, now_bytes = Counter(), Counter()
        for row in intervals[time]:
            key = tuple(row.get(name) for name in identity) + tuple(row.get("frames", ()))
            count[key] += row["allocs"] - row["frees"] - row["released"]
            size[key] += row["allocated_bytes"] - row["freed_bytes"] - row["released_bytes"]
            now[key] += live(row)[0]
            now_bytes[key] += live(row)[1]
            if row.get("kind") == "graph":
                size[key] = now_bytes[key]
        equal(+now, +count, f"{tool}: allocations held at {time}")
        equal(+now_bytes, +size, f"{tool}: bytes held at {time}")
        check(min([0, *count.values()]) == 0 == min([0, *size.values()]), f"negative live memory: {count} {size}")
    return len(intervals)


views = {"what": ("kind", "size", "kind,size", "pid,kind,device", "device", "api"),
         "who": ("thread", "comm", "container", "pod", "namespace", "cgroup"),
         "both": ("stack", "comm,api,size", "thread,kind,stack", "container,kind",
                  "kind,size,stack,device,api,pid,comm,thread,container,pod,namespace,cgroup")}


@case(each=views, asan=True)
def rows_add_up(views):
    name = Name()
    group = Cgroup("v2", fresh("/") + kubepods(name))
    workload = Workload(script, preexec=group.join)
    ways = [[], *(["--by", view] for view in views)]
    tools = [Tool("-p", workload.pid, "-i", "0.2", "-r", 0, *options) for options in ways]
    kinds = Tool("-p", workload.pid, "--by", "pid,kind")
    workload.go()
    truth = workload.truth()
    memory.same_calls(kinds.finish(), truth)
    memory.same_unfreed(kinds, workload)
    for tool in tools:
        equal(totals(tool.finish()), totals(kinds), f"{tool} and {kinds}")
        check(check_live_memory(tool) >= 3, "fewer than 3 intervals")
    keys = {"api": "function", "size": "size_bytes", "thread": "tid", "container": "container_id", "pod": "pod_uid", "stack": "frames"}
    for view, tool in zip(views, tools[1:]):
        for what in view.split(","):
            key = keys.get(what, what)
            check(what == "namespace" or any(key in row for row in tool.rows), f"no row of {tool} has {key}")
        if "container" in view:
            equal({row.get("container_id") for row in tool.rows}, {name.id}, "containers")


@case(each={api: api for api in ("runtime", "both")})
def rows_add_up_at(api):
    """With --api both, memory belongs to the layer that allocated it, even if the other layer frees it."""
    workload = Workload("alloc a 1000; alloc b 2000 fn=cuMemAlloc_v2; free a fn=cuMemFree_v2; free b fn=cudaFree\n" * 20 + script)
    tools = [Tool("-p", workload.pid, "--api", api, "-i", "0.2", "-r", 0, "--by", by) for by in ("pid,kind", "api,thread")]
    workload.go()
    truth = workload.truth()
    for tool in tools:
        tool.finish()
        check_live_memory(tool) if api == "both" else None
    memory.same_calls(tools[0], truth, api=api) if api == "both" else None
    equal(totals(tools[1]), totals(tools[0]), f"{tools[1]} and {tools[0]}")


@case
def frees_count_for_the_allocation():
    """In rows by thread, function or stack, a free counts in the row of its allocation, whichever thread frees."""
    workload = Workload("""alloc a 1000; alloc b 2000 fn=cudaMallocHost; alloc c 4000 fn=cuMemAllocAsync
                        threads 1; free a; free b; free c; alloc d 700; alloc e 70; end; free d""")
    tool = Tool("-p", workload.pid, "--by", "thread,api")
    workload.go()
    truth = workload.truth()
    mine, other = workload.pid, next(call["tid"] for call in truth if call["tid"] != workload.pid)
    rows = {(row["tid"], row["function"]): (row["allocs"], row["frees"], sum(live(row)), row["allocated_bytes"], row["freed_bytes"])
            for row in tool.finish().rows}
    equal(rows, {(mine, "cuMemAlloc_v2"): (1, 1, 0, 1000, 1000), (mine, "cuMemHostAlloc"): (1, 1, 0, 2000, 2000),
                 (mine, "cuMemAllocAsync"): (1, 1, 0, 4000, 4000), (other, "cuMemAlloc_v2"): (2, 1, 71, 770, 700)}, "rows")


@case
def devices():
    """Memory counts for the device of the allocating thread's context, physical memory for the device named in the
    call."""
    tool, _ = trace("device 0; alloc a 1000; device 1; alloc b 2000; alloc c 3000 fn=cudaMallocHost; device 0; free b; alloc d 50",
                    "--by", "device")
    got = {row.get("device"): (row["allocs"], row["frees"], row["live_bytes"], row["pinned_bytes"]) for row in tool.rows}
    equal(got, {0: (2, 0, 1050, 0), 1: (2, 1, 0, 3000)}, "rows by device")


@case
def sizes():
    """Rows by requested size, rounded down to a power of two."""
    tool, _ = trace("alloc a 1; alloc b 1023; alloc c 1024; alloc d 2047; alloc e 2048; free d; alloc f 1048576; alloc z 1500 result=2",
                    "--by", "size")
    got = {row.get("size_bytes"): (row["allocs"], row["frees"], row["live_bytes"], row["failures"]) for row in tool.rows}
    equal(got, {1: (1, 0, 1, 0), 512: (1, 0, 1023, 0), 1024: (2, 1, 1024, 1), 2048: (1, 0, 2048, 0), 1048576: (1, 0, 1048576, 0)},
          "rows by size")


# --- histograms ------------------------------------------------------------------------------------------------------

def histogram(tool, *fields):
    out = Counter()
    for record in tool.of_type("hist"):
        equal(record["total"], sum(b["count"] for b in record["buckets"]), "total")
        for b in record["buckets"]:
            out[tuple(record[field] for field in fields) + ((b["low"], b["high"]),)] += b["count"]
    return dict(out)


physical = "reserve Q 33554432; repeat 3; alloc p 2097152 fn=cuMemCreate; map m handle=p at=Q; free p; unmap m; end\n"


@case(each={"plain": script, "failing": failing, "physical": physical}, asan=True)
def histograms(text):
    """Sizes of allocations, durations of all calls, and lifetimes of freed memory, each counted once."""
    workload = Workload(text)
    tools = {(what, *by): Tool("-p", workload.pid, "-H", what, "-r", 0, *(["--by", ",".join(by)] if by else []))
             for what in ("size", "latency", "lifetime") for by in ((), ("kind",))}
    workload.go()
    truth = [call for call in workload.truth() if memory.is_memory(call) and call["layer"] == "driver"]
    done = [call for call in truth if not call["result"] and call["holding"]]
    for tool in tools.values():
        tool.finish()
    sized, freed, calls = Counter(), Counter(), Counter()
    for call in done:
        kind = kind_of(call["holding"])
        if call["kind"] == "alloc":
            sized[kind, bucket(call["bytes"])] += call["count"]
        elif kind != "mapped" or "Unmap" in call["function"]:  # in this script, each unmapping removes one mapping
            freed[kind] += call["count"]
    for call in truth:
        of_null = call["kind"] == "free" and not call["holding"] and not call["result"]
        calls[call["kind"]] += call["count"] * (not call["implied"] and not of_null)
    equal(histogram(tools["size", "kind"], "kind"), dict(sized), "sizes by kind")
    in_all = Counter()
    for (kind, each), n in sized.items():
        in_all[each,] += n if kind in memory.memory else 0
    equal(histogram(tools["size",]), dict(+in_all), "sizes")
    got = Counter()
    for key, n in histogram(tools["latency",], "operation").items():
        got[key[0]] += n
    equal(dict(got), dict(+calls), "calls with a duration")
    got = Counter()
    for key, n in histogram(tools["lifetime", "kind"], "kind").items():
        got[key[0]] += n
    equal(dict(got), dict(freed), "lifetimes by kind")
    equal({tool.of_type("hist")[0]["unit"] for tool in tools.values()}, {"bytes", "usecs"}, "units")


@case
def lifetimes():
    """A lifetime lasts from the return of the allocation to the free, by any thread. Unfreed memory and failed calls
    have none."""
    tool, _ = trace("alloc a 100; alloc b 200 fn=cudaMallocHost; alloc c 300; sleep 400; free a; sleep 400; free b result=1; threads 1\n"
                    "free b; end; repeat 5; alloc d 10 fn=cudaMallocManaged; free d; end", "-H", "lifetime", "--by", "kind", "-m")
    got = histogram(tool, "kind")
    equal({record["kind"]: record["total"] for record in tool.of_type("hist")}, {"device": 1, "pinned": 1, "managed": 5}, "lifetimes")
    for kind, slept in ("device", 400), ("pinned", 800):
        (_, (low, high)), = (key for key in got if key[0] == kind)
        check(high >= slept, f"{kind} was held for {low} to {high} ms, but the script sleeps {slept} ms")


@case(asan=True)
def histograms_of_failures():
    """-x: one histogram per result."""
    script = "alloc a 100; alloc b 500 result=2; alloc c 1000 result=2; alloc d 2000 result=999; free a result=1; free a"
    workload = Workload(script)
    sizes, latencies = (Tool("-p", workload.pid, "-x", "-H", what) for what in ("size", "latency"))
    table = Tool("-p", workload.pid, "-x", "-H", "size", json=False)
    workload.go().wait()
    got = {key: n for key, n in histogram(sizes.finish(), "operation", "result", "result_code").items()}
    equal(got, {("alloc", "CUDA_ERROR_OUT_OF_MEMORY", 2, bucket(500)): 1, ("alloc", "CUDA_ERROR_OUT_OF_MEMORY", 2, bucket(1000)): 1,
                ("alloc", "CUDA_ERROR_UNKNOWN", 999, bucket(2000)): 1}, "sizes")
    got = {(r["operation"], r["result_code"]): r["total"] for r in latencies.finish().of_type("hist")}
    equal(got, {("alloc", 2): 2, ("alloc", 999): 1, ("free", 1): 1}, "durations")
    check("result = CUDA_ERROR_OUT_OF_MEMORY" in table.finish().text, table.text)
