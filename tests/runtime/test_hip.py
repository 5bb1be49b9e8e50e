# SPDX-License-Identifier: Apache-2.0
"""HIP through the same table: against a library in the shapes of ROCm 5.7, 6.4 and 7.2, each tool tells what was called."""
import time
from collections import Counter

import harness
from harness import case, equal
from hip import Calls, library, versions
from programs import Tool, Workload

no_stream, stream = 0, 0x5000
kernel, other_kernel = 0x401000, 0x402000
device, host, array = 0x7e0000000000, 0x7ffc00000000, 0x6000
host_to_device, device_to_host, device_to_device, without_units = 1, 2, 3, 1024


def dim3(x, y, z):
    """By value, in two registers."""
    return y << 32 | x, z


def words(*values):
    return "{" + ",".join(map(str, values)) + "}"


# As they are called; and blocks, and threads of a block.
def launches(version):
    grid, block = dim3(10, 2, 1), dim3(64, 2, 1)
    by_stub = (kernel, *grid, *block, 0, 512, stream)
    by_handle = (other_kernel, 5, 4, 3, 32, 8, 1, 0, stream)
    in_items = (other_kernel, 1000, 7, 1, 256, 4, 1, 0, stream)  # the last blocks are not full
    made = [
        ("hipLaunchKernel", by_stub, [10, 2, 1], [64, 2, 1]),
        ("hipLaunchKernel_spt", by_stub, [10, 2, 1], [64, 2, 1]),
        ("hipExtLaunchKernel", by_stub, [10, 2, 1], [64, 2, 1]),
        ("hipLaunchCooperativeKernel", by_stub, [10, 2, 1], [64, 2, 1]),
        ("hipModuleLaunchKernel", by_handle, [5, 4, 3], [32, 8, 1]),
        ("_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j", in_items,
         [4, 2, 1], [256, 4, 1]),
    ]
    if version > "5":
        made += [("hipExtModuleLaunchKernel", in_items, [4, 2, 1], [256, 4, 1]),
                 ("hipHccModuleLaunchKernel", in_items, [4, 2, 1], [256, 4, 1])]
    if version > "6":
        config = words(2 << 32 | 6, 64 << 32 | 1, 1 << 32 | 2, 0, stream, 0, 0)
        made += [("hipLaunchKernelExC", (config, kernel), [6, 2, 1], [64, 2, 1]),
                 ("hipDrvLaunchKernelEx", (config, other_kernel), [6, 2, 1], [64, 2, 1])]
    return made


# As they are called; direction, and bytes.
def copies(version):
    by_type = {"5": {"host": 0, "device": 1}}.get(version, {"host": 1, "device": 2})
    from_host, to_device = by_type["host"], by_type["device"]
    flat = [0, 0, from_host, host, 0, 0, 0, 0, 0, to_device, 0, device, 0, 0, 300, 2]  # hip_Memcpy2D
    if version == "5":
        deep = [0, 0, from_host, host, 0, 0, 0, 0, 0, to_device, 0, device, 0, 0, 7 << 32 | 40, 3]
    else:
        deep = [0] * 4 + [from_host, host, 0, 0] + [0] * 6 + [to_device, 0, device, 0, 0, 0, 40, 7, 3]
    parameters = [0, 0, 0, 0, host, 100, 100, 1, 0, 0, 0, 0, device, 100, 100, 1, 100, 5, 2, host_to_device]  # hipMemcpy3DParms
    made = [
        ("hipMemcpy", (device, host, 1000, host_to_device), "H2D", 1000),
        ("hipMemcpy_spt", (device, host, 1001, host_to_device), "H2D", 1001),
        ("hipMemcpyAsync", (host, device, 1002, device_to_host, stream), "D2H", 1002),
        ("hipMemcpyWithStream", (device, device, 1003, device_to_device, stream), "D2D", 1003),
        ("hipMemcpyDtoHAsync", (host, device, 1004, stream), "D2H", 1004),
        ("hipMemcpyHtoD", (device, host, 1005), "H2D", 1005),
        ("hipMemcpyPeerAsync", (device, 1, device, 0, 1006, stream), "P2P", 1006),
        ("hipMemcpy2D", (device, 512, host, 512, 100, 10, host_to_device), "H2D", 1000),
        ("hipMemcpy3D", (words(*parameters),), "H2D", 1000),
        ("hipMemcpyParam2D", (words(*flat),), "H2D", 600),
        ("hipDrvMemcpy3D", (words(*deep),), "H2D", 840),
        ("hipMemset", (device, 0, 1007), "set", 1007),
        ("hipMemsetD32Async", (device, 0, 10, stream), "set", 40),
        ("hipMemset3D", (0, 0, 0, 0, 0, 0, device, 512, 100, 10, 100, 5, 2), "set", 1000),
        ("hipMemPrefetchAsync", (device, 1008, 0, stream), "prefetch", 1008),
    ]
    if version > "5":
        made += [("hipMemcpyAsync_spt", (device, device, 1009, without_units, stream), "D2D", 1009),
                 ("hipMemcpyDtoA", (array, 0, device, 1010), "D2D", 1010)]
    if version > "6":
        made += [("hipMemcpyBatchAsync", (words(device, device), words(host, host), words(7, 9), 2, 0, 0, 0, 0, stream), "unknown", [7, 9])]
    return made


