# SPDX-License-Identifier: Apache-2.0
"""Findings about the installed driver and devices, most of them from traced workloads. Each finding yields names and
values."""
import collections
import glob
import json
import os
import pathlib
import re
import subprocess
import time

import machine
from bench import Missing, Wrong, bench, until

here = pathlib.Path(__file__).parent
Given = collections.namedtuple("Given", "build driver nvml python")  # build folder, two libraries, interpreter


def nvml_report(library, pid):
    report, why = machine.json_of(here / "nvml.py", library, str(pid), env=os.environ | {"GPUSNOOP_PID": str(pid)})
    if why:
        raise Missing(f"NVML: {why}")
    return report


def needs_kernel_driver():
    if not machine.first_line("/proc/driver/nvidia/version"):
        raise Missing("NVIDIA's kernel driver is not loaded")


def names(given):
    """Location of a kernel's name: the offset of the pointer to it in a handle's object, or two offsets if the pointer
    is in another object."""
    found, why = machine.json_of(here / "objects.py", given.driver)
    if why:
        raise Missing(why)
    yield from ((f"a kernel's name in {handle}", place or "not found") for handle, place in found.items())
    if found["CUfunction"] != [8]:
        raise Wrong(f"the tools expect the name at offset 8 of CUfunction, but it is at {found['CUfunction']}")


def devices(given):
    """The devices and their MIG mode, by NVML; needs no tracing."""
    report = nvml_report(given.nvml, os.getpid())
    yield "NVML's driver", report["driver"]
    for index, device in enumerate(report["devices"]):
        yield f"GPU {index}", f"{device['name']}, MIG {({None: 'unknown', 0: 'off', 1: 'on'})[device['mig']]}"


def registrations(given):
    """Number of kernels that the tools find in programs and libraries that nvcc compiled; needs only the files."""
    places = [f"{given.build}/gpu/launcher-*", *(f"{folder}/{library}" for folder in machine.site_folders(given.python)
              for library in ("torch/lib/libtorch_cuda.so", "nvidia/*/lib/libcublas.so.*")),
              "/usr/local/cuda/lib64/libcublas.so.*"]
    files = {os.path.realpath(path) for place in places for path in glob.glob(place)}
    files = [path for path in sorted(files) if pathlib.Path(path).open("rb").read(4) == b"\x7fELF"]
    if not files:
        raise Missing("no program or library with kernels compiled by nvcc: none in the bundle, no PyTorch, no toolkit")
    for path in files:
        code, out, error = machine.output_of(given.build / "inspect", "scan", path)
        if code:
            raise Wrong(f"{path}: {error.strip()[-300:] or f'inspect exited with {code}'}")
        total = json.loads(out.splitlines()[-1])
        yield (f"kernels registered in {path}",
               f"{total['kernels']}, from {total['read']} of {total['sites']} registration calls")


def memory(given):
    """Compares gpualloc's LIVE with the process's memory according to NVML. The difference is due to contexts, modules,
    and rounding of allocations."""
    with bench(given.build) as one:
        process = one.workload("alloc a 100000000 fn=cuMemAlloc_v2; repeat 50; alloc b 70000 fn=cuMemAlloc_v2; end\n"
                               "touch {folder}/held; wait {folder}/end")
        one.tool("gpualloc", "-p", process.pid, "0.2")
        before = nvml_report(given.nvml, process.pid)
        one.go()
        until(lambda: (one.folder / "held").exists(), "the workload holds memory")
        after = nvml_report(given.nvml, process.pid)
        live = 100000000 + 50 * 70000
        until(lambda: any(row.get("live_bytes") == live for row in one.rows("gpualloc")), f"gpualloc shows {live} bytes live")
        (one.folder / "end").touch()
    sizes = [[device["bytes"] for device in report["devices"] if device["bytes"] is not None] for report in (before, after)]
    if not all(sizes):
        raise Missing("NVML reports no memory for this process")
    yield "LIVE of gpualloc, bytes", live
    yield "memory of the process by NVML, bytes", sum(sizes[1])
    yield "difference: context, modules, rounding, bytes", sum(sizes[1]) - live
    yield "memory of the process by NVML, with only a context and a module, bytes", sum(sizes[0])


