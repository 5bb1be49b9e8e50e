# SPDX-License-Identifier: Apache-2.0
"""HIP, against libraries laid out as in ROCm 5.7, 6.4 and 7.2: names, and use together with CUDA. tests/bpf
tests each function."""
import re
import time

import harness
from harness import case, check, equal
from hip import Calls, device, dim3, host, kernel, library, other_kernel, start, stream, times, versions, words
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


def exported(version, *shapes):
    """Functions that the stand-in's HIP library exports in this version; optionally only those whose code has one of
    these shapes (standin/hip/exports.txt)."""
    lines = [line.split() for line in (harness.root / "tests/standin/hip/exports.txt").read_text().splitlines()]
    return {name for first, shape, _, _, *names in lines
            if "#" != first <= version and (shape in shapes if shapes else shape != "null") for name in names}


def rows_of_the_table(version):
    """Functions that tools trace in this version, from the probe table."""
    text = (harness.root / "src/attach/probe_table_hip.cpp").read_text().partition("TableEntry hip_table[] = {\n")[2].partition("\n};")[0]
    text = re.sub(r"^ *//.*\n", "", text, flags=re.M)
    names = set()
    for entry in text.split("\n    {"):
        name, variant = re.search(r'"(\w+)(?:\[(\w+)\])?",\s+KIND_', entry).groups()
        only = re.search(r", (hip52?|hip6|before6|after52)\},\s*$", entry)
        if not only or only[1] in {"5": ("hip5", "before6", "after52")}.get(version, ("hip6", "after52")):
            names |= {name, name + (variant or "")}
    return names


@case
def every_row():
    """The newest library of the stand-in has every function of the table."""
    traced = rows_of_the_table("7")
    check(len(traced) > 200, f"{len(traced)} rows were read")
    equal(traced - exported("7") - exported("7", "null"), set(), "functions that the stand-in does not have")


@case(tool="cudamemcpy", alone=True)
def process_traced_from_its_start():
    """A process that starts after the tool, and calls hipInit(). Memory that HIP did not allocate is host memory, and a
    thread that set no device uses the first one."""
    other = Calls(library("6"))  # so that the tool attaches to the library
    tool, held = start("cudamemcpy", "--by", "pid,kind,memory", 100), start("gpualloc", "--by", "pid,kind", 100)
    calls = Calls(library("6"))
    calls.call("hipInit", 1, 0)
    calls.call("hipMalloc", 1, "&p", 4096)
    calls.call("hipHostMalloc", 1, "&h", 4096, 0)
    calls.call("hipMallocManaged", 1, "&m", 4096, 1)
    calls.call("hipMemcpy", 3, "p", "&heap", 100, 4)
    calls.call("hipMemcpy", 5, "h", "p", 100, 4)
    calls.call("hipMemcpy", 7, "p", "p", 100, 4)
    calls.call("hipMemcpy", 9, "p", "m", 100, 4)
    calls.call("hipHostFree", 1, "h")
    calls.call("hipMemcpy", 11, "h", "p", 100, 4)
    other.call("hipMalloc", 1, "&p", 4096)
    other.call("hipMemcpy", 13, "p", "&heap", 100, 4)
    for each in calls, other:
        each.call("hipDeviceReset", 1)
    calls.end(), other.end()
    found = {(row["pid"], row["kind"], row["source"], row["destination"]): row["copies"] for row in tool.stop().rows}
    want = {("H2D", "pageable", "device"): 3, ("D2H", "device", "pinned"): 5, ("D2D", "device", "device"): 7,
            ("unknown", "managed", "device"): 9, ("unknown", "device", "unknown"): 11}
    want = {(calls.pid, *key): count for key, count in want.items()}
    equal(found, want | {(other.pid, "H2D", "host", "device"): 13}, "copies")
    found = {(row["pid"], row["kind"]): (row["released"], row["live_bytes"]) for row in held.stop().rows}
    equal({pid: found[pid, "device"] for pid in (calls.pid, other.pid)}, {calls.pid: (1, 0), other.pid: (0, 4096)}, "freed by a reset")


@case(each=versions)
def probe_placement(version):
    """Probes of forwarding functions sit after the first instruction, except in functions that jump to address 0."""
    calls = Calls(library(version))
    without_target = {"5": 0, "6": 0}.get(version, len(exported(version, "null")))
    for tool, single_stepped in (("cudagraph", without_target), ("gpualloc", 0)):
        messages = start(tool, "-p", calls.pid, "-v", 100).stop().error
        count, places = re.search(r"libamdhip64\.so\.\d: (\d+) of \d+ functions, (.*?)(?:; not in this file.*)?$", messages, re.M).groups()
        want = f"{int(count) - single_stepped} at +4" + f", {single_stepped} at +0 (single-stepped by the kernel: slow)" * bool(single_stepped)
        equal(sorted(places.split(", ")), sorted(want.split(", ")), f"places of {tool}")
