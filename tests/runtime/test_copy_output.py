# SPDX-License-Identifier: Apache-2.0
"""cudamemcpy: every mode, histogram, filter and way of attaching, and rejected options."""
import json
import math
import re
import subprocess
from collections import Counter

import harness
import leftovers
import system
from copies import callable_functions, case, expected, is_copy, field_of, same, sizes, steps, trace
from harness import all_but, check, equal, wait_until
from programs import Tool, Workload, check_record_types
from test_refusals import refused
from truth import bucket, layer_wanted

script = """
alloc d 200000; alloc h 200000 fn=host; alloc p 200000 fn=cuMemHostAlloc
copy 101 src=h dst=d bytes=1009; copy 53 fn=cuMemcpyAsync src=d dst=p bytes=70001 stream=1; copy 7 result=719 bytes=99
copy 11 fn=cudaMemsetAsync bytes=65536 stream=2; copy 5 fn=cuMemPrefetchAsync bytes=4096; copy 3 runtime_result=35
copy 13 fn=cuMemcpyBatchAsync src=p dst=d sizes=10,20000,70000; copy 2 fn=cuMemcpyDtoD_v2 bytes=0
threads 2; copy 17 fn=cuMemcpyDtoH_v2 src=d dst=p bytes=1000003; end; device 1; copy 3 bytes=33
"""

modes = {
    "default": [], "timestamps": ["-T"], "latency": ["-l"], "failed": ["-x"], "stacks": ["-U"], "stacks_latency": ["-U", "-l"],
    "stacks_memory": ["-U", "-l", "--by", "memory"], "events": ["-e"], "events_all": ["-e", "-l", "-U"],
    "events_both": ["-e", "-l", "--api", "both"], "failed_events": ["-e", "-x"], "both": ["--api", "both"],
    "both_memory": ["--api", "both", "--by", "memory,kind,api"], "runtime": ["--api", "runtime"],
    "runtime_memory": ["--api", "runtime", "-l", "--by", "memory"], "rows": ["-r", "1"], "sorted": ["-s", "copies"],
    "extra": ["-X"], **{f"by_{what}": ["--by", what] for what in (
        "kind", "memory", "form", "api", "pid", "comm", "thread", "stream", "device", "container", "pod", "namespace",
        "kind,memory,form,api,pid,comm,thread,stream,device,container,pod")},
    **{f"hist_{what}": ["-H", what] for what in ("size", "latency", "rate")},
    "hist_memory": ["-H", "size", "--by", "memory,form"], "hist_per_thread": ["-H", "latency", "-L", "-N"],
    "hist_failed": ["-H", "size", "-x"],
}

row_keys = {"type", "time", "interval_ns", "pid", "ns_pid", "process_start_ns", "comm", "processes", "cgroup", "kind", "copies",
            "vendor", "copies_per_second", "calls", "captured", "bytes", "bytes_per_second", "average_bytes", "unsized", "synchronous",
            "small"}


@case(each=modes, asan=True, long=all_but(modes, "default", "stacks_memory", "failed_events", "both_memory", "runtime_memory",
                                           "hist_rate"))
def every_mode(mode):
    """The BPF programs of each mode load. Each line is a JSON object with a type, and there are lines between the first
    and the last."""
    workload = Workload(script)
    tool = Tool("-p", workload.pid, *mode)
    workload.go()
    truth = workload.truth()
    tool.finish()
    kind = check_record_types(tool, mode, "cudamemcpy")
    start, attached = tool.records[:2]
    check(attached["functions"] > 50, f"too few functions attached: {attached}")
    if kind == "row" and mode != ["-x"]:
        api = mode[mode.index("--api") + 1] if "--api" in mode else "driver"
        same(tool, truth, (), api)
    if mode == []:
        for row in tool.rows:
            equal(set(row) - {"container", "pod", "unit", "command_line"}, row_keys, "keys of a row")
    if mode == ["-x"]:
        equal(sum(row["errors"] for row in tool.rows), 7, "errors")