def hang(given):
    """Launches a kernel that spins for up to a minute. Yields how long cudasync and cudatop took to report it, and the
    process's utilization according to NVML."""
    with bench(given.build) as one:
        process = one.workload("launch spin_us_60000000 1; sync 1; wait {folder}/end")
        one.tool("cudasync", "-p", process.pid, "0.5")
        one.tool("cudatop", "-p", process.pid, "1")
        began = time.monotonic()
        one.go()
        until(lambda: any(row.get("waiting") and row.get("function", "cuCtxSynchronize") == "cuCtxSynchronize"
                          for row in one.rows("cudasync")), "cudasync shows the pending wait", 20)
        shown = time.monotonic() - began
        words = until(lambda: next((row["diagnosis"] for row in one.rows("cudatop") if row.get("by") == "diagnosis"
                                    and row.get("rule") == "hangs"), None), "cudatop reports a hang", 40)
        reported = time.monotonic() - began
        on = next((f"{row['gpu']}, by {row['gpu_source']}" for row in reversed(one.rows("cudatop"))
                   if row.get("pid") == process.pid and row.get("gpu")), "unknown")
        try:
            busy = nvml_report(given.nvml, process.pid)["devices"]
        except Missing:
            busy = []
        exited = process.poll() is not None
        process.kill()  # this also ends the kernel
    if exited:
        raise Wrong(f"the spinning program exited early, with {process.returncode}")
    yield "seconds until cudasync shows the wait for a spinning kernel", round(shown, 1)
    yield "seconds until cudatop reports the hang", round(reported, 1)
    yield "diagnosis of the spinning kernel, by cudatop", words
    yield "GPU of the spinning process, by cudatop", on
    yield "GPUs of the spinning process, by NVML", [index for index, device in enumerate(busy) if device["bytes"] is not None] or "none"
    sampled = [device["sm_percent"] for device in busy if device["sm_percent"] is not None]
    yield "SM% of the spinning process, by NVML", sampled or "not sampled"
    for index, device in enumerate(busy):
        shown = [f"{name} {percent}%" for name, percent in (device["monitors"] or {}).items()]
        yield f"GPM metrics of GPU {index} while it spins", shown or "none"


# Operations whose ioctl calls are counted: name, script.
operations = (("1000 launches", "launch vecadd 1000; sync 1"), ("1000 waits", "sync 1000"),
            ("100 launches of a graph", "build vecadd 10; graph 100; sync 1"),
            ("1000 copies of 4 KiB", "copy 1000 fn=cuMemcpyHtoD_v2 bytes=4096"),
            ("100 allocations of 3 MB, and frees", "repeat 100; alloc a 3000000 fn=cuMemAlloc_v2; free a; end"),
            ("100 allocations of pinned memory, and frees", "repeat 100; alloc a 100000 fn=cuMemHostAlloc; free a; end"),
            ("10 contexts", "repeat 10; newcontext; destroycontext; end"))


def decoded(rows):
    """For each kind of ioctl number: the share of calls whose number has a known name, and the most frequent numbers
    without a name."""
    calls, unknown = collections.Counter(), {}
    for row in rows:
        name = row["command"]
        kind = "controls" if name.startswith("RM_CONTROL") else "classes" if name.startswith("RM_ALLOC") else "commands"
        calls[kind] += row["calls"]
        if "0x" in name:
            unknown.setdefault(kind, collections.Counter())[f"{row['device']} {name}"] += row["calls"]
    for kind, count in sorted(calls.items()):
        others = unknown.get(kind, collections.Counter())
        yield f"{kind} known by name", f"{100 * (1 - sum(others.values()) / count):.1f}% of {count}"
        if others:
            yield f"{kind} not known by name", [f"{name}: {number}" for name, number in others.most_common(20)]


def ioctls(given):
    """Counts ioctl calls per operation, and the share of calls whose number has a known name."""
    needs_kernel_driver()
    everything = []
    for operation, script in operations:
        with bench(given.build) as one:
            process = one.workload(script)
            tool = one.tool("nvioctl", "-p", process.pid)
            one.go()
            process.wait(120)
            tool.wait(60)
            rows = [row for row in one.rows("nvioctl") if row["type"] == "row" and "request" in row]
        yield f"ioctl calls by {operation}, including process exit", sum(row["calls"] for row in rows)
        everything += rows
    yield from decoded(everything)


