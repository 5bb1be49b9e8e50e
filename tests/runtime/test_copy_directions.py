# SPDX-License-Identifier: Apache-2.0
"""Directions of copies whose function does not name one. The tool derives them from traced allocations and from
mappings of host memory. If the source or destination is unknown, the direction is unknown, never wrong."""
import json
import subprocess
from collections import Counter

import harness
import leftovers
import system
from copies import case, count, expected, same, trace
from harness import check, equal, wait_until
from programs import Tool, Workload

# Names and allocation functions, by where the memory is. Sizes are odd, so that ranges end within a page.
allocations = {
    "host": [("host", "host"), ("mmap", "mmap")],
    "pinned": [("pa", "cuMemHostAlloc"), ("pb", "cuMemAllocHost_v2"), ("pr", "cuMemHostRegister_v2"),
               ("pc", "cudaMallocHost"), ("pd", "cudaHostAlloc"), ("pe", "cudaHostRegister")],
    "device": [("da", "cuMemAlloc_v2"), ("db", "cuMemAllocPitch_v2 width=1537 height=7"), ("dc", "cuMemAllocAsync stream=1"),
               ("dd", "cuMemAllocFromPoolAsync"), ("de", "cudaMalloc"), ("df", "cudaMallocPitch width=1537 height=7"),
               ("dg", "cudaMallocAsync"), ("dh", "cudaMallocFromPoolAsync stream=1"), ("di", "cuMemAllocAsync_ptsz"),
               ("dv", "cuMemMap")],
    "managed": [("ma", "cuMemAllocManaged"), ("mb", "cudaMallocManaged")],
}
size = 1537 * 7
on_device = {"cuMemMap": 1 << 21}


def alloc(name, function):
    return f"alloc {name} {on_device.get(function, size)} fn={function}"


all_allocations = "\n".join(alloc(name, function) for group in allocations.values() for name, function in group) + "\n"
names = [name for group in allocations.values() for name, _ in group]

by_address = ("cuMemcpy", "cuMemcpyAsync", "cuMemcpyBatchAsync")


def row_of(function, source, destination, number):
    size = f"sizes={number}" if "Batch" in function else f"bytes={number}"
    return f"copy {number % 7 + 1} fn={function} src={source} dst={destination} {size}"


@case(each={function: function for function in by_address + ("cudaMemcpy",)}, asan=True)
def every_pair(function):
    """Copies between all kinds of memory. The direction is unknown if the source or destination is managed memory."""
    steps = [row_of(function, a, b, 100 + i) for i, (a, b) in enumerate((a, b) for a in names for b in names)]
    if function == "cudaMemcpy":
        steps = [f"{step} kind=4" for step in steps]
    workload = Workload(all_allocations + "\n".join(steps))
    tools = {api: Tool("-p", workload.pid, "--by", "kind,memory", "--api", api)
             for api in ({"driver", "runtime"} if function == "cudaMemcpy" else {"driver"})}
    workload.go()
    truth = workload.truth()
    for api, tool in tools.items():
        same(tool.finish(), truth, ("kind", "source", "destination"), api)


@case
def unified_types_of_structures():
    """If the memory type is 4 (unified), the tool derives the direction from the address. Other types state the
    direction, whatever the address."""
    functions = ("cuMemcpy2D_v2", "cuMemcpy2DAsync_v2", "cuMemcpy2DUnaligned_v2", "cuMemcpy3D_v2", "cuMemcpy3DAsync_v2")
    some = ("host", "mmap", "pa", "pr", "da", "dv", "ma")
    steps = [f"copy {i % 5 + 1} fn={f} types=4,4 src={a} dst={b} width={i + 1} height=3" for i, (f, a, b) in
             enumerate((f, a, b) for f in functions for a in some for b in some)]
    steps += [f"copy {i % 5 + 1} fn={f} types={s},{d} src={a} dst={b} width={i + 1} height=3"
              for i, (f, (s, a), (d, b)) in enumerate(
                  (f, s, d) for f in functions for s in ((1, "host"), (1, "pa"), (2, "da"), (4, "da"), (4, "pa"))
                  for d in ((1, "mmap"), (2, "dc"), (4, "pr"), (4, "ma")))]
    tool, truth = trace(all_allocations + "\n".join(steps), "--by", "api,kind,memory")
    same(tool, truth, ("function", "kind", "source", "destination"))


