# SPDX-License-Identifier: Apache-2.0
"""HIP, against libraries laid out as in ROCm 5.7, 6.4 and 7.2: names, and use together with CUDA.
test_hip_functions.py tests each function."""
import time

import harness
from harness import case, equal
from hip import Calls, library, start, versions
from hip_calls import device, dim3, host, kernel, other_kernel, stream, times, words
from programs import Tool


@case(tool="cudasync")
def both_vendors():
    """One process uses CUDA and HIP: separate rows, and each vendor's error names."""
    calls = Calls(harness.standin / "libcuda.so.1")
    calls.ask(f"open {library('7')}")
    tool = Tool("-p", calls.pid)
    calls.order("result", 719)
    calls.call("hipDeviceSynchronize", 13)
    calls.ask(f"open {harness.standin / 'libcuda.so.1'}")
    equal(calls.call("cuCtxSynchronize", 7), {3: 7}, "result of an uninitialized CUDA")
    calls.end()
    equal({row["vendor"]: (row["calls"], row["errors"]) for row in tool.finish().rows}, {"amd": (13, 1), "nvidia": (7, 7)},
          "rows")


def hip_at_work(calls):
    calls.call("hipMalloc", 4, "&p", 7000)
    calls.call("hipModuleLaunchKernel", 17, other_kernel, 5, 4, 3, 32, 8, 1, 0, stream)
    calls.call("hipMemcpyHtoDAsync", 13, device, host, 200, stream)
    calls.call("hipStreamSynchronize", 5, stream)
    calls.call("hipStreamBeginCapture", 1, stream, 0)
    calls.call("hipLaunchKernel", 2, kernel, *dim3(1, 1, 1), *dim3(1, 1, 1), 0, 0, stream)
    calls.call("hipStreamEndCapture", 1, stream, "&graph")
    calls.call("hipGraphInstantiate", 1, "&exec", "graph", 0, 0, 0)
    calls.call("hipGraphLaunch", 11, "exec", stream)


def cuda_begins(calls):
    for function, *arguments in (("cuInit", 0), ("cuDevicePrimaryCtxRetain", "&context", 0), ("cuCtxSetCurrent", "context"),
                                 ("cuModuleLoadData", "&module", "{0}"), ("cuModuleGetFunction", "&f", "module", "'vecadd"),
                                 ("cuStreamCreate", "&s", 0)):
        equal(calls.call(function, 1, *arguments), {0: 1}, function)


cuda_kernel = "f", 1, 1, 1, 1, 1, 1, 0, "s", 0, 0


def cuda_at_work(calls):
    for function, count, *arguments in (
            ("cuMemAlloc_v2", 2, "&q", 5500), ("cuLaunchKernel", 29, *cuda_kernel),
            ("cuMemcpyHtoDAsync_v2", 31, "q", words(*16 * [0]), 100, "s"), ("cuStreamSynchronize", 9, "s"),
            ("cuStreamBeginCapture_v2", 1, "s", 0), ("cuLaunchKernel", 3, *cuda_kernel),
            ("cuStreamEndCapture", 1, "s", "&g"), ("cuGraphInstantiateWithFlags", 1, "&x", "g", 0), ("cuGraphLaunch", 7, "x", "s")):
        equal(calls.call(function, count, *arguments), {0: count}, function)


# Figures that each tool must report for hip_at_work() and cuda_at_work().
hip_figures = {"launches": 17, "copies": 13, "bytes": 2600, "h2d_bytes": 2600, "calls": 5, "waits": 5, "allocs": 4,
               "live_bytes": 28000, "instantiates": 1, "graph_launches": 11, "kernels_launched": 22}
cuda_figures = {"launches": 29, "copies": 31, "bytes": 3100, "h2d_bytes": 3100, "calls": 9, "waits": 9, "allocs": 2,
                "live_bytes": 11000, "instantiates": 1, "graph_launches": 7, "kernels_launched": 21}
