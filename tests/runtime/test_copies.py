# SPDX-License-Identifier: Apache-2.0
"""cudamemcpy: every copy, memset and prefetch by any function is counted once, with its bytes."""
import harness
from copies import (bare, callable_functions, case, count, expected, exported, modes, not_callable, same, steps, table,
                    trace)
from harness import check, equal
from programs import Tool, Workload

by_all = ("--by", "api,kind,pid", "-r", 0)

forms = {form: form for form in ("workload", "workload13", "workload-static")}

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


@case(each=modes, asan=True)
def every_driver_function(mode):
    """Each function, and each element of a three-dimensional batch, copies a unique number of bytes."""
    functions = callable_functions("driver")
    tool, truth = trace(steps(functions) + "\n" + steps(functions, failing, 20), *by_all, *mode,
                        form="workload-driver")
    same(tool, truth)
    equal({call["function"] for call in truth if call["kind"] in ("copy", "set", "prefetch")}, set(functions),
          "functions of the truth")
    equal({row["function"] for row in tool.rows}, set(functions), "functions of the rows")


def every_runtime_function(form, mode):
    functions = callable_functions("runtime", form)
    workload = Workload(steps(functions) + "\n" + steps(functions, failing, 20) + "\n"
                        + steps(functions, "runtime_result=35", 3), form)
    tools = {api: Tool("-p", workload.pid, "--api", api, *by_all, *mode) for api in ("runtime", "driver", "both")}
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
    if "-x" not in mode:
        equal({row["function"] for row in tools["runtime"].rows}, set(functions) - unseen, "functions of the rows")


@case(each={f"{form},{mode}": (form, modes[mode]) for form in forms for mode in modes})
def every_runtime_function_at_each_layer(what):
    """Three tools run at once, so that stacks contain return probes of other tools."""
    every_runtime_function(*what)


@case(each=modes)
def both_layers_alone(mode):
    """One tool with --api both: a copy through the runtime counts only as a runtime call."""
    functions = callable_functions("runtime") + callable_functions("driver")
    tool, truth = trace(steps(functions) + "\n" + steps(functions, failing, 20), *by_all, "--api", "both", *mode)
    same(tool, truth, ("layer", "function", "kind"), "both")


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


@case(each={"what": ("kind", "memory", "form"), "calls": ("api", "stream", "device"), "who": ("pid", "thread", "comm"),
            "whose": ("container", "pod", "cgroup", "kind,memory,form,api,stream,thread")}, gpu=True)
def sums_do_not_depend_on_rows(ways):
    workload = Workload(steps(callable_functions("driver")) + "\nthreads 3\ncopy 101 bytes=70001; end")
    tools = [(words, Tool("-p", workload.pid, "--by", words, "-r", 0, *more)) for words in ways for more in ([], ["-l"])]
    workload.go()
    truth = workload.truth()
    keys = {"kind": ("kind",), "memory": ("source", "destination"), "form": ("form",), "api": ("function",),
            "pid": ("pid",), "stream": ("pid", "stream"), "thread": ("tid",), "comm": ("comm",)}
    for words, tool in tools:
        same(tool.finish(), truth, tuple(key for word in words.split(",") for key in keys.get(word, ())))


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


@case(each=modes, timeout=150)
def sixty_four_threads(mode):
    tool, truth = trace("alloc h 70000 fn=cuMemHostAlloc; alloc d 70000\nthreads 64; repeat 20; copy 53 bytes=1019; copy 11 fn=cudaMemcpyAsync bytes=65537 stream=1\n"
                        "copy 7 fn=cuMemsetD32_v2 bytes=4096; copy 3 fn=cuMemcpyBatchAsync sizes=5,7,65536 src=h dst=d\n"
                        "copy 2 result=700; end; end", "--by", "thread,kind,form", "-r", 0, *mode)
    same(tool, truth, ("tid", "kind", "form"))
    equal(len({row["tid"] for row in tool.rows}), 64, "threads")


@case(each={"zero": 0, "small": 65535, "not_small": 65536, "large": 1 << 40, "largest": (1 << 48) - 1})
def sizes_at_the_bounds(size):
    tool, truth = trace(f"copy 3 fn=cuMemcpyHtoD_v2 bytes={size}; copy 5 fn=cuMemcpyDtoHAsync_v2 bytes={size}")
    same(tool, truth, ("kind",))


@case
def captured_copies():
    """Captured copies, also whole batches, count separately. CUDA refuses synchronous copies in a capture, so
    they run outside of it."""
    script = ("capture begin; copy 3 fn=cuMemcpyAsync stream=1; copy 2 fn=cudaMemcpyAsync stream=1 bytes=999\n"
              "copy 5 fn=cuMemsetD8Async stream=1; copy 7 fn=cuMemcpyAsync stream=2\n"
              "copy 1 fn=cuMemcpyBatchAsync sizes=1,2,3,4 stream=1; copy 11 bytes=77; capture end; graph 10 stream=1\n"
              "copy 13 fn=cuMemcpyAsync stream=1")
    for mode in [], ["-l"]:
        tool, truth = trace(script, "--by", "api,kind,pid", *mode)
        same(tool, truth)
        equal(sum(row["captured"] for row in tool.rows), 3 + 2 + 5 + 4, "captured")
    workload = Workload(script)
    tool = Tool("-p", workload.pid, "--api", "both", "--by", "api,kind")
    workload.go()
    truth = workload.truth()
    same(tool.finish(), truth, ("function", "kind"), "both")


@case
def failures_by_result():
    """-x: one row per result, with the bytes that would have been copied."""
    script = ("copy 101 bytes=1009\n" + "\n".join(f"copy {3 + code % 7} bytes={code} result={code}"
                                                   for code in (1, 2, 400, 700, 719, 12345)) +
              "\ncopy 2 fn=cuMemcpyBatchAsync sizes=10,20,30 result=700; copy 5 fn=cuMemsetD8_v2 result=719 bytes=3")
    tool, truth = trace(script, "-x", "--by", "kind")
    truth = [dict(call, result_code=call["result"]) for call in truth]
    same(tool, truth, ("kind", "result_code"))
    equal({row["result"] for row in tool.rows if row["result_code"] in (1, 12345)},
          {"CUDA_ERROR_INVALID_VALUE", "error 12345"}, "names")
    tool, truth = trace(script, "-l")
    equal(count(tool, ("kind",)), expected(truth, ("kind",), results=True), f"{tool}")