@case
def arrays():
    script = all_allocations + "alloc a 4096 fn=array; alloc b 4096 fn=array\n"
    script += "\n".join(f"copy {n} fn={f} src={a} dst={b} width=8 height=3" for n, (f, a, b) in enumerate(
        (f, a, b) for f in ("cuMemcpy2D_v2", "cuMemcpy3D_v2", "cuMemcpy3DBatchAsync") for a, b in
        (("a", "b"), ("a", "host"), ("pa", "a"), ("da", "b"), ("a", "dv"), ("a", "ma"))))
    script += ("\ncopy 3 fn=cudaMemcpy2DToArray src=host dst=a kind=4; copy 5 fn=cudaMemcpyFromArray src=a dst=da kind=4\n"
               "copy 7 fn=cudaMemcpyArrayToArray src=a dst=b kind=4; copy 9 fn=cudaMemcpyToSymbol src=da kind=4\n"
               "copy 11 fn=cudaMemcpyFromSymbolAsync dst=pa kind=4; copy 13 fn=cudaMemcpyFromSymbol dst=host kind=2")
    workload = Workload(script)
    tools = {api: Tool("-p", workload.pid, "--by", "api,kind,memory", "--api", api) for api in ("driver", "runtime")}
    workload.go()
    truth = workload.truth()
    same(tools["runtime"].finish(), truth, ("function", "kind", "source", "destination"), "runtime")
    # The stand-in's runtime passes addresses of host variables; real ones pass device addresses.
    tools["driver"].finish()
    symbols = [call for call in truth if "Symbol" in call["function"]]
    nested = {"cuMemcpy", "cuMemcpyAsync", "cuMemcpyDtoH_v2"}
    want = expected([call for call in truth if call["function"] not in nested],
                    ("function", "kind", "source", "destination"))
    got = {key: n for key, n in count(tools["driver"], ("function", "kind", "source", "destination")).items()
           if key[0] not in nested}
    equal(got, want, f"{tools['driver']}")
    check(symbols, "no copy of a symbol")


