# SPDX-License-Identifier: Apache-2.0
"""cudamemcpy with real probes: every copy, memset and prefetch is counted once, for every way of attaching and any
number of threads and processes. tests/bpf tests what is counted for which arguments and options."""
import json
import subprocess
from collections import Counter

import harness
import leftovers
import system
from copies import (bare, callable_functions, case, exported, field_of, is_copy, not_callable, same, sizes, steps,
                    table, trace)
from harness import all_but, check, equal, wait_until
from programs import Tool, Workload, check_record_types
from truth import layer_wanted

by_all = ("--by", "api,kind,pid", "-r", 0)

failing = "result=719"


@case
def the_functions_tested_are_those_attached():
    """Fails if a row of the probe table is called by no case, or if an entry of not_callable is no longer needed."""
    rows = {row.name for row in table()}
    tested = set(callable_functions("driver"))
    for form in "workload", "workload13":
        tested |= set(callable_functions("runtime", form))
    equal({bare(name) for name in rows - tested}, not_callable, "functions in the table that no case calls")
    # The tool also probes a few dozen functions that do not copy, such as those for streams and memory.
    workload = Workload("launch vecadd 1", "workload-driver")
    tool = Tool("-p", workload.pid, "-v")
    existing = exported(harness.standin / "libcuda.so.1")
    copying = {row.name for row in table() if row.layer == "driver"}
    attached, = tool.of_type("attached")
    missing = set(tool.error.split("not in this file: ")[1].splitlines()[0].split())
    equal(missing & existing, set(), "existing functions reported as missing")
    equal(missing & copying, copying - existing, "copying functions of the table that the driver lacks")
    others = attached["functions"] - len(copying & existing)
    check(20 < others < 60, f"{others} functions other than copies")
    workload.go().wait()
    tool.finish()


@case
def failures_of_every_driver_function():
    functions = callable_functions("driver")
    tool, truth = trace(steps(functions) + "\n" + steps(functions, failing, 20), *by_all, "-x", form="workload-driver")
    same(tool, truth)
    equal({row["function"] for row in tool.rows}, set(functions), "functions of the rows")


@case(each={"13": "workload13", "static": "workload-static"})
def every_runtime_function_at_each_layer(form):
    """Three tools run at once, so that stacks contain return probes of other tools."""
    functions = callable_functions("runtime", form)
    workload = Workload(steps(functions) + "\n" + steps(functions, failing, 20) + "\n"
                        + steps(functions, "runtime_result=35", 3), form)
    tools = {api: Tool("-p", workload.pid, "--api", api, *by_all, "-l") for api in ("runtime", "driver", "both")}
    workload.go()
    truth = workload.truth()
    # Rows for certain versions of the runtime do not apply to a runtime of unknown version: the tool counts these calls
    # only in the driver API.
    unseen = {row.name for row in table() if row.layer == "runtime" and row.versions} if "static" in form else set()
    for api, tool in tools.items():
        tool.finish()
        calls = [call for call in truth if call["function"] not in unseen]
        if unseen and api == "both":
            names = {bare(name).replace("cuda", "cu") for name in unseen}
            calls = [dict(call, nested=False) if bare(call["function"]) in names else call for call in calls]
        same(tool, calls, ("layer", "function", "kind") if api == "both" else ("function", "kind"), api)
    equal({row["function"] for row in tools["runtime"].rows}, set(functions) - unseen, "functions of the rows")


@case(asan=True, gpu=True)
def by_default():
    """One row per process and direction; with -l, also per form (synchronous or asynchronous)."""
    functions = callable_functions("driver")
    workload = Workload(steps(functions))
    table_, split = Tool("-p", workload.pid, "-r", 0), Tool("-p", workload.pid, "-l", "-r", 0)
    workload.go()
    truth = workload.truth()
    same(table_.finish(), truth, ("pid", "kind"))
    same(split.finish(), truth, ("pid", "kind", "form"))
    equal(len(table_.rows), len({row["kind"] for row in table_.rows}), "rows")
    check({"H2D", "D2H", "D2D", "P2P", "set", "prefetch"} <= {row["kind"] for row in table_.rows}, "unexpected kinds")


@case(gpu=True)
def sums_do_not_depend_on_rows():
    workload = Workload(steps(callable_functions("driver")) + "\nthreads 3\ncopy 101 bytes=70001; end")
    tools = {words: Tool("-p", workload.pid, "--by", words, "-r", 0, "-l")
             for words in ("kind,memory,form,api,stream,thread", "container", "device")}
    workload.go()
    truth = workload.truth()
    keys = ("kind", "source", "destination", "form", "function", "stream", "tid")
    for words, tool in tools.items():
        same(tool.finish(), truth, keys if "kind" in words else ())


