# SPDX-License-Identifier: Apache-2.0
"""Drivers that forward to a second driver, or to HIP (standin/forward): each tool counts a call of the program once,
with the result of the outermost call."""
import os
import pathlib
import subprocess
import sys

import copies
import graphs
import harness
import memory
import system
import test_copies
import test_layers
import test_top
import test_waits
import tops
import waits
from harness import case, check, equal, wait_until
from hip import Calls, start, stream
from programs import Tool, Workload, kill_at_end
from test_allocs import driver_frees, driver_kinds
from truth import same_counts

kinds = {kind: kind for kind in ("call", "tail", "chain")}  # forwarded by a call, by a jump, by both
modes = {"entry": [], "latency": ["-l"], "failed": ["-x"]}
parts = ["call", "tail"]  # kinds not in make test, since "chain" covers both


def through(kind):
    return {"LD_LIBRARY_PATH": f"{harness.standin}/forward/{kind}:{harness.standin}"}


def forwarded(kind, script, form="workload"):
    workload = Workload(script, form, env=through(kind))
    maps = pathlib.Path(f"/proc/{workload.pid}/maps").read_text()
    check(f"/forward/{kind}/libcuda.so.1" in maps and "/libcuda.so.999.0" in maps, f"it does not map both drivers: {maps}")
    return workload


@case(each={f"{kind} {mode}": (kind, modes[mode]) for kind in kinds for mode in modes},
      long=[f"{kind} {mode}" for kind in parts for mode in modes])
def counts_launches_once(kind_and_mode):
    kind, mode = kind_and_mode
    workload = forwarded(kind, test_layers.mixed)
    tools = {api: Tool("-p", workload.pid, "--api", api, *mode) for api in test_layers.apis}
    workload.go()
    truth = workload.truth()
    for api, tool in tools.items():
        test_layers.compare(tool.finish(), truth, api, mode)


@case(each=kinds)
def counts_launches_without_other_return_probes(kind):
    """No other tool has return probes on these functions."""
    workload = forwarded(kind, test_layers.mixed)
    tool = Tool("-p", workload.pid)
    workload.go()
    same_counts(tool.finish(), workload.truth())


@case(each=kinds, long=parts)
def prints_one_line_per_call(kind):
    workload = forwarded(kind, "launch vecadd 500; launch saxpy 3 result=700", "workload-driver")
    tool = Tool("-p", workload.pid, "-e", "-l")
    workload.go().wait()
    events = [(event["kernel"], event["result_code"]) for event in tool.finish().events]
    equal({event: events.count(event) for event in set(events)},
          {("vecadd(float const*, float const*, float*, int)", 0): 500, ("saxpy(float*, float const*, float)", 700): 3}, "lines")


@case(each=kinds, long=parts, tool="cudamemcpy")
def counts_copies_once(kind):
    functions = copies.callable_functions("driver")
    workload = forwarded(kind, copies.steps(functions) + "\n" + copies.steps(functions, test_copies.failing, 20), "workload-driver")
    tools = [Tool("-p", workload.pid, *test_copies.by_all, *mode) for mode in ([], ["-l"])]
    workload.go()
    truth = workload.truth()
    for tool in tools:
        copies.same(tool.finish(), truth)


@case(each=kinds, long=parts, tool="cudasync")
def counts_waits_once(kind):
    script = test_waits.every(waits.driver_syncs, waits.driver_copies, waits.driver_frees)
    workload = forwarded(kind, script, "workload-driver")
    tool = Tool("-p", workload.pid, "--by", "api,wait")
    workload.go()
    truth = workload.truth()
    waits.same_waits(tool.finish(), truth)
    waits.same_times(tool, truth)


@case(each=kinds, long=parts, tool="gpualloc")
def counts_memory_once(kind):
    workload = forwarded(kind, driver_kinds + driver_frees + driver_kinds, "workload-driver")
    tool = Tool("-p", workload.pid, "--by", "pid,kind")
    workload.go()
    truth = workload.truth()
    memory.same_calls(tool.finish(), truth)
    memory.same_unfreed(tool, workload)


graph_calls = """
capture begin stream=1; launch scale 3 stream=1; capture end H stream=1; graph instantiate H Y; graph upload Y 2; graph launch Y 4
graph create G; graph add G kernel 3; graph add G memset 2; graph clone G D; graph add D empty 1; graph instantiate D X
graph launch X 5; graph update X D; graph launch X 2 result=700; graph execdestroy X; graph destroy G
"""


@case(each=kinds, long=parts, tool="cudagraph")
def follows_graphs_once(kind):
    workload = forwarded(kind, graph_calls, "workload-driver")
    tool = Tool("-p", workload.pid)
    workload.go().wait()
    graphs.same_graphs(tool.finish(), workload)


everything = test_top.launching + test_top.copying + test_top.capturing + test_top.waiting + test_top.holding + test_top.calls_in_two_columns


