# SPDX-License-Identifier: Apache-2.0
"""Costs of the tools themselves: start, exit, CPU time, memory, lost events, and the time that they add to context
switches, system calls and new stacks. Each function returns rows of the second table."""
import collections
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

from measure import SETTLE_S, STANDIN, Failed, Target, Tracer, copy_of, prioritize_tracer, spawn, spawn_piped
from rows import ALLOC_AND_FREE, BUILD, FUNCTION, ROOT, SAMPLE_S, TOOLS

LOADS = BUILD / "bench/loads"
WORKLOAD = BUILD / "standin/workload"
CROWD, CROWD_AT_START = 200, 300  # numbers of other processes
HELD_ALLOCATIONS = 1_000_000      # allocations held by one process


def quantity(label, values, unit, bound=None):
    line = {"what": label, "value": statistics.median(values), "min": min(values), "max": max(values), "unit": unit}
    if bound is not None:
        line |= {"bound": f"<= {bound:g} {unit}", "ok": line["value"] <= bound}
    return line


def use_realtime_priority():
    """Runs in the child. Its threads then take precedence over all normal ones, so they do not wait for a CPU."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def start_until(text, arguments, at_banner=lambda: None, tool="cudalaunch"):
    """Starts a tool and waits for `text` on its stderr. Returns the seconds that this took, and the process. If the
    banner appears first, calls `at_banner` and measures from there."""
    began = time.monotonic()
    tracer = spawn([BUILD / tool, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                   preexec_fn=prioritize_tracer)
    for line in tracer.stderr:
        if text in line:
            return time.monotonic() - began, tracer
        if line.startswith("Tracing"):
            began = time.monotonic()
            at_banner()
    raise Failed(f"{tool} {' '.join(arguments)} exited without printing '{text}'")


def started(tool, *arguments):
    """The process of a tool that is tracing."""
    return start_until("Tracing", arguments, tool=tool)[1]


def stop(tracer):
    """Returns the seconds from SIGINT to exit."""
    began = time.monotonic()
    tracer.send_signal(signal.SIGINT)
    tracer.wait()
    tracer.stderr.close()
    return time.monotonic() - began


def loads(*arguments):
    """The figure that a program of loads.cpp prints."""
    done = subprocess.run([LOADS, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"loads {arguments[0]}: {done.stderr.strip()}")
    return float(done.stdout)


def events_lost(target, rate, speed, bound=None):
    tracer = Tracer([BUILD / "cudalaunch", "-e", "-p", target.pid])
    time.sleep(SETTLE_S)
    before, seconds = target.calls, 3
    target.run(seconds, rate)
    calls = target.calls - before
    time.sleep(0.5)
    tracer.end()
    lost = sum(map(int, re.findall(r"(\d+) events lost", tracer.error_text())))
    rate = f"{calls / seconds / 1e3:.0f}k events/s"
    return quantity(f"cudalaunch -e, {speed} ({rate}): lost events", [100 * lost / calls], "%", bound)


def memory_of_held(folder):
    """Memory of gpualloc while a process holds a million allocations."""
    target = Target(copy_of(STANDIN, folder), ALLOC_AND_FREE)
    tracer = Tracer([BUILD / "gpualloc", "-p", target.pid, "1"])
    time.sleep(SETTLE_S)
    empty_kib = tracer.kernel_memory_kib()
    target.request("hold", HELD_ALLOCATIONS)
    time.sleep(2.5)  # time for one or two reports
    user, kernel = tracer.memory_kib(), tracer.kernel_memory_kib()
    tracer.end()
    target.end()
    label = f"memory of gpualloc 1, {HELD_ALLOCATIONS / 1e6:g}M allocations held:"
    return [
        quantity(f"{label} BPF maps", [kernel / 1024], "MiB"),
        quantity(f"{label} BPF maps, per allocation", [1024 * (kernel - empty_kib) / HELD_ALLOCATIONS], "bytes"),
        quantity(f"{label} process (VmRSS)", [user / 1024], "MiB"),
        quantity(f"{label} total", [(user + kernel) / 1024], "MiB", 200),
    ]


def cudalaunch(folder, rounds):
    """Start, exit, CPU time, memory and lost events of cudalaunch, and memory of gpualloc. The machine has 200
    additional processes, and one that uses CUDA."""
    for _ in range(CROWD):
        spawn(["sleep", "600"])
    target = Target(copy_of(STANDIN, folder / "target"))
    starts, stops, lates = [], [], []
    for i in range(5):
        seconds, tracer = start_until("Tracing", [])
        starts.append(1e3 * seconds)
        time.sleep(0.3)
        stops.append(1e3 * stop(tracer))

        copy, late = copy_of(STANDIN, folder / f"late{i}"), []
        seconds, tracer = start_until(str(copy), ["-v", "-d", "20"], lambda: late.append(Target(copy)))
        lates.append(1e3 * seconds)
        stop(tracer)
        late[0].end()
    rows = [
        quantity(f"start of cudalaunch to its banner, {CROWD} processes", starts, "ms", 300),
        quantity("start of a CUDA process until cudalaunch traces it", lates, "ms", 50),
        quantity("Ctrl-C to exit of cudalaunch", stops, "ms", 150),
    ]
    tracer = Tracer([BUILD / "cudalaunch", "1"])
    time.sleep(SETTLE_S)
    before, began, calls = tracer.cpu_ns(), time.monotonic(), target.calls
    target.run(5, 1e6)
    seconds = time.monotonic() - began
    rate = (target.calls - calls) / seconds / 1e6
    share = (tracer.cpu_ns() - before) / 1e9 / seconds
    rows += [
        quantity(f"CPU time of cudalaunch 1, {rate:.1f}M launches/s", [100 * share], "%", 1),
        quantity("memory of cudalaunch 1 (VmRSS)", [tracer.memory_kib() / 1024], "MiB", 30),
    ]
    tracer.end()
    rows += [events_lost(target, 300e3, "paced", 0), events_lost(target, 0, "full speed")]
    return rows + memory_of_held(folder / "held")


def first_report(name):
    """Returns milliseconds from the start of a tool to the end of its first report, without the report's interval."""
    interval = 0.1
    began = time.monotonic()
    tracer = spawn([BUILD / name, "-j", interval, 1], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                   preexec_fn=use_realtime_priority)
    for line in tracer.stdout:
        if '"type":"end"' in line:
            took = time.monotonic() - began
    if tracer.wait():
        raise Failed(f"{name} -j {interval} 1 exited with status {tracer.returncode}")
    return 1e3 * (took - interval)