waits = ["hipDeviceSynchronize", "hipStreamSynchronize", "hipStreamSynchronize_spt", "hipEventSynchronize", "hipCtxSynchronize"]
polls = ["hipStreamQuery", "hipEventQuery"]


def start(program, *arguments):
    harness.binary = harness.build / program
    return Tool(*arguments)


def times(number):
    """Each function another number of times."""
    return 3 + 2 * number


@case(each=versions)
def counts(version):
    """Two results of each function: the tools are told them by names that HIP gives them."""
    calls = Calls(library(version))
    target = "-p", calls.pid
    lines = start("cudalaunch", *target, "-e", "-l")
    copied = start("cudamemcpy", *target, "-e")
    waited = start("cudasync", *target, "-e")
    failed = start("cudalaunch", *target, "-x")

    want_launches, want_copies, want_waits = Counter(), Counter(), Counter()
    for number, (function, arguments, grid, block) in enumerate(launches(version)):
        calls.call(function, times(number), *arguments)
        calls.order("result", 719)
        equal(calls.call(function, 1, *arguments), {719: 1}, "ordered result")
        want_launches[function, *grid, *block, 0] += times(number)
        want_launches[function, *grid, *block, 719] += 1
    for number, (function, arguments, kind, size) in enumerate(copies(version)):
        calls.call(function, times(number), *arguments)
        for each in size if isinstance(size, list) else [size]:
            want_copies[function, kind, each] += times(number)
    for number, function in enumerate(waits + polls):
        calls.order("busy", 2 if function in polls else 0)
        calls.call(function, times(number), stream)
        busy = 2 if function in polls else 0
        want_waits |= {(function, 0): times(number) - busy, (function, 600): busy}
    calls.end()

    made = Counter((line["function"], *line["grid"], *line["block"], line["result_code"]) for line in lines.finish().events)
    equal(made, want_launches, "launches")
    equal(Counter((line["function"], line["kind"], line["bytes"]) for line in copied.finish().events), want_copies, "copies")
    made = Counter((line["function"], 600 if line["not_ready"] else line["result_code"]) for line in waited.finish().events
                   if line["wait"] != "copy")
    equal(made, +want_waits, "waits")
    equal({line["vendor"] for tool in (lines, copied, waited) for line in tool.events}, {"amd"}, "vendors")
    failures = Counter()
    for row in failed.finish().rows:
        failures[row["result"]] += row["launches"]
    equal(failures, {"hipErrorLaunchFailure": len(launches(version))}, "failures")


@case(each=versions, tool="gpualloc")
def memory_and_graphs(version):
    calls = Calls(library(version))
    held, graphs, everything = (start(tool, "-p", calls.pid, 100) for tool in ("gpualloc", "cudagraph", "cudatop"))
    calls.call("hipMalloc", 5, "&p", 4096)
    calls.call("hipFree", 1, "p")
    calls.call("hipMallocPitch", 3, "&p", "&pitch", 100, 10)  # as wide as the library says
    calls.call("hipMallocAsync", 2, "&p", 1000, stream)
    calls.call("hipMallocManaged", 2, "&p", 700, 1)
    calls.call("hipHostMalloc", 4, "&p", 50, 0)
    calls.order("result", 2)
    calls.call("hipMalloc", 1, "&p", 1 << 34)
    calls.call("hipStreamBeginCapture", 1, stream, 0)
    calls.call("hipLaunchKernel", 3, kernel, *dim3(1, 1, 1), *dim3(1, 1, 1), 0, 0, stream)
    calls.call("hipStreamEndCapture", 1, stream, "&graph")
    calls.call("hipGraphInstantiate", 1, "&exec", "graph", 0, 0, 0)
    calls.call("hipGraphLaunch", 7, "exec", stream)
    calls.call("hipDeviceSynchronize", 11)
    calls.call("hipMemcpy", 13, device, host, 100, host_to_device)
    calls.end()

    row, = held.finish().rows
    want = {"allocs": 16, "frees": 1, "failures": 1, "out_of_memory": 1, "device_bytes": 4 * 4096 + 3 * 5120,
            "pool_bytes": 2000, "managed_bytes": 1400, "pinned_bytes": 200}
    equal({key: row[key] for key in want}, want, f"{row}")
    row, = graphs.finish().rows
    want = {"instantiates": 1, "launches": 7, "kernels_launched": 21, "vendor": "amd"}
    equal({key: row[key] for key in want}, want, f"{row}")
    want = {"graph_launches": 7, "graph_kernels": 21, "captured": 3, "copies": 13}
    rows = [row for row in everything.finish().rows if row.get("pid") == calls.pid]
    equal({key: sum(row.get(key) or 0 for row in rows) for key in want}, want, f"{rows}")