@case
def up_to_the_last_byte():
    """An allocation includes its first and last byte, but not the byte after the last."""
    script = "alloc host 4096 fn=host; alloc d 10759; alloc m 2097152 fn=cuMemMap; alloc p 10759 fn=cuMemHostAlloc\n"
    n = 0
    for name, last in (("d", 10758), ("m", 2097151), ("p", 10758)):
        for offset in (0, 1, last // 2, last, last + 1):
            n += 1
            script += f"copy {n} fn=cuMemcpy dst={name}+{offset} src=host bytes={n}; "
    tool, _ = trace(script, "--by", "kind,memory,pid")
    got = Counter()
    for row in tool.rows:
        got[row["kind"], row["destination"]] += row["copies"]
    # The stand-in's pinned memory lies in its heap, so the address after it is ordinary heap memory (copy 15).
    equal(dict(got), {("H2D", "device"): 1 + 2 + 3 + 4 + 6 + 7 + 8 + 9, ("unknown", "unknown"): 5 + 10,
                      ("H2H", "pinned"): 11 + 12 + 13 + 14, ("H2H", "host"): 15}, f"{tool}")


@case
def memory_from_before_tracing():
    """Memory allocated before tracing: device memory is unknown; host memory is found in the mappings."""
    before = Workload(all_allocations + "touch {dir}/ready; wait {dir}/end\n" + "\n".join(
        f"copy {i + 1} fn=cuMemcpy src={name} dst=host" for i, name in enumerate(names)))
    before.go()
    wait_until((harness.here / "ready").exists, "memory is allocated")
    tool = Tool("-p", before.pid, "--by", "kind,memory")
    (harness.here / "end").touch()
    truth = before.truth()
    tool.finish()
    got = Counter({(row["kind"], row["source"]): row["copies"] for row in tool.rows})
    want = Counter()
    for call in truth:
        if call["kind"] == "copy":
            # The stand-in's pinned and managed memory is part of its heap, so it looks like any host memory.
            host = call["source"] in ("host", "pinned", "registered", "managed")
            want["H2H" if host else "unknown", "host" if host else "unknown"] += call["count"]
    equal(dict(got), dict(want), f"{tool}")


@case
def freed_memory_is_unknown():
    """Copies from and to freed memory have an unknown direction. The script addresses freed memory by an offset from
    the allocation before it."""
    script = ("alloc host 4096 fn=host; alloc d 100000; alloc k 8192; copy 3 fn=cuMemcpy src=host dst=d+100352\n"
              "free k; copy 5 fn=cuMemcpy src=host dst=d+100352; copy 7 fn=cuMemcpy src=d dst=host")
    tool, _ = trace(script, "--by", "kind", form="workload-driver")
    equal({row["kind"]: row["copies"] for row in tool.rows}, {"H2D": 3, "unknown": 5, "D2H": 7}, f"{tool}")


@case
def tagged_addresses():
    """An address is matched to its allocation whatever its tag bits are (top byte ignore)."""
    system.need_ignored_bits()
    script = ("alloc host 4096 fn=host tag=9; alloc d 100000 tag=3; alloc p 8192 fn=cuMemHostAlloc tag=128\n"
              "copy 3 fn=cuMemcpy src=host dst=d+99999; copy 5 fn=cuMemcpy src=d dst=p; copy 7 fn=cuMemcpy src=p+8191 dst=d; free p")
    tool, truth = trace(script, "--by", "kind,memory", form="workload-driver")
    same(tool, truth, ("kind", "source", "destination"))


@case
def a_failed_call_changes_nothing():
    """After a failed free, the memory is still known. A failed allocation adds no memory, whatever its output pointer
    contains."""
    script = ("alloc host 4096 fn=host; alloc d 100000; free d result=1; copy 5 fn=cuMemcpy src=host dst=d+99999\n"
              "alloc p 8192 fn=cuMemHostAlloc; free p result=700; copy 7 fn=cuMemcpy src=p+8191 dst=d\n"
              "alloc r 8192 fn=cuMemHostRegister_v2; free r result=713; copy 9 fn=cuMemcpy src=r dst=d\n"
              "alloc x 4096 result=2; alloc y 4096; copy 11 fn=cuMemcpy src=host dst=y\n"
              "free d; free y result=1; copy 13 fn=cuMemcpy src=y dst=host")
    for form in "workload", "workload-driver":
        tool, truth = trace(script, "--by", "kind,memory", form=form)
        same(tool, truth, ("kind", "source", "destination"))


@case(each={"reset": "workload", "reset_of_the_driver": "workload-driver"})
def a_reset_forgets_everything(form):
    """After a device reset, the tool forgets all memory of the context; later allocations are known again."""
    script = ("alloc host 4096 fn=host; alloc d 1000; alloc p 4096 fn=cuMemHostAlloc; copy 3 fn=cuMemcpy src=p dst=d; reset\n"
              "alloc e 4096; copy 5 fn=cuMemcpy src=host dst=e; copy 7 fn=cuMemcpy src=e dst=host\n"
              "alloc q 4096 fn=cuMemHostAlloc; copy 9 fn=cuMemcpy src=q dst=e")
    tool, truth = trace(script, "--by", "kind,memory", form=form)
    same(tool, truth, ("kind", "source", "destination"))


def entries(tool, name):
    """Number of entries in a map of the tool."""
    number, = (m["id"] for m in leftovers.show("map") if m["id"] in leftovers.ids_held(tool.pid, "map_id")
               and m.get("name", "") == name)
    return len(json.loads(subprocess.run([leftovers.bpftool(), "--json", "map", "dump", "id", str(number)],
                                         capture_output=True, text=True).stdout))


@case
def resets_free_table_entries():
    """After any number of resets, the tables hold only existing memory."""
    workload = Workload("repeat 20; repeat 50; alloc a 1000; end; reset; launch scale 1; end; alloc b 1024\n"
                        "touch {dir}/there; wait {dir}/end", "workload-driver")
    tool = Tool("-p", workload.pid)
    workload.go()
    wait_until((harness.here / "there").exists, "the workload has allocated")
    for name in "allocations", "ranges":
        wait_until(lambda: entries(tool, name) == 1, f"one entry in {name}", 5)
    (harness.here / "end").touch()
    workload.wait()
    tool.finish()


@case
def a_destroyed_context_forgets_all():
    """The tool does not know which memory belonged to the context, so all memory of the process is unknown
    afterwards."""
    script = ("alloc host 4096 fn=host; alloc d 1000; copy 3 fn=cuMemcpy src=host dst=d; newcontext; alloc e 1000\n"
              "copy 5 fn=cuMemcpy src=d dst=e; destroycontext; copy 7 fn=cuMemcpy src=host dst=d; alloc f 1000\n"
              "copy 9 fn=cuMemcpy src=f dst=host; free d; alloc g 500; copy 11 fn=cuMemcpy src=g dst=f")
    tool, _ = trace(script, "--by", "kind", form="workload-driver")
    got = {row["kind"]: row["copies"] for row in tool.rows}
    equal(got, {"H2D": 3, "D2D": 5 + 11, "unknown": 7, "D2H": 9}, f"{tool}")


@case(asan=True)
def reused_addresses():
    """The stand-in's pinned memory is part of its heap: once freed, its address is reused for ordinary memory."""
    script = ("alloc d 1000\nrepeat 50; alloc p 3000 fn=cuMemHostAlloc; copy 1 fn=cuMemcpy src=p dst=d bytes=10; free p\n"
              "alloc h 3000 fn=host; copy 1 fn=cuMemcpy src=h dst=d bytes=20; free h\n"
              "alloc m 3000 fn=cuMemAllocManaged; copy 1 fn=cuMemcpy src=m dst=d bytes=30; free m; end")
    tool, _ = trace(script, "-e", form="workload-driver")
    got = Counter((event["source"], event["kind"], event["bytes"]) for event in tool.events)
    equal(dict(got), {("pinned", "H2D", 10): 50, ("host", "H2D", 20): 50, ("managed", "unknown", 30): 50}, f"{tool}")
    again = {event["source_address"] for event in tool.events if event["bytes"] == 10}
    check(again & {event["source_address"] for event in tool.events if event["bytes"] == 20}, "no address was reused")


@case
def freed_by_another_thread():
    script = ("alloc host 4096 fn=host; alloc d 4096; alloc p 4096 fn=cuMemHostAlloc\n"
              "threads 1; copy 3 fn=cuMemcpy src=p dst=d; free p; end; alloc h 4096 fn=host; alloc q 4096 fn=host\n"
              "copy 5 fn=cuMemcpy src=h dst=d; copy 7 fn=cuMemcpy src=q dst=d; threads 2; copy 11 fn=cuMemcpy src=d dst=host; end")
    tool, truth = trace(script, "--by", "kind,memory", form="workload-driver")
    same(tool, truth, ("kind", "source", "destination"))


@case(each={"entry": [], "latency": ["-l"]}, asan=True, timeout=150, gpu=True)
def eight_threads_that_allocate(mode):
    """All threads share the names in the script. So they copy and free each other's memory, and other threads reuse the
    freed addresses."""
    copies = ("copy 3 fn=cuMemcpy src=p dst=d; copy 2 fn=cuMemcpyAsync src=d dst=h; copy 1 fn=cuMemcpy src=m dst=d\n"
              "copy 2 fn=cuMemcpyBatchAsync src=h dst=d sizes=7,8,9; copy 1 fn=cuMemcpy src=h dst=p\n")
    made = "alloc p 3001 fn=cuMemHostAlloc; alloc d 5003; alloc h 4096 fn=cuMemAllocHost_v2; alloc m 3007 fn=cuMemAllocManaged\n"
    churn = ("alloc x 3001 fn=cuMemHostAlloc; alloc y 70001; alloc z 200000 fn=mmap; alloc r 9000 fn=cuMemHostRegister_v2\n",
             "free x; free y; free z; free r\n")
    tool, truth = trace(f"repeat 3; threads 8; repeat 40\n{churn[0]}{made}{churn[1]}{copies}end; end\n"
                        "threads 8; repeat 40; free p; free d; free h; free m; end; end; end",
                        "--by", "kind,memory,thread", "-r", 0, *mode, form="workload-driver")
    same(tool, truth, ("tid", "kind", "source", "destination"))


@case
def eight_threads_that_map_memory():
    """While one thread maps memory, the tool cannot look up the host memory of another thread's copy. The direction of
    that copy is unknown, never wrong."""
    tool, truth = trace("alloc d 4096\nthreads 8; repeat 200; alloc z 200000 fn=mmap; alloc h 4096 fn=host; copy 3 fn=cuMemcpy src=h dst=d\n"
                        "free h; free z; end; end", "--by", "kind", form="workload-driver")
    rows = {row["kind"]: row["copies"] for row in tool.rows}
    equal(set(rows) - {"unknown"}, {"H2D"}, "directions")
    equal(sum(rows.values()), sum(call["count"] for call in truth if call["kind"] == "copy"), "copies")


@case(alone=True)
def a_child_does_not_inherit():
    """A forked child does not inherit device memory: addresses of its parent's device memory are unknown, and other
    addresses are host memory."""
    script = ("alloc host 4096 fn=host; alloc d 4096; alloc p 4096 fn=cuMemHostAlloc; copy 3 fn=cuMemcpy src=p dst=d\n"
              "fork; copy 5 fn=cuMemcpy src=host dst=d; copy 7 fn=cuMemcpy src=p dst=host; end; copy 11 fn=cuMemcpy src=p dst=d")
    workload = Workload(script, "workload-driver")
    tool = Tool("--by", "pid,kind,memory")
    workload.go()
    truth = workload.truth()
    tool.stop()
    pids = {call["pid"] for call in truth}
    child, = pids - {workload.pid}
    rows = {(row["pid"], row["kind"], row["source"], row["destination"]): row["copies"] for row in tool.rows
            if row["pid"] in pids}
    equal(rows, {(workload.pid, "H2D", "pinned", "device"): 14, (child, "unknown", "host", "unknown"): 5,
                 (child, "H2H", "host", "host"): 7}, f"{tool}")


@case
def physical_memory_of_the_host():
    script = ("alloc v 2097152 fn=cuMemMap location=host; alloc w 2097152 fn=cuMemMap; alloc host 4096 fn=host\n"
              "copy 3 fn=cuMemcpy src=v dst=w; copy 5 fn=cuMemcpy src=w dst=host; copy 7 fn=cuMemcpy src=host dst=v\n"
              "free w; copy 9 fn=cuMemcpy src=v dst=host; free v")
    tool, truth = trace(script, "--by", "kind", form="workload-driver")
    same(tool, truth, ("kind",))


@case(alone=True)
def pageable_only_of_processes_seen_whole():
    """Processes that started before the tool may have pinned memory that the tool does not know. For processes traced
    from their first call, other host memory is pageable."""
    script = ("alloc host 4096 fn=host; alloc d 4096; alloc p 4096 fn=cuMemHostAlloc\n"
              "copy 3 fn=cuMemcpyHtoD_v2 src=host dst=d; copy 5 fn=cuMemcpyHtoD_v2 src=p dst=d; copy 7 fn=cuMemcpy src=d dst=host")
    known = Workload(script, "workload-driver")
    tool = Tool("--by", "pid,memory")
    wait_until(lambda: tool.of_type("attached"), "the tool has attached")
    later = Workload("sleep 300\n" + script, "workload-driver", warm=False)
    later.wait()
    known.go().wait()
    tool.stop()
    def rows(pid):
        return {(row["source"], row["destination"]): row["copies"] for row in tool.rows if row["pid"] == pid}
    equal(rows(known.pid), {("host", "device"): 3, ("pinned", "device"): 5, ("device", "host"): 7}, "known before")
    equal(rows(later.pid), {("pageable", "device"): 3, ("pinned", "device"): 5, ("device", "pageable"): 7}, "later")


@case
def ranges_of_any_shape():
    """After thousands of allocations of odd sizes, half of them freed, live ranges are exact to the byte."""
    script = "alloc host 4096 fn=host\n"
    script += "\n".join(f"alloc d{i} {1 + i * 7919 % 1_000_003}" for i in range(1500)) + "\n"
    script += "\n".join(f"free d{i}" for i in range(0, 1500, 2)) + "\n"
    script += "\n".join(f"copy 1 fn=cuMemcpy src=host dst=d{i}+{i * 7919 % 1_000_003} bytes=1" for i in range(1, 1500, 2))
    tool, truth = trace(script, "--by", "kind", form="workload-driver")
    same(tool, truth, ("kind",))