def starts(folder, rounds):
    """Time from the start of each tool to its first report, without and with 300 CUDA processes."""
    copy, rows = copy_of(STANDIN, folder), []
    for size in (0, CROWD_AT_START):
        for _ in range(size):
            Target(copy)
        for name in TOOLS:
            times = [first_report(name) for _ in range(rounds)]
            rows.append(quantity(f"start of {name} to its first report, {size} CUDA processes", times, "ms", 300))
    return rows


def cudatop(folder, rounds):
    """CPU time and memory of cudatop while 200 processes each launch 1000 kernels per second."""
    copy, seconds = copy_of(STANDIN, folder), 5
    crowd = [Target(copy) for _ in range(CROWD)]
    tracer = Tracer([BUILD / "cudatop", "-b", "1"])
    time.sleep(2 * SETTLE_S)
    for target in crowd:
        print("run", seconds, 1000, file=target.process.stdin)
    time.sleep(1)
    before, began = tracer.cpu_ns(), time.monotonic()
    calls = sum(int(target.process.stdout.readline().split()[0]) for target in crowd)
    took = time.monotonic() - began
    share = (tracer.cpu_ns() - before) / 1e9 / took
    rows = [
        quantity(f"CPU time of cudatop -b 1, {CROWD} processes, {calls / seconds / 1e3:.0f}k launches/s",
                 [100 * share], "%", 3),
        quantity(f"memory of cudatop -b 1, {CROWD} processes (VmRSS)", [tracer.memory_kib() / 1024], "MiB", 40),
    ]
    tracer.end()
    return rows


def switches(folder, rounds):
    """Time that cudagap adds to a context switch, between any threads of the machine and between traced threads."""
    idle = Target(copy_of(STANDIN, folder / "idle"))
    traced_library = copy_of(STANDIN, folder / "traced")

    def traced_by(options, pid, load):
        """What load() returns while cudagap traces the process; without cudagap if `options` is None."""
        tracer = None if options is None else started("cudagap", *options, "-p", str(pid))
        value = load()
        if tracer:
            stop(tracer)
        return value

    def other_threads(options):
        return traced_by(options, idle.pid, lambda: loads("switches", SAMPLE_S))

    def storm(options):
        return traced_by(options, idle.pid, lambda: loads("storm", SAMPLE_S))

    def traced_threads(options):
        pair = spawn_piped([LOADS, "switches", SAMPLE_S, traced_library])
        pair.stdout.readline()
        out, _ = traced_by(options, pair.pid, lambda: pair.communicate("go\n"))
        if pair.returncode:
            raise Failed(f"loads switches exited with status {pair.returncode}")
        return float(out)

    kinds = {
        "cudagap: added time of a switch between other threads": (other_threads, []),
        "cudagap --cheap: added time of a switch between other threads": (other_threads, ["--cheap"]),
        "cudagap -l 10ms: added time of a switch and a wake-up of other threads": (other_threads, ["-l", "10ms"]),
        "cudagap: added CPU time of a switch in a storm of yields": (storm, []),
        "cudagap --interrupts: added CPU time of a switch in a storm of yields": (storm, ["--interrupts"]),
        "cudagap: added time of a switch between traced threads": (traced_threads, []),
        "cudagap -l 10ms: added time of a switch and a wake-up of traced threads": (traced_threads, ["-l", "10ms"]),
    }
    values, untraced = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(rounds):
        for label, (measured, options) in kinds.items():
            untraced[measured].append(measured(None))
            values[label].append(measured(options) - untraced[measured][-1])
    idle.end()
    return [quantity("untraced switch between two threads on one CPU, through a pipe", untraced[other_threads], "ns"),
            quantity("untraced switch in a storm of yields on all CPUs, CPU time", untraced[storm], "ns"),
            *(quantity(label, values[label], "ns") for label in kinds)]