@case
def derived_values():
    tool, truth = trace(script)
    for row in tool.rows:
        seconds = row["interval_ns"] / 1e9
        for what in "copies", "bytes":
            rate = row[what] / seconds
            check(math.isclose(row[f"{what}_per_second"], rate, rel_tol=1e-3, abs_tol=1e-3), f"{what} per second: {row}")
        equal(row["average_bytes"], row["bytes"] // (row["copies"] - row["unsized"]), "average")
    equal([row["bytes"] for row in tool.rows], sorted((row["bytes"] for row in tool.rows), reverse=True), "order")


def buckets(record):
    return {(b["low"], b["high"]): b["count"] for b in record["buckets"]}


@case(each={"driver": "driver", "runtime": "runtime", "both": "both"})
def sizes_in_buckets(api):
    """-H size, by direction: each copy with a known size is in the right bucket."""
    more = "copy 3 fn=cuMemcpy3DBatchAsync sizes=100,200,3 height=7; copy 5 fn=cuMemsetD32_v2 bytes=40\n"
    workload = Workload(script + more + "copy 2 fn=cuMemcpyHtoD_v2 bytes=281474976710655")
    tool = Tool("-p", workload.pid, "-H", "size", "--api", api)
    workload.go()
    want = Counter()
    for call in workload.truth():
        if is_copy(call) and layer_wanted(call, api):
            for size in sizes(call):
                want[(field_of(call, "kind"), *([call["layer"]] if api == "both" else [])), bucket(size)] += call["count"]
    got = Counter()
    for record in tool.finish().of_type("hist"):
        equal((record["measure"], record["unit"]), ("size", "bytes"), "measure and unit")
        equal(record["total"], sum(buckets(record).values()), "total")
        for each, n in buckets(record).items():
            got[(record["kind"], *([record["layer"]] if api == "both" else [])), each] += n
    equal(dict(got), dict(want), f"{tool}")


@case
def rates_of_synchronous_copies():
    """-H rate excludes asynchronous copies (which return early), memsets, failed copies, and copies without a size."""
    tool, truth = trace("copy 101 fn=cuMemcpyHtoD_v2 bytes=3000000 delay_us=300; copy 50 fn=cuMemcpyHtoDAsync_v2 bytes=100\n"
                        "copy 7 fn=cuMemcpyHtoD_v2 result=700 bytes=1000; copy 9 fn=cuMemsetD8_v2 bytes=1000\n"
                        "copy 3 fn=cuMemcpyBatchAsync sizes=100,200; copy 5 fn=cuMemcpyDtoH_v2 bytes=30000 delay_us=300",
                        "-H", "rate", timed=True)
    got = {record["kind"]: record for record in tool.of_type("hist")}
    equal({kind: record["total"] for kind, record in got.items()}, {"H2D": 101, "D2H": 5}, "copies with a rate")
    equal({record["unit"] for record in got.values()}, {"MB/s"}, "unit")
    # 3,000,000 bytes in at least 300 us are at most 10,000 MB/s.
    check(1000 <= got["H2D"]["p50"] <= 10_000 and max(b["low"] for b in got["H2D"]["buckets"]) <= 10_000, f"{got['H2D']}")
    check(10 <= got["D2H"]["p50"] <= 100, f"{got['D2H']}")


@case
def latency_of_each_form():
    """Synchronous and asynchronous copies have separate rows, with the duration of the driver's call."""
    tool, truth = trace("copy 101 fn=cuMemcpyHtoD_v2 delay_us=500; copy 1009 fn=cuMemcpyHtoDAsync_v2", "-l")
    rows = {row["form"]: row for row in tool.rows}
    equal({form: row["copies"] for form, row in rows.items()}, {"sync": 101, "async": 1009}, "rows")
    check(rows["sync"]["latency_p50_ns"] >= 500_000 > rows["async"]["latency_p50_ns"], f"unexpected latencies: {rows}")
    check(rows["sync"]["latency_total_ns"] >= 101 * 500_000, "total latency is too small")


many = "\n".join(f"copy {i % 7 + 2} fn={f} stream={s}" for i, (f, s) in enumerate(
    (f, s) for f in callable_functions("driver") if "Async" in f and "Batch" not in f for s in (0, 1, 2, 3)))


@case(each={"entry": [], "latency": ["-l"], "failed": ["-x"]}, asan=True)
def a_full_table_spills(mode):
    """With more rows than the table holds, calls are sent to user space one by one, and batches one element at a
    time."""
    batches = "\n".join(f"copy {i + 2} fn=cuMemcpyBatchAsync sizes={i},70000,3 stream={i % 4}; copy 2 fn=cuMemcpyBatchAsync "
                        f"sizes=none stream={i % 4}; copy 3 fn=cuMemcpyBatchAsync sizes=1,2 result=700 stream={i % 4}"
                        for i in range(20))
    tool, truth = trace(many + "\n" + many.replace("copy ", "copy 1").replace("stream=", "result=719 stream=") + "\n" + batches,
                        "--table-rows", 16, "--by", "api,stream", "-r", 0, *mode, form="workload-driver")
    same(tool, truth, ("function", "stream"))


@case
def intervals_add_up():
    workload = Workload("repeat 10\n" + many + "\ncopy 5 fn=cuMemcpyBatchAsync sizes=1,2,3; sleep 100; end", "workload-driver")
    tool = Tool("-p", workload.pid, "-i", "0.2", "--by", "kind,form", "-r", 0)
    workload.go()
    truth = workload.truth()
    same(tool.finish(), truth, ("kind", "form"))
    check(len({row["time"] for row in tool.rows}) >= 3, "fewer than 3 intervals")


@case(each={tier: tier for tier in ("session", "multi", "tracefs", "perf")}, long=["perf"], timeout=150)
def each_tier(tier):
    """Each way of attaching counts the same."""
    system.need_tier(tier)
    api = "driver" if tier == "perf" else "both"
    functions = callable_functions("driver") + (callable_functions("runtime") if api == "both" else [])
    text = script + steps(functions) + "\n" + steps(functions[::3], "result=700", 3)
    for mode in ([], ["-l"]) if tier != "perf" else (["-l"],):
        workload = Workload(text)
        tool = Tool("-p", workload.pid, "--attach", tier, "--by", "api,kind", "-r", 0, "--api", api, *mode)
        equal({record["tier"] for record in tool.of_type("attached")}, {tier}, "tier")
        workload.go()
        truth = workload.truth()
        same(tool.finish(), truth, api=api)


@case(alone=True)
def only_these_processes():
    a, b, c = (Workload(script) for _ in range(3))
    two = Tool("-p", f"{a.pid},{b.pid}", "--by", "pid,kind")
    named = Tool("-n", "workload", "--by", "pid,kind,memory")
    workloads = [workload.go() for workload in (a, b, c)]
    truth = [workload.truth() for workload in workloads]
    same(two.finish(), truth[0] + truth[1], ("pid", "kind"))
    equal({row["pid"] for row in two.rows}, {a.pid, b.pid}, "processes")
    same(named.stop(), truth[0] + truth[1] + truth[2], ("pid", "kind", "source", "destination"))


@case
def only_this_thread():
    """-t counts only the thread's copies, but knows memory that other threads allocated."""
    workload = Workload("alloc d 5000; alloc h 5000 fn=host; alloc p 5000 fn=cuMemHostAlloc\n"
                        "threads 3; wait {dir}/threads; copy 101 fn=cuMemcpy src=p dst=d; end; copy 7 src=h dst=d")
    leader = Tool("-t", workload.pid, "--by", "thread,kind")
    everything = Tool("-p", workload.pid, "--by", "thread,kind,memory")
    workload.go()
    tid = workload.threads(3)[1]
    (harness.here / "threads").touch()
    truth = workload.truth()
    same(leader.finish(), [call for call in truth if call["tid"] == workload.pid], ("tid", "kind"))
    same(everything.finish(), truth, ("tid", "kind", "source", "destination"))
    check(tid, "the truth has no second thread")


@case
def only_this_thread_with_memory_of_others():
    """-t: memory that another thread allocated is known. Both threads share the script's names, so each may copy memory
    of the other."""
    workload = Workload("threads 2; wait {dir}/attached; alloc d 5000; alloc p 5000 fn=cuMemHostAlloc; wait {dir}/copy\n"
                        "copy 101 fn=cuMemcpy src=p dst=d; end", "workload-driver").go()
    tids = workload.threads(2)
    tools = [Tool("-t", tid, "--by", "thread,kind,memory") for tid in tids]
    for name in "attached", "copy":
        (harness.here / name).touch()
    truth = workload.truth()
    for tid, tool in zip(tids, tools):
        same(tool.finish(), [call for call in truth if call["tid"] == tid], ("tid", "kind", "source", "destination"))


@case(alone=True)
def exited_processes_are_forgotten():
    """The tables forget the memory of exited processes, even if they copied nothing."""
    def entries(tool, name):
        maps = [m for m in leftovers.show("map") if m["id"] in leftovers.ids_held(tool.pid, "map_id")
                and m.get("name") == name]
        dump = subprocess.run([leftovers.bpftool(), "--json", "map", "dump", "id", str(maps[0]["id"])], capture_output=True,
                              text=True)
        return len(json.loads(dump.stdout))
    memory = "alloc d 10759; alloc p 9999 fn=cuMemHostAlloc; alloc v 2097152 fn=cuMemMap; free d; alloc e 10759\n"
    workloads = [Workload(memory + more + "touch {dir}/%d; wait {dir}/end" % i, "workload-driver")
                 for i, more in enumerate(("copy 3\n", "", "reset; alloc x 777\n"))]
    tool = Tool()
    for workload in workloads:
        workload.go()
    for i in range(3):
        wait_until((harness.here / str(i)).exists, f"process {i} has allocated")
    names = ("address_spaces", "allocations", "physical_memory", "ranges")
    kept = {name: entries(tool, name) for name in names}
    check(all(n >= 3 for n in kept.values()), f"entries of running processes are missing: {kept}")
    (harness.here / "end").touch()
    for workload in workloads:
        workload.wait()
    for name in names:
        wait_until(lambda: entries(tool, name) == 0, f"{name} is empty", 30)
    tool.stop()


@case
def stacks():
    """-U: one row per caller and direction, with frames of the program."""
    tool, truth = trace(script, "-U", "--by", "kind")
    equal(sum(row["copies"] for row in tool.rows), sum(n for key, n in expected(truth, ()).items() if key[-1] == "copies"),
          "copies")
    check(all(row.get("frames") or row.get("stack") for row in tool.rows), f"rows without frames, e.g. {tool.rows[0]}")
    check(any("workload" in str(row) for row in tool.rows), "no frame of the workload")


@case
def a_table_of_text():
    tool, _ = trace("alloc d 2000000; alloc h 2000000 fn=host; copy 101 src=h dst=d bytes=1048576; copy 3 fn=cuMemsetD8_v2 "
                    "bytes=100", json=False)
    lines = [line.split() for line in tool.text.splitlines() if line.strip()]
    head = next(line for line in lines if "KIND" in line)
    row = dict(zip(head, next(line for line in lines if "H2D" in line)))
    equal((row["COPIES"], float(row["SYNC%"]), float(row["<64K%"])), ("101", 100, 0), f"{head} {row}")
    check(re.match(r"1(\.0)?M", row["AVERAGE"]), f"unexpected average: {row}")