@case(each=versions, tool="gpualloc")
def what_a_reset_frees(version):
    """hipDeviceReset() gives back what the thread's device has, and nothing else does: no other device's memory, and not the
    host's, which is every device's. A context of HIP is its device: none is freed by destroying it."""
    calls = Calls(library(version))
    tool = Tool("-p", calls.pid, "--by", "pid,kind", 100)
    calls.call("hipSetDevice", 1, 1)
    calls.call("hipMalloc", 3, "&p", 1000)
    calls.call("hipMallocAsync", 2, "&p", 600, stream)
    calls.call("hipHostMalloc", 4, "&p", 50, 0)
    calls.call("hipMallocManaged", 5, "&p", 7, 1)
    calls.call("hipDevicePrimaryCtxRetain", 1, "&first", 0)
    calls.call("hipCtxSetCurrent", 1, "first")
    calls.call("hipMalloc", 7, "&p", 100)
    calls.call("hipCtxDestroy", 1, "first")
    calls.call("hipDevicePrimaryCtxRelease", 1, 0)
    calls.call("hipDevicePrimaryCtxReset", 1, 0)
    calls.order("result", 1)
    calls.call("hipDeviceReset", 1)  # fails
    calls.call("hipCtxCreate", 1, "&second", 0, 1)  # makes nothing current
    calls.call("hipMalloc", 1, "&kept", 100)
    calls.call("hipCtxPushCurrent", 1, "second")
    calls.call("hipDeviceReset", 1)  # of the second device
    calls.call("hipMalloc", 2, "&p", 30)
    calls.call("hipFree", 1, "kept")
    calls.end()
    rows = {row["kind"]: tuple(row[key] for key in ("allocs", "frees", "released", "released_bytes", "live_bytes", "approximate"))
            for row in tool.finish().rows}
    equal(rows, {"device": (13, 1, 3, 3000, 760, 0), "pool": (2, 0, 2, 1200, 0, 0), "pinned": (4, 0, 0, 0, 200, 0),
                 "managed": (5, 0, 0, 0, 35, 0)}, "what is held")


@case(tool="gpualloc")
def a_reset_of_nobody_knows_which_device():
    """The thread has not said since tracing began which device it works on: what it holds may be less."""
    calls = Calls(library("7"))
    tool = Tool("-p", calls.pid, 100)
    calls.call("hipMalloc", 3, "&p", 1000)
    calls.call("hipDeviceReset", 1)
    calls.end()
    row, = tool.finish().rows
    equal([row[key] for key in ("allocs", "released", "live_bytes", "approximate")], [3, 0, 3000, 1], f"{row}")


@case(tool="cudasync")
def both_vendors():
    """One process that uses CUDA and HIP: rows of their own, and errors by their own names."""
    calls = Calls(harness.standin / "libcuda.so.1")
    calls.ask(f"open {library('7')}")
    tool = Tool("-p", calls.pid)
    calls.order("result", 719)
    calls.call("hipDeviceSynchronize", 13)
    calls.ask(f"open {harness.standin / 'libcuda.so.1'}")
    equal(calls.call("cuCtxSynchronize", 7), {3: 7}, "not initialized")
    calls.end()
    equal({row["vendor"]: (row["calls"], row["errors"]) for row in tool.finish().rows}, {"amd": (13, 1), "nvidia": (7, 7)},
          "rows")


# Of each tool, what of the two processes below is the same but for how often.
side = {"cudalaunch": ("launches",), "cudamemcpy": ("copies", "bytes"), "cudasync": ("calls",),
        "gpualloc": ("allocs", "live_bytes"), "cudagraph": ("instantiates", "launches", "kernels_launched"),
        "cudatop": ("launches", "copies", "h2d_bytes", "waits", "graph_launches", "allocs", "live_bytes")}