def new_stacks(folder, rounds):
    """Time that `cudalaunch -U` adds to the first launch from a stack, and to later ones from the same stack: means
    over 2048 stacks of 20 frames."""
    rows = []
    programs = {"20 native frames": [LOADS, "stacks"],
                "20 frames of Python": [sys.executable, ROOT / "tests/bench/python_stacks.py"]}
    for label, program in programs.items():
        values = collections.defaultdict(list)
        for number in range(rounds):
            target = spawn_piped([*program, copy_of(STANDIN, folder / label / str(number))])

            def launches():
                print(file=target.stdin)
                return float(target.stdout.readline())

            target.stdout.readline()
            launches()
            untraced = min(launches() for _ in range(3))
            tracer = started("cudalaunch", "-U", "-p", str(target.pid))
            values["a launch from a new stack"].append(launches() - untraced)
            values["a launch from a known stack"].append(min(launches() for _ in range(3)) - untraced)
            stop(tracer)
            target.stdin.close()
            target.wait()
        rows += [quantity(f"cudalaunch -U, {label}: added time of {name}", ns, "ns") for name, ns in values.items()]
    return rows


def under_ceiling(folder, rounds):
    """Slowdown of a loop of 2 us launches, with --max-overhead 5 and without a ceiling."""
    folder.mkdir()
    ready, go, truth = folder / "ready", folder / "go", folder / "truth"
    # The tool adapts to the load while the kernel "scale" is launched; only launches of "vecadd" are compared.
    script = f"launch scale 1; touch {ready}; wait {go}\n" + "".join(
        f"loop 3; launch {kernel} 500 fn={FUNCTION} delay_us=2; end\n" for kernel in ("scale", "vecadd"))

    def calls(options):
        for file in ready, go:
            file.unlink(missing_ok=True)
        workload = spawn([WORKLOAD, "--truth", truth, script], preexec_fn=use_realtime_priority)
        while not ready.exists():
            if workload.poll() is not None:
                raise Failed(f"{WORKLOAD.name} exited with status {workload.returncode}")
            time.sleep(0.01)
        tracer = None if options is None else started("cudalaunch", *options, "-i", "1", "-p", str(workload.pid))
        go.touch()
        workload.wait()
        if tracer:
            stop(tracer)
        made = (json.loads(line) for line in truth.read_text().splitlines())
        return sum(call["count"] for call in made if call["type"] == "call" and call["layer"] == "driver"
                   and "vecadd" in (call["kernel"] or ""))

    runs = [(calls(None), calls(["--max-overhead", "5"]), calls([])) for _ in range(rounds)]
    with_ceiling, without = [run[0] / run[1] for run in runs], [run[0] / run[2] for run in runs]
    return [quantity("cudalaunch --max-overhead 5: slowdown of 2 us launches", with_ceiling, "x", 1.06),
            quantity("cudalaunch without a ceiling: slowdown of 2 us launches", without, "x")]


def system_calls(folder, rounds):
    """Time that nvioctl adds to any system call on the machine when it uses tracepoints. Not measured together with the
    cost of calls, because nvioctl would slow down their return probes, which use a system call."""
    option = "--attach tracepoint"
    kinds = {
        f"nvioctl {option}: added time of getppid": ((), 40),
        f"nvioctl {option}: added time of an ioctl on another device": ((1, 3), None),
        f"nvioctl {option}: added time of an ioctl on an NVIDIA device": ((195, 255), None),
    }
    values = {label: [] for label in kinds}
    for _ in range(rounds):
        before = {label: loads("syscalls", SAMPLE_S, *device) for label, (device, _) in kinds.items()}
        tracer = started("nvioctl", *option.split())
        for label, (device, _) in kinds.items():
            values[label].append(loads("syscalls", SAMPLE_S, *device) - before[label])
        stop(tracer)
    return [quantity(label, values[label], "ns", bound) for label, (_, bound) in kinds.items()]


# {name that --rows may match: function}. The first one only runs without --rows.
GROUPS = {"": cudalaunch, "start": starts, "cudatop": cudatop, "cudagap": switches, "new stacks": new_stacks,
          "ceiling": under_ceiling, "nvioctl": system_calls}
