# SPDX-License-Identifier: Apache-2.0
"""gpualloc -e: one line per allocation and free, with exact values."""
from collections import Counter

import harness
import memory
from harness import check, equal, wait_until
from memory import case, kind_of
from programs import Tool, Workload
from test_allocs import driver_frees, driver_kinds, runtime_frees, runtime_kinds
from truth import layer_wanted

# Kinds whose lines lack a size, always or sometimes. A call that unmaps several mappings has a line for each mapping.
no_size = {"imported", "multicast", "pool-object"}

failing = """
alloc x 1009; alloc z 77 result=2; alloc z 5000 fn=cudaMallocHost result=2; alloc z 333 fn=cuMemAllocManaged result=999
alloc z 65536 height=16 fn=cuMemAllocPitch_v2 result=2; alloc z 99 runtime_result=2; alloc z 8192 fn=cudaMallocPitch height=2 result=2
alloc z 0 width=10 height=4 format=2 channels=2 fn=cuArrayCreate_v2 result=2; alloc z 4096 fn=cuMemCreate result=2
free x result=1; free x result=400; free x; free x again; badfree 0x1234; badfree 0x77 fn=cudaFree; freenull
alloc y 2003 fn=cudaMallocAsync stream=1; free y result=1 fn=cudaFreeAsync stream=1; free y stream=1
alloc w 3001 fn=cuMemCreate; free w result=1; free w; reserve R 4194304 result=2
"""

threads = """
alloc s 4096; alloc t 5000 fn=cuMemHostAlloc; threads 1; name other; free s; free t; alloc u 600; end; free u
threads 3; repeat 20; alloc v 512; alloc w 4000 fn=cudaMallocAsync stream=1; free v; free w stream=2; end; end
"""


def lines_of(truth, api="driver", failed_only=False):
    out = Counter()
    for call in truth:
        kind = kind_of(call["holding"])
        nothing = call["kind"] == "free" and kind == "unknown" and not call["result"]  # a free of a null pointer
        if not memory.is_memory(call) or not layer_wanted(call, api) or nothing or failed_only and not call["result"]:
            continue
        size = None if kind in no_size or kind == "unknown" else call["bytes"]
        out[call["pid"], call["tid"], call["comm"], call["layer"], call["stream"], call["function"], call["kind"], kind, size,
            call["result"], int(call["recorded"] or kind == "graph")] += call["count"]
    return dict(out)


def lines_in(tool):
    out = Counter()
    for e in tool.events:
        kind = kind_of(e["kind"])
        size = None if kind in no_size or kind == "unknown" else e.get("bytes")
        out[e["pid"], e["tid"], e["comm"], e["layer"] if "layer" in e else None, e["stream"], e["function"], e["operation"], kind,
            size, e["result_code"], e["captured"]] += 1
    return dict(out)


def check_consistent(tool):
    """Checks values that the truth files lack: addresses, lifetimes and the order of lines."""
    last = {}
    for e in tool.events:
        check(e["result_code"] or int(e["address"], 0), f"no address: {e}")
        check(e["operation"] == "free" or "lifetime_ns" not in e, f"a line that is not a free has a lifetime: {e}")
        lasting = e["function"] == "cuMemUnmap" and e["result_code"]  # a failed unmapping removes nothing
        known = e["operation"] == "free" and kind_of(e["kind"]) != "unknown" and not lasting
        check(not known or 0 < e["lifetime_ns"] < 100e9, f"unexpected lifetime of freed memory: {e}")
        check(e["time_ns"] >= last.get(e["tid"], 0), f"out of order, after {last.get(e['tid'])}: {e}")
        equal(e["result"] == "ok", e["result_code"] == 0, f"result of {e}")
        last[e["tid"]] = e["time_ns"]


def same_lines(tool, truth, api="driver", failed_only=False):
    equal(lines_in(tool), lines_of(truth, api, failed_only), f"{tool}")
    check_consistent(tool)