@case(tool="cudatop")
def side_by_side():
    """A process that uses CUDA and another one that uses HIP: each has rows of its own, by its vendor, in all tools."""
    workload = Workload("alloc a 5000; alloc b 6000; launch vecadd 29 fn=cuLaunchKernel; "
                        "copy 31 fn=cuMemcpyHtoDAsync_v2 dst=a bytes=100; sync 9 fn=cuStreamSynchronize; "
                        "graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 7")
    calls = Calls(library("7"))
    tools = {tool: start(tool, "-p", f"{workload.pid},{calls.pid}", 100) for tool in side}
    calls.call("hipMalloc", 4, "&p", 7000)
    calls.call("hipModuleLaunchKernel", 17, other_kernel, 5, 4, 3, 32, 8, 1, 0, stream)
    calls.call("hipMemcpyHtoDAsync", 13, device, host, 200, stream)
    calls.call("hipStreamSynchronize", 5, stream)
    calls.call("hipStreamBeginCapture", 1, stream, 0)
    calls.call("hipLaunchKernel", 2, kernel, *dim3(1, 1, 1), *dim3(1, 1, 1), 0, 0, stream)
    calls.call("hipStreamEndCapture", 1, stream, "&graph")
    calls.call("hipGraphInstantiate", 1, "&exec", "graph", 0, 0, 0)
    calls.call("hipGraphLaunch", 11, "exec", stream)
    workload.go().wait()
    calls.end()
    of_cuda = {"launches": 29, "copies": 31, "bytes": 3100, "h2d_bytes": 3100, "calls": 9, "waits": 9, "allocs": 2,
               "live_bytes": 11000, "instantiates": 1, "graph_launches": 7, "kernels_launched": 21}
    of_hip = {"launches": 17, "copies": 13, "bytes": 2600, "h2d_bytes": 2600, "calls": 5, "waits": 5, "allocs": 4,
              "live_bytes": 28000, "instantiates": 1, "graph_launches": 11, "kernels_launched": 22}
    for tool, keys in side.items():
        rows = [row for row in tools[tool].finish().rows if "pid" in row]
        for pid, vendor, made in ((workload.pid, "nvidia", of_cuda), (calls.pid, "amd", of_hip)):
            own = [row for row in rows if row["pid"] == pid]
            equal({row["vendor"] for row in own}, {vendor}, f"{tool}: vendor")
            want = {key: made["graph_launches" if (tool, key) == ("cudagraph", "launches") else key] for key in keys}
            equal({key: sum(row.get(key) or 0 for row in own) for key in keys}, want, f"{tool} of {vendor}")


@case(each=versions)
def names_of_a_running_program(version):
    """Its kernels were looked up before the tool came: it finds their names in HIP's own objects, by the library's code."""
    calls = Calls(library(version))
    for number, name in enumerate(("_Z6vecaddPf", "Cijk_Ailk_Bljk_SB_MT64x64", "_Z5scalei")):
        calls.call("hipModuleGetFunction", 1, f"&f{number}", 0, f"'{name}")
    tool = start("cudalaunch", "-p", calls.pid, "--by", "pid,kernel", "-i", 1)
    for number in range(3):
        calls.call("hipModuleLaunchKernel", times(number), f"f{number}", 2, 1, 1, 64, 1, 1, 0, stream)
    time.sleep(2.5)
    for number in range(3):
        calls.call("hipModuleLaunchKernel", 1, f"f{number}", 2, 1, 1, 64, 1, 1, 0, stream)
    calls.end()
    rows = tool.finish().rows
    last = max(row["time"] for row in rows)
    equal({(row.get("kernel"), row.get("name_source")) for row in rows if row["time"] == last and row.get("launches")},
          {(name, "object") for name in ("vecadd(float*)", "Cijk_Ailk_Bljk_SB_MT64x64", "scale(int)")}, f"{rows}")


@case(each=versions)
def no_name_rather_than_a_wrong_one(version):
    """An object says another name than HIP was asked for: no object of that library is believed any more."""
    calls = Calls(library(version))
    for number, name in enumerate(("_Z6vecaddPf", "_Z5saxpyPf")):
        calls.call("hipModuleGetFunction", 1, f"&before{number}", 0, f"'{name}")
    tool = start("cudalaunch", "-p", calls.pid, "--by", "pid,kernel", "-i", 1)
    calls.order("nameless", 1)
    calls.call("hipModuleGetFunction", 1, "&during", 0, "'_Z5scalei")
    time.sleep(1.5)
    for handle in "during", "before0", "before1", "before0":
        calls.call("hipModuleLaunchKernel", 5, handle, 2, 1, 1, 64, 1, 1, 0, stream)
        time.sleep(0.5)
    calls.end()
    rows = [row for row in tool.finish().rows if row.get("launches")]
    equal({(row.get("kernel"), row.get("name_source")) for row in rows}, {("scale(int)", "lookup"), (None, None)}, f"{rows}")