@case(each={f"{kind} {mode}": (kind, some) for kind in kinds for mode, some in {"default": [], "latency": ["-l"]}.items()},
      tool="cudatop", long=[f"{kind} {mode}" for kind in parts for mode in ("default", "latency")])
def cudatop_counts_each_call_once(kind_and_mode):
    kind, mode = kind_and_mode
    workload = forwarded(kind, everything)
    tool = Tool("-p", workload.pid, "-i", "0.3", *mode)
    workload.go()
    truth = workload.truth()
    tops.same(tool.finish(), truth, mode=mode)
    tops.same_live(tool, workload)
    tops.same_graphs_made(tool, workload)


@case(each={f"{kind} {tier}": (kind, tier) for kind in kinds for tier in ("multi", "tracefs")}, tool="cudatop",
      long=[f"{kind} {tier}" for kind in parts for tier in ("multi", "tracefs")])
def loses_no_returns(kind_and_tier):
    """In these tiers, the entry program cannot skip the return probe."""
    kind, tier = kind_and_tier
    system.need_tier(tier)
    workload = forwarded(kind, test_top.launching + test_top.copying + test_top.waiting)
    tool = Tool("-p", workload.pid, "-l", "--attach", tier)
    workload.go()
    truth = workload.truth()
    tops.same(tool.finish(), truth, mode=["-l"])


@case(each=kinds, tool="cudagap")
def cudagap_loses_no_calls(kind):
    """A call that is forwarded by a jump is not reported as abandoned."""
    workload = forwarded(kind, "threads 3; launch vecadd 200; sync 20; copy 30; end", "workload-driver")
    tool = Tool("-p", workload.pid)
    workload.go().wait()
    equal({row["pid"] for row in tool.finish().rows}, {workload.pid}, "rows")


@case(each=kinds, long=parts, alone=True)
def counts_programs_that_start_later(kind):
    """A second program starts after both drivers have been probed."""
    first = forwarded(kind, "launch vecadd 500")
    tool = Tool("--by", "pid,kernel")
    second = Workload("launch vecadd 500; launch saxpy 3", warm=False, env=through(kind))
    truth = second.truth() + first.go().truth()
    tool.stop()
    same_counts(tool, truth, by=("pid", "kernel"))


@case(each=kinds, long=parts, alone=True)
def counts_first_program_of_a_driver(kind):
    """The inner driver is already probed; the forwarding one gets its probes while the program makes calls."""
    other = Workload("launch vecadd 1", "workload-driver")
    tool = Tool("--by", "pid,kernel")
    program = Workload("repeat 300; launch vecadd 20; sleep 1; end", "workload-driver", warm=False, env=through(kind))
    truth = program.truth() + other.go().truth()
    tool.stop()
    same_counts(tool, truth, by=("pid", "kernel"))


@case(each={"entry": [], "latency": ["-l"]}, tool="cudatop")
def ignores_calls_of_the_driver_itself(mode):
    """Calls that a driver makes during a launch, to itself or to the inner driver, are not counted."""
    workload = forwarded("busy", "launch vecadd 500; launch saxpy 3 result=700", "workload-driver")
    tool = Tool("-p", workload.pid, *mode)
    workload.go().wait()
    row, = (row for row in tool.finish().rows if row["by"] == "pid")
    equal({key: row.get(key) for key in ("launches", "waits", "allocs", "frees", "copies", "live_bytes")},
          {"launches": 503, "waits": 0, "allocs": 0, "frees": 0, "copies": 0, "live_bytes": 0}, "calls")


# Start of a program that makes launches: its first argument is the driver.
with_kernel = """
import ctypes, mmap, sys, threading
cuda, libc = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
cuda.cuInit(0)
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuModuleLoadData(ctypes.byref(module), b"x")
cuda.cuModuleGetFunction(ctypes.byref(function), module, b"vecadd")
def launch(times=1):
    for i in range(times):
        assert cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
"""

calls_while_locked = with_kernel + """
size = 64 << 20
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
memory = libc.mmap(None, size, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE, -1, 0)
finished = False
def lock():
    while not finished:
        for protection in (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE):
            libc.mprotect(memory, size, protection)
print("up", flush=True)
sys.stdin.readline()
launch(10)
other = threading.Thread(target=lock)
other.start()
launch(490)
finished = True
other.join()
"""


