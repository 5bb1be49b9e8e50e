# SPDX-License-Identifier: Apache-2.0
"""What only a device tells, by programs of ours under the tools. Each finding is a name and a value."""
import collections
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

import machine
import processes

here = pathlib.Path(__file__).parent


class Missing(Exception):
    """What a finding needs and is not here: it is skipped."""


class Wrong(Exception):
    """What was found is not what it has to be."""


def until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise Wrong(f"not within {seconds} s: {what}")
        time.sleep(0.02)
    return value


class Bench:
    """One workload and the tools on it, in a folder that its script calls {folder}."""

    def __init__(self, build, folder):
        self.build, self.folder, self.running = build, folder, []

    def workload(self, script):
        """Up, and waiting for go()."""
        script = "dlopen; launch scale 1; sync 1; touch {folder}/up; wait {folder}/go\n" + script
        process = self.start([self.build / "standin/workload-dlopen", script.replace("{folder}", str(self.folder))], "workload",
                             os.environ | {"WORKLOAD_DEVICE": "1"})
        until(lambda: (self.folder / "up").exists() or process.poll() is not None, "the workload is up")
        return process

    def go(self):
        (self.folder / "go").touch()

    def tool(self, name, *arguments):
        process = self.start([self.build / name, "--json", *map(str, arguments)], name)
        said = self.folder / f"{name}.err"
        until(lambda: "Tracing " in said.read_text(errors="replace") or process.poll() is not None, f"{name} traces")
        if process.poll() is not None:
            raise Missing(said.read_text(errors="replace").strip()[-300:])
        return process

    def start(self, command, name, env=None):
        with open(self.folder / f"{name}.out", "w") as out, open(self.folder / f"{name}.err", "w") as error:
            self.running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=error, env=env))
        return self.running[-1]

    def rows(self, name):
        """Whole lines so far."""
        return [json.loads(line) for line in (self.folder / f"{name}.out").read_text().split("\n")[:-1]]

    def end(self):
        processes.end(reversed(self.running))


@contextlib.contextmanager
def bench(build):
    with tempfile.TemporaryDirectory(prefix="gpusnoop-findings-") as name:
        one = Bench(build, pathlib.Path(name))
        try:
            yield one
        finally:
            one.end()


def asked_of_nvml(library, pid):
    said, why = machine.json_of(here / "nvml.py", library, str(pid), env=os.environ | {"GPUSNOOP_PID": str(pid)})
    if why:
        raise Missing(f"NVML: {why}")
    return said


def needs_kernel_driver():
    if not machine.first_line("/proc/driver/nvidia/version"):
        raise Missing("no driver of NVIDIA's in this kernel")


def names(build, driver, nvml):
    """Offsets, of a pointer to the name, or of a pointer and in what it leads to."""
    found, why = machine.json_of(here / "objects.py", driver)
    if why:
        raise Missing(why)
    yield from ((f"a kernel's name in {handle}", place or "not found") for handle, place in found.items())
    if found["CUfunction"] != [8]:
        raise Wrong(f"the name is not at offset 8 of CUfunction, where the tools look, but at {found['CUfunction']}")


def memory(build, driver, nvml):
    """LIVE against NVML's figure: the rest is what contexts and modules take, and what allocations are rounded up to."""
    with bench(build) as one:
        process = one.workload("alloc a 100000000 fn=cuMemAlloc_v2; repeat 50; alloc b 70000 fn=cuMemAlloc_v2; end\n"
                               "touch {folder}/held; wait {folder}/end")
        one.tool("gpualloc", "-p", process.pid, "0.2")
        before = asked_of_nvml(nvml, process.pid)
        one.go()
        until(lambda: (one.folder / "held").exists(), "it holds memory")
        after = asked_of_nvml(nvml, process.pid)
        live = 100000000 + 50 * 70000
        until(lambda: any(row.get("live_bytes") == live for row in one.rows("gpualloc")), f"gpualloc shows {live} bytes live")
        (one.folder / "end").touch()
    yield "NVML's driver", after["driver"]
    for index, device in enumerate(after["devices"]):
        yield f"GPU {index}", f"{device['name']}, MIG {({None: 'unknown', 0: 'off', 1: 'on'})[device['mig']]}"
    sizes = [[device["bytes"] for device in said["devices"] if device["bytes"] is not None] for said in (before, after)]
    if not all(sizes):
        raise Missing("NVML has no figure of this process")
    yield "LIVE of gpualloc, bytes", live
    yield "NVML's figure of it, bytes", sum(sizes[1])
    yield "the rest: context, modules, rounding, bytes", sum(sizes[1]) - live
    yield "NVML's figure with a context and a module only, bytes", sum(sizes[0])