@case(gpu=True)
def streams_of_both_kinds():
    """Calls without a stream use the default stream; per-thread variants use the thread's."""
    functions = callable_functions("driver")
    tool, truth = trace(steps(functions), "--by", "api,stream", "-r", 0)
    same(tool, truth, ("function", "stream"))


@case(gpu=True)
def a_million_and_three():
    tool, truth = trace("copy 1_000_003 bytes=1013")
    same(tool, truth, ("kind",))
    row, = tool.rows
    equal((row["copies"], row["bytes"], row["average_bytes"]), (1_000_003, 1_000_003 * 1013, 1013), "copies")


@case(timeout=150)
def sixty_four_threads():
    tool, truth = trace("alloc h 70000 fn=cuMemHostAlloc; alloc d 70000\nthreads 64; repeat 20; copy 53 bytes=1019\n"
                        "copy 11 fn=cudaMemcpyAsync bytes=65537 stream=1; copy 7 fn=cuMemsetD32_v2 bytes=4096\n"
                        "copy 3 fn=cuMemcpyBatchAsync sizes=5,7,65536 src=h dst=d; copy 2 result=700; end; end",
                        "--by", "thread,kind,form", "-r", 0, "-l")
    same(tool, truth, ("tid", "kind", "form"))
    equal(len({row["tid"] for row in tool.rows}), 64, "threads")


def lines_of(truth):
    out = Counter()
    for call in truth:
        if is_copy(call) and layer_wanted(call, "driver"):
            source = field_of(call, "source") if call["kind"] == "copy" else None
            for size in sizes(call):
                out[call["tid"], call["comm"], call["stream"], call["function"], field_of(call, "kind"),
                    field_of(call, "form"), source, field_of(call, "destination"), size] += call["count"]
    return dict(out)


@case(asan=True)
def fifty_thousand_lines():
    """Four threads copy at full speed, with a buffer that holds all events."""
    tool, truth = trace(steps(callable_functions("driver")) + "\nthreads 4; copy 12500 bytes=1009; end",
                        "-e", "--ring-mb", 32)
    keys = ("tid", "comm", "stream", "function", "kind", "form", "source", "destination", "bytes")
    equal(dict(Counter(tuple(map(event.get, keys)) for event in tool.events)), lines_of(truth), f"{tool}")
    last = {}
    for event in tool.events:
        check(event["time_ns"] >= last.get(event["tid"], 0), f"out of order, after {last.get(event['tid'])}: {event}")
        last[event["tid"]] = event["time_ns"]


script = """
alloc d 200000; alloc h 200000 fn=host; alloc p 200000 fn=cuMemHostAlloc
copy 101 src=h dst=d bytes=1009; copy 53 fn=cuMemcpyAsync src=d dst=p bytes=70001 stream=1; copy 7 result=719 bytes=99
copy 11 fn=cudaMemsetAsync bytes=65536 stream=2; copy 5 fn=cuMemPrefetchAsync bytes=4096; copy 3 runtime_result=35
copy 13 fn=cuMemcpyBatchAsync src=p dst=d sizes=10,20000,70000; copy 2 fn=cuMemcpyDtoD_v2 bytes=0
threads 2; copy 17 fn=cuMemcpyDtoH_v2 src=d dst=p bytes=1000003; end; device 1; copy 3 bytes=33
"""

modes = {"default": [], "stacks_memory": ["-U", "-l", "--by", "memory"], "events": ["-e", "-l", "-U", "--api", "both"],
         "failed_events": ["-e", "-x"], "both": ["--api", "both", "--by", "memory,kind,api"],
         "by_all": ["--by", "kind,memory,form,api,pid,comm,thread,stream,device,container,pod,namespace,cgroup"],
         "hist_size": ["-H", "size", "--by", "memory,form"], "hist_rate": ["-H", "rate"]}

row_keys = {"type", "time", "interval_ns", "pid", "ns_pid", "process_start_ns", "comm", "processes", "cgroup", "kind",
            "copies", "vendor", "copies_per_second", "calls", "captured", "bytes", "bytes_per_second", "average_bytes",
            "unsized", "synchronous", "small"}