tool_figures = {"cudalaunch": ("launches",), "cudamemcpy": ("copies", "bytes"), "cudasync": ("calls",),
                "gpualloc": ("allocs", "live_bytes"),
                "cudagraph": ("instantiates", "graph_launches", "kernels_launched"),
                "cudatop": ("launches", "copies", "h2d_bytes", "waits", "graph_launches", "allocs", "live_bytes"),
                "cudagap": ()}


def process_rows(tool):
    """Rows per process. cudatop also prints a row with the sum of all processes, and verdicts."""
    return [row for row in tool.finish().rows if row.get("by", "pid") == "pid"]


def figure(row, tool, key):
    return row.get("launches" if (tool, key) == ("cudagraph", "graph_launches") else key) or 0


@case(tool="cudatop")
def side_by_side():
    """A CUDA process and a HIP process: each has its own rows, with its vendor, in all tools."""
    cuda, hip = Calls(harness.standin / "libcuda.so.1"), Calls(library("7"))
    cuda_begins(cuda)
    tools = {tool: start(tool, "-p", f"{cuda.pid},{hip.pid}", 100) for tool in tool_figures}
    hip_at_work(hip)
    cuda_at_work(cuda)
    cuda.end(), hip.end()
    for tool, keys in tool_figures.items():
        rows = process_rows(tools[tool])
        for pid, vendor, made in ((cuda.pid, "nvidia", cuda_figures), (hip.pid, "amd", hip_figures)):
            own = [row for row in rows if row["pid"] == pid]
            equal({row["vendor"] for row in own}, {vendor}, f"{tool}: vendor")
            equal({key: sum(figure(row, tool, key) for row in own) for key in keys}, {key: made[key] for key in keys},
                  f"{tool} of {vendor}")


@case(tool="cudatop")
def both_in_one_process():
    """One process uses CUDA and HIP. Most tools have a row per vendor; in the others, one row sums both vendors' calls
    and names both."""
    calls = Calls(harness.standin / "libcuda.so.1")
    cuda_begins(calls)
    calls.ask(f"open {library('7')}")
    tools = {tool: start(tool, "-p", calls.pid, 100) for tool in tool_figures}
    devices = start("cudalaunch", "-p", calls.pid, "--by", "pid,device", 100)
    calls.call("hipSetDevice", 1, 3)
    hip_at_work(calls)
    calls.ask(f"open {harness.standin / 'libcuda.so.1'}")
    calls.call("cuDevicePrimaryCtxRetain", 1, "&context", 0)
    calls.call("cuCtxSetCurrent", 1, "context")
    cuda_at_work(calls)
    calls.end()
    equal({(row["vendor"], row.get("device")): row["launches"] for row in devices.finish().rows},
          {("amd", 3): 17, ("nvidia", 0): 29}, "launches by device; each API has its own device numbers")
    vendors = {}
    for tool, keys in tool_figures.items():
        rows = process_rows(tools[tool])
        vendors[tool] = {row["vendor"] for row in rows}
        by = {vendor: {key: sum(figure(row, tool, key) for row in rows if row["vendor"] == vendor) for key in keys} for vendor in vendors[tool]}
        want = {"amd": {key: hip_figures[key] for key in keys}, "nvidia": {key: cuda_figures[key] for key in keys},
                "nvidia,amd": {key: hip_figures[key] + cuda_figures[key] for key in keys}}
        equal(by, {vendor: want[vendor] for vendor in vendors[tool]}, tool)
    separate, together = {"amd", "nvidia"}, {"nvidia,amd"}
    equal(vendors, {"cudalaunch": separate, "cudamemcpy": separate, "cudasync": separate, "gpualloc": together,
                    "cudagraph": separate, "cudatop": together, "cudagap": together}, "vendors of rows")


@case(each=versions)
def names_of_a_running_program(version):
    """The program looked its kernels up before the tool started: their names are read from HIP's own objects."""
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
def objects_with_wrong_names_are_ignored(version):
    """An object contains another name than the one that the program passed to HIP. From then on, no object of that
    library is trusted."""
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