@case(each={"driver": (driver_kinds + driver_frees, "workload-driver"), "runtime": (runtime_kinds + runtime_frees, "workload"),
            "runtime13": (runtime_kinds + runtime_frees, "workload13"), "failing": (failing, "workload"),
            "threads": (threads, "workload")}, asan=True)
def every_value(chosen):
    """Lines equal the truth with --api driver, runtime and both. With both, each call still has only one line."""
    script, form = chosen
    workload = Workload(script, form)
    apis = ("driver", "runtime", "both") if form != "workload-driver" else ("driver", "both")
    tools = {api: Tool("-p", workload.pid, "-e", "--api", api) for api in apis}
    failed = {api: Tool("-p", workload.pid, "-e", "-x", "--api", api) for api in apis}
    workload.go()
    truth = workload.truth()
    for api in apis:
        same_lines(tools[api].finish(), truth, api)
        failed[api].finish()
        equal(without_tracked_values(lines_in(failed[api])), without_tracked_values(lines_of(truth, api, failed_only=True)),
              f"{failed[api]}")
    equal(any(tool.events for tool in failed.values()), script == failing, "lines of failed calls")


def without_tracked_values(lines):
    """With -x, the tool does not track memory, so it does not know which memory a failed call would have freed."""
    out = Counter()
    for key, n in lines.items():
        out[key[:7] + ((None, None) if key[6] == "free" else key[7:9]) + key[9:]] += n
    return dict(out)


@case
def a_free_names_its_allocation():
    """A free has the address, kind and bytes of its allocation; its lifetime is the time between the two lines."""
    script = "alloc a 1009; alloc b 5000 fn=cudaMallocHost; sleep 300; free b; alloc c 700 fn=cuMemAllocAsync stream=1; free a; free c"
    workload = Workload(script)
    tool = Tool("-p", workload.pid, "-e")
    workload.go().wait()
    made = {}
    for e in tool.finish().events:
        if e["operation"] == "alloc":
            made[e["address"]] = e
            continue
        its = made.pop(e["address"])
        equal((e["kind"], e["bytes"]), (its["kind"], its["bytes"]), "freed kind and bytes")
        between = e["time_ns"] - its["time_ns"]
        # The tool reads the clock at the end of each call, and an interrupt may delay this read.
        check(abs(e["lifetime_ns"] - between) <= e["latency_ns"] + its["latency_ns"] + 1e6, f"the lifetime is not {between} ns: {its} {e}")
        check(its["bytes"] == 700 or e["lifetime_ns"] > 300e6, f"the lifetime does not contain the sleep: {e}")
    equal(made, {}, "unfreed allocations")


@case(asan=True)
def unmapping():
    """A call that removes several mappings has a line for each, and one for memory that it frees with its last
    mapping."""
    two = 2097152
    script = f"""reserve R 33554432; alloc h {two} fn=cuMemCreate; alloc g {2 * two} fn=cuMemCreate
    map m handle=h at=R; map n handle=g at=R+{two}; map o handle=h at=R+{3 * two}; free h; free g
    unmap at=R bytes={3 * two} result=1; unmap at=R bytes={3 * two}; unmap o; unreserve R"""
    workload = Workload(script, "workload-driver")
    tool = Tool("-p", workload.pid, "-e")
    workload.go().wait()
    events = tool.finish().events
    base = next(int(e["address"], 0) for e in events if e["kind"] == "reserved")
    got = [(e["kind"], e.get("bytes"), int(e["address"], 0) - base, e["result_code"]) for e in events
           if e["function"] == "cuMemUnmap" and e["kind"] == "mapped"]
    equal(got, [("mapped", None, 0, 1), ("mapped", two, 0, 0), ("mapped", 2 * two, two, 0), ("mapped", two, 3 * two, 0)],
          "mappings")
    equal([(e["function"], e["bytes"]) for e in events if e["kind"] == "vmm" and e["operation"] == "free"],
          [("cuMemUnmap", 2 * two), ("cuMemUnmap", two)], "memory freed with its last mapping")
    check_consistent(tool)