@case(each=modes, asan=True, long=all_but(modes, "default", "stacks_memory", "hist_rate"))
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
    if kind == "row":
        api = mode[mode.index("--api") + 1] if "--api" in mode else "driver"
        same(tool, truth, (), api)
    if mode == []:
        for row in tool.rows:
            equal(set(row) - {"container", "pod", "unit", "command_line"}, row_keys, "keys of a row")


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
def only_this_thread_with_memory_of_others():
    """-t: memory that another thread allocated is known. Both threads share the script's names, so each may copy memory
    of the other."""
    workload = Workload("threads 2; wait {dir}/attached; alloc d 5000; alloc p 5000 fn=cuMemHostAlloc\n"
                        "wait {dir}/copy; copy 101 fn=cuMemcpy src=p dst=d; end", "workload-driver").go()
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
        dump = subprocess.run([leftovers.bpftool(), "--json", "map", "dump", "id", str(maps[0]["id"])],
                              capture_output=True, text=True)
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
def tagged_addresses():
    """An address is matched to its allocation whatever its tag bits are (top byte ignore)."""
    system.need_ignored_bits()
    script = ("alloc host 4096 fn=host tag=9; alloc d 100000 tag=3; alloc p 8192 fn=cuMemHostAlloc tag=128\n"
              "copy 3 fn=cuMemcpy src=host dst=d+99999; copy 5 fn=cuMemcpy src=d dst=p\n"
              "copy 7 fn=cuMemcpy src=p+8191 dst=d; free p")
    tool, truth = trace(script, "--by", "kind,memory", form="workload-driver")
    same(tool, truth, ("kind", "source", "destination"))


@case(each={"entry": [], "latency": ["-l"]}, long=["latency"], asan=True, timeout=150, gpu=True)
def eight_threads_that_allocate(mode):
    """All threads share the names in the script. So they copy and free each other's memory, and other threads reuse the
    freed addresses."""
    copies = ("copy 3 fn=cuMemcpy src=p dst=d; copy 2 fn=cuMemcpyAsync src=d dst=h; copy 1 fn=cuMemcpy src=m dst=d\n"
              "copy 2 fn=cuMemcpyBatchAsync src=h dst=d sizes=7,8,9; copy 1 fn=cuMemcpy src=h dst=p\n")
    made = ("alloc p 3001 fn=cuMemHostAlloc; alloc d 5003; alloc h 4096 fn=cuMemAllocHost_v2\n"
            "alloc m 3007 fn=cuMemAllocManaged\n")
    churn = ("alloc x 3001 fn=cuMemHostAlloc; alloc y 70001; alloc z 200000 fn=mmap\n"
             "alloc r 9000 fn=cuMemHostRegister_v2\n", "free x; free y; free z; free r\n")
    tool, truth = trace(f"repeat 3; threads 8; repeat 40\n{churn[0]}{made}{churn[1]}{copies}end; end\n"
                        "threads 8; repeat 40; free p; free d; free h; free m; end; end; end",
                        "--by", "kind,memory,thread", "-r", 0, *mode, form="workload-driver")
    same(tool, truth, ("tid", "kind", "source", "destination"))


@case
def eight_threads_that_map_memory():
    """While one thread maps memory, the tool cannot look up the host memory of another thread's copy. The direction of
    that copy is unknown, never wrong."""
    tool, truth = trace("alloc d 4096\nthreads 8; repeat 200; alloc z 200000 fn=mmap; alloc h 4096 fn=host\n"
                        "copy 3 fn=cuMemcpy src=h dst=d; free h; free z; end; end",
                        "--by", "kind", form="workload-driver")
    rows = {row["kind"]: row["copies"] for row in tool.rows}
    equal(set(rows) - {"unknown"}, {"H2D"}, "directions")
    equal(sum(rows.values()), sum(call["count"] for call in truth if call["kind"] == "copy"), "copies")


@case(alone=True)
def a_child_does_not_inherit():
    """A forked child does not inherit device memory: addresses of its parent's device memory are unknown, and other
    addresses are host memory."""
    script = ("alloc host 4096 fn=host; alloc d 4096; alloc p 4096 fn=cuMemHostAlloc; copy 3 fn=cuMemcpy src=p dst=d\n"
              "fork; copy 5 fn=cuMemcpy src=host dst=d; copy 7 fn=cuMemcpy src=p dst=host; end\n"
              "copy 11 fn=cuMemcpy src=p dst=d")
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


@case(alone=True)
def pageable_only_of_processes_seen_whole():
    """Processes that started before the tool may have pinned memory that the tool does not know. For processes traced
    from their first call, other host memory is pageable."""
    script = ("alloc host 4096 fn=host; alloc d 4096; alloc p 4096 fn=cuMemHostAlloc\n"
              "copy 3 fn=cuMemcpyHtoD_v2 src=host dst=d; copy 5 fn=cuMemcpyHtoD_v2 src=p dst=d\n"
              "copy 7 fn=cuMemcpy src=d dst=host")
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