@case(tool="cudatop")
def ignores_calls_while_mappings_are_locked():
    """Another thread changes the mappings all the time, so most lookups of the file at an address fail."""
    program = subprocess.Popen([sys.executable, "-c", calls_while_locked, harness.standin / "forward/busy/libcuda.so.1"], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    kill_at_end(program)
    equal(program.stdout.readline(), "up\n", "the program has started")
    tool = Tool("-p", program.pid)
    program.communicate("\n")
    equal(program.returncode, 0, "exit status")
    row, = (row for row in tool.finish().rows if row["by"] == "pid")
    equal({key: row.get(key) for key in ("launches", "waits", "allocs", "frees", "copies")},
          {"launches": 500, "waits": 0, "allocs": 0, "frees": 0, "copies": 0}, "calls")


calls_inside = with_kernel + """
callback = ctypes.CFUNCTYPE(None)(launch)
print("up", flush=True)
sys.stdin.readline()
for i in range(50):
    cuda.standin_next_inside(callback)
    launch()
    launch()
"""


@case(each={f"{kind} {mode}": (kind, modes[mode]) for kind in kinds for mode in ("entry", "latency")},
      long=[f"{kind} {mode}" for kind in parts for mode in ("entry", "latency")])
def counts_calls_of_callbacks(kind_and_mode):
    """A call made by a callback counts as a call of the program."""
    kind, mode = kind_and_mode
    program = subprocess.Popen([sys.executable, "-c", calls_inside, harness.standin / f"forward/{kind}/libcuda.so.1"], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    kill_at_end(program)
    equal(program.stdout.readline(), "up\n", "the program has started")
    tool = Tool("-p", program.pid, *mode)
    program.communicate("\n")
    equal(program.returncode, 0, "exit status")
    equal(sum(row.get("launches", 0) for row in tool.finish().rows), 150, "launches")


@case
def counts_preloaded_driver_once():
    """The forwarding driver is loaded by LD_PRELOAD, under a different name."""
    threads = 7
    environment = os.environ | {"LD_PRELOAD": str(harness.standin / "forward/preload/libcuda-control.so")}
    process = subprocess.Popen([harness.standin / "gaps", "sleep", "1", str(threads)], env=environment, stdout=subprocess.DEVNULL)
    kill_at_end(process)
    wait_until((harness.here / "up").exists, "the program has started")
    tool = Tool("-p", process.pid)
    (harness.here / "go").touch()
    equal(process.wait(20), 0, "exit status")
    equal(sum(row.get("host_functions", 0) for row in tool.finish().rows), 2 * threads, "host functions")


of_hip = {"cudalaunch": {"launches": 29}, "cudamemcpy": {"copies": 38, "bytes": 31 * 100 + 7 * 50},
          "cudasync": {"calls": 9 + 5 + 3 + 7 + 1, "errors": 0},
          "gpualloc": {"allocs": 3 + 2, "frees": 1, "failures": 1, "live_bytes": 2 * 5500, "pinned_bytes": 2 * 90},
          "cudagraph": {"instantiates": 1, "launches": 11, "kernels_launched": 22}}


def cuda_calls(calls):
    """Calls of a CUDA driver implemented with HIP, and expected counts."""
    cuda, hip = harness.standin / f"forward/{calls.kind}/libcuda.so.1", harness.standin / "hip/libamdhip64.so.6"
    launch = "f", 1, 1, 1, 1, 1, 1, 0, stream, 0, 0

    def failing(result, *call):
        calls.ask(f"open {hip}")
        calls.order("result", result)
        calls.ask(f"open {cuda}")
        calls.call(*call)

    calls.call("cuModuleGetFunction", 1, "&f", 0, "'vecadd")
    calls.call("cuMemAlloc_v2", 3, "&p", 5500)
    calls.call("cuMemAllocHost_v2", 2, "&h", 90)
    failing(2, "cuMemAlloc_v2", 1, "&q", 5500)
    calls.call("cuLaunchKernel", 27, *launch)
    failing(719, "cuLaunchKernel", 1, *launch)
    failing(700, "cuLaunchKernel", 1, *launch)
    calls.call("cuMemcpyHtoDAsync_v2", 31, "p", "h", 100, stream)
    calls.call("cuMemcpyDtoH_v2", 7, "h", "p", 50)
    calls.call("cuStreamSynchronize", 9, stream)
    calls.call("cuCtxSynchronize", 5)
    calls.call("cuStreamQuery", 3, stream)
    calls.call("cuMemFree_v2", 1, "p")
    calls.call("cuStreamBeginCapture_v2", 1, stream, 0)
    calls.call("cuLaunchKernel", 2, *launch)
    calls.call("cuStreamEndCapture", 1, stream, "&g")
    calls.call("cuGraphInstantiateWithFlags", 1, "&x", "g", 0)
    calls.call("cuGraphLaunch", 11, "x", stream)


@case(each={f"{kind} {mode}": (kind, modes[mode]) for kind in parts for mode in ("entry", "latency")}, tool="cudatop",
      long=["call latency", "tail latency"])
def counts_cuda_on_hip_once(kind_and_mode):
    kind, mode = kind_and_mode
    calls = Calls(harness.standin / f"forward/hip-{kind}/libcuda.so.1")
    calls.kind = f"hip-{kind}"
    tools = {tool: start(tool, "-p", calls.pid, *(mode if tool in ("cudalaunch", "cudamemcpy") else [])) for tool in of_hip}
    cuda_calls(calls)
    calls.end()
    for tool, want in of_hip.items():
        rows = tools[tool].finish().rows
        equal({row["vendor"] for row in rows}, {"nvidia"}, f"{tool}: vendor")
        equal({key: sum(row.get(key) or 0 for row in rows) for key in want}, want, f"{tool}: {rows}")