def xid(given):
    """A kernel that writes out of bounds: the driver logs an Xid, and nvioctl --xid reports the preceding calls."""
    needs_kernel_driver()
    with bench(given.build) as one:
        process = one.workload("launch out_of_bounds 1; sync 1")
        one.tool("nvioctl", "--xid")
        one.go()
        process.wait(60)
        event = until(lambda: next((row for row in one.rows("nvioctl") if "xid" in row and row.get("pid") in (None, process.pid)),
                                   None), "nvioctl --xid reports an Xid", 20)
    yield "out of bounds, by nvioctl --xid", f"{event['xid']} {event['name']}, {len(event['last_calls'])} calls before it"


def placement(given):
    """Positions of the tools' probes in the driver's functions; needs only the file."""
    path = next((path for path in (given.driver, *machine.libraries("libcuda.so.1")) if os.path.exists(path)), None)
    if not path:
        raise Missing("the driver's file was not found")
    names = (here.parents[1] / "tests/standin/driver_exports.txt").read_text()
    names = "\n".join(name for version, *names in map(str.split, names.splitlines()) if version != "#" for name in names)
    done = subprocess.run([given.build / "inspect", "placement", path], input=names, capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr.strip())
    gates = collections.Counter((line["delta"], line["emulated"]) for line in map(json.loads, done.stdout.splitlines()))
    for (delta, emulated), count in gates.most_common():
        yield f"probes {delta} bytes into a function, on an instruction that the kernel " \
              f"{'emulates' if emulated else 'single-steps'}", count


def mps(given):
    """Whether MPS is running."""
    comms = (machine.first_line(path) for path in map(str, pathlib.Path("/proc").glob("[0-9]*/comm")))
    yield "MPS", "runs" if any(comm and comm.startswith("nvidia-cuda-mps") for comm in comms) else "does not run"


def fusion(given):
    """cudadiff's comparison of the same PyTorch work, launched kernel by kernel and as one graph."""
    if missing := machine.missing_module(given.python, "torch"):
        raise Missing(missing)
    with bench(given.build) as one:
        for how in "eager", "graph":
            (one.folder / how).mkdir()
            process = one.start([given.python, "-B", here / "samples/gated.py", given.driver, here / "samples/fusion.py",
                                 one.folder / how, how], how)
            until((one.folder / how / "up").exists, f"PyTorch has started, {how}", 120)
            tool = one.tool("cudalaunch", "-p", process.pid, "-d", "3", "--record", one.folder / f"{how}.json", "0.2")
            tool.wait(60)
            (one.folder / how / "end").touch()
            process.wait(60)
        # Per step, not per second: the number of steps per second depends on the machine.
        code, out, error = machine.output_of(given.build / "cudadiff", "--per", "kernel:sigmoid", one.folder / "eager.json",
                                             one.folder / "graph.json")
    sentence = next((line for line in out.splitlines() if line.startswith("B makes")), "")
    percent = re.search(r"^B makes ([\d.]+)% fewer launches", sentence)
    if code or not percent or float(percent[1]) < 80:
        raise Wrong(f"cudadiff exited with {code} and printed: {sentence or out + error}")
    yield "40 PyTorch kernels as one graph, by cudadiff", sentence


# Requirements of each finding, besides files.
BPF, DEVICE = "BPF", "device"
findings = ((devices, set()), (mps, set()), (placement, set()), (registrations, set()), (names, {DEVICE}),
            (memory, {BPF, DEVICE}), (hang, {BPF, DEVICE}), (ioctls, {BPF, DEVICE}), (xid, {BPF, DEVICE}),
            (fusion, {BPF, DEVICE}))


def found_by(finding, given, check, unable):
    """Runs a finding; returns the names and values that it yields before it ends."""
    name, found = f"findings.{finding.__name__}", []
    try:
        if unable:
            raise Missing(unable)
        for what, value in finding(given):
            found.append({"check": name, "what": what, "value": value})
        check(name, "ok")
    except Missing as reason:
        check(name, "skip", str(reason))
    except (Wrong, OSError, ValueError, KeyError, subprocess.SubprocessError) as reason:
        check(name, "FAIL", f"{reason}" if isinstance(reason, Wrong) else repr(reason))
    return found


def run(given, missing, check, wanted, start):
    """Starts all findings. Returns a function for each finding, which returns its results. `missing`: {BPF or DEVICE:
    why it is unavailable, None if it is available}."""
    return [start(found_by, finding, given, check, next(filter(None, map(missing.get, sorted(needs))), None))
            for finding, needs in findings if wanted(f"findings.{finding.__name__}")]