def hang(build, driver, nvml):
    """A kernel that spins until both cudasync and cudatop have told, for a minute at most: how long each took; and how
    busy NVML says that the process is."""
    with bench(build) as one:
        process = one.workload("launch spin_us_60000000 1; sync 1; wait {folder}/end")
        one.tool("cudasync", "-p", process.pid, "0.5")
        one.tool("cudatop", "-p", process.pid, "1")
        began = time.monotonic()
        one.go()
        until(lambda: any(row.get("waiting") and row.get("function", "cuCtxSynchronize") == "cuCtxSynchronize"
                          for row in one.rows("cudasync")), "cudasync shows a wait that goes on", 20)
        shown = time.monotonic() - began
        words = until(lambda: next((row["diagnosis"] for row in one.rows("cudatop") if row.get("by") == "diagnosis"
                                    and row.get("rule") == "hangs"), None), "cudatop says that it hangs", 40)
        told = time.monotonic() - began
        try:
            busy = asked_of_nvml(nvml, process.pid)["devices"]
        except Missing:
            busy = []
        ends = process.poll() is not None
        process.kill()  # the kernel goes with its context
    if ends:
        raise Wrong(f"the program that spins ended by itself, with {process.returncode}")
    yield "seconds until cudasync shows the wait of a kernel that spins", round(shown, 1)
    yield "seconds until cudatop says that it hangs", round(told, 1)
    yield "a kernel that spins, by cudatop", words
    sampled = [device["sm_percent"] for device in busy if device["sm_percent"] is not None]
    yield "SM% of the process meanwhile, by NVML", sampled or "not sampled"
    for index, device in enumerate(busy):
        shown = [f"{name} {percent}%" for name, percent in (device["monitors"] or {}).items()]
        yield f"performance monitors of GPU {index} meanwhile", shown or "none"


def ioctls(build, driver, nvml):
    """Which of a program's calls enter the kernel, and how many of those are known by name."""
    needs_kernel_driver()
    for what, script in (("1000 launches", "launch vecadd 1000; sync 1"), ("1000 waits", "sync 1000"),
                         ("1000 copies of 4 KiB", "copy 1000 fn=cuMemcpyHtoD_v2 bytes=4096"),
                         ("100 allocations of 3 MB, and frees", "repeat 100; alloc a 3000000 fn=cuMemAlloc_v2; free a; end"),
                         ("10 contexts", "repeat 10; newcontext; destroycontext; end")):
        with bench(build) as one:
            process = one.workload(script)
            tool = one.tool("nvioctl", "-p", process.pid)
            one.go()
            process.wait(120)
            tool.wait(60)
            rows = [row for row in one.rows("nvioctl") if row["type"] == "row" and "request" in row]
        calls, unknown = sum(row["calls"] for row in rows), collections.Counter()
        for row in rows:
            if "0x" in row["command"]:
                unknown[f"{row['device']} {row['command']}"] += row["calls"]
        yield f"calls into the kernel by {what}, with the process's end", calls
        yield "known by name", f"{100 * (1 - sum(unknown.values()) / calls):.1f}%" if calls else "none was made"
        if unknown:
            yield "not known by name", [f"{name}: {count}" for name, count in unknown.most_common(20)]


def xid(build, driver, nvml):
    """A kernel of ours that writes out of bounds: the kernel's log has an error, and nvioctl --xid what preceded it."""
    needs_kernel_driver()
    with bench(build) as one:
        process = one.workload("launch out_of_bounds 1; sync 1")
        one.tool("nvioctl", "--xid")
        one.go()
        process.wait(60)
        event = until(lambda: next((row for row in one.rows("nvioctl") if "xid" in row and row.get("pid") in (None, process.pid)),
                                   None), "nvioctl --xid tells an error", 20)
    yield "out of bounds, by nvioctl --xid", f"{event['xid']} {event['name']}, {len(event['last_calls'])} calls before it"


def placement(build, driver, nvml):
    """Where the tools' own placement has each function's probe; on the file, so no device is needed."""
    path = next((path for path in (driver, *machine.libraries("libcuda.so.1")) if os.path.exists(path)), None)
    if not path:
        raise Missing("the driver's file was not found")
    names = (here.parents[1] / "tests/standin/driver_exports.txt").read_text()
    names = "\n".join(line.split()[0] for line in names.splitlines() if line and line[0] != "#")
    done = subprocess.run([build / "placement", path], input=names, capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr.strip())
    gates = collections.Counter((line["delta"], line["emulated"]) for line in map(json.loads, done.stdout.splitlines()))
    for (delta, emulated), count in gates.most_common():
        yield f"probes {delta} bytes into a function, on an instruction that the kernel " \
              f"{'emulates' if emulated else 'has to step over'}", count


def mps(build, driver, nvml):
    """As found, untouched."""
    comms = (machine.first_line(path) for path in map(str, pathlib.Path("/proc").glob("[0-9]*/comm")))
    yield "MPS", "runs" if any(comm and comm.startswith("nvidia-cuda-mps") for comm in comms) else "does not run"


everywhere, on_devices = (placement, mps), (names, memory, hang, ioctls, xid)


def run(build, driver, nvml, check, able):
    """Name, value of all; `able`: why no program can be traced, if so."""
    found = []
    for one in everywhere + on_devices:
        name = f"findings.{one.__name__}"
        try:
            if able and one in on_devices:
                raise Missing(able)
            for what, value in one(build, driver, nvml):
                found.append({"check": name, "what": what, "value": value})
            check(name, "ok")
        except Missing as reason:
            check(name, "skip", str(reason))
        except (Wrong, OSError, ValueError, KeyError, subprocess.SubprocessError) as reason:
            check(name, "FAIL", f"{reason}" if isinstance(reason, Wrong) else repr(reason))
    return found