@case(asan=True)
def captured():
    """A captured call has a line marked as captured, with the stream that was passed."""
    workload = Workload("""capture begin stream=1; alloc g 4096 fn=cuMemAllocAsync stream=1; alloc h 9000 fn=cuMemAllocAsync_ptsz stream=1
    free h stream=1; capture end stream=1; alloc b 800 fn=cuMemAllocAsync stream=1; free b stream=2""", "workload-driver")
    tool = Tool("-p", workload.pid, "-e")
    workload.go()
    truth = workload.truth()
    same_lines(tool.finish(), truth)
    equal(sum(e["captured"] for e in tool.events), 3, "captured calls")


@case
def lines_add_up_to_the_table():
    """With 16 threads that free each other's memory, the sums of lines equal the rows and the truth."""
    workload = Workload(driver_kinds + """threads 8; churn 1000 held=100 fail=5
    fn=cuMemAlloc_v2,cuMemAllocAsync,cuMemHostAlloc,cuArrayCreate_v2,cuMemCreate; end; free a; unmap M; free n; free k"""
                        .replace("\n", " "), "workload-driver")
    lines = Tool("-p", workload.pid, "-e", "--ring-mb", 64)
    table = Tool("-p", workload.pid, "--by", "pid,kind", "-r", 0)
    workload.go()
    truth = workload.truth()
    same_lines(lines.finish(), truth)
    memory.same_calls(table.finish(), truth)
    sums = Counter()
    for e in lines.events:
        what = "failures" if e["result_code"] else e["operation"] + "s"
        sums[e["kind"], what] += 1
        if what != "failures":
            sums[e["kind"], "bytes"] += e.get("bytes", 0) * (1 if what == "allocs" else -1)
    rows = Counter()
    for row in table.rows:
        for what in "allocs", "frees", "failures":
            rows[row["kind"], what] += row[what]
        rows[row["kind"], "bytes"] += row["live_bytes"] + row["released_bytes"]
    for counts in sums, rows:
        for key in [key for key, n in counts.items() if not n]:
            del counts[key]
    equal(dict(sums), dict(rows), "sums of lines and of rows")


@case
def stacks_of_lines():
    """A free has its own stack, not that of the allocation. The process must run until the tool has found the names of
    its frames."""
    workload = Workload("alloc a 100; free a; alloc b 5 result=2; wait {dir}/end", "workload-driver")
    tool = Tool("-p", workload.pid, "-e", "-U")
    workload.go()
    wait_until(lambda: len(tool.events) == 3, "three lines")
    (harness.here / "end").touch()
    workload.wait()
    equal(len({tuple(e["frames"]) for e in tool.finish().events}), 2, "number of different stacks")
    for e in tool.events:
        check(any("workload" in frame for frame in e["frames"]), f"no frame of the program: {e}")


@case
def a_line_of_text_each():
    workload = Workload("alloc a 65536; alloc b 500 fn=cudaMallocHost; free a; alloc c 77 result=2; free b")
    tool = Tool("-p", workload.pid, "-e", json=False)
    workload.go().wait()
    head, *lines = tool.finish().text.splitlines()
    equal(head.split()[:4], ["TIME(s)", "PID", "TID", "COMM"], "header")
    names = ["CALL", "KIND", "BYTES", "ADDRESS", "HELD(s)", "LAT(us)", "RESULT", "FUNCTION"]
    equal(head.split()[-len(names):], names, "header")
    equal([("alloc" in line, "free" in line, "device" in line, "pinned" in line, "64.0K" in line, "MEMORY" in line)
           for line in lines], [(True, False, True, False, True, False), (True, False, False, True, False, False),
                                (False, True, True, False, True, False), (True, False, True, False, False, True),
                                (False, True, False, True, False, False)], tool.text)
