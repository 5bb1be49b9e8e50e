# SPDX-License-Identifier: Apache-2.0
"""Target processes, tracers, and the time of a call under each configuration.

Each configuration has its own target process and its own copy of the library. A probe applies to one file, so the
probes of all configurations stay attached during the whole run without affecting each other. Each round measures all of
them briefly, in random order. A factor is the ratio of two consecutive measurements, because the machine has other
users and its speed varies. A reported value is the median over rounds. The value of a round is the median over batches
of calls."""
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from string import Template

import rows
from rows import BUILD, BURST_S, FUNCTION, NCCL, ROOT, RUNTIME, SAMPLE_S

TARGET, LIBTARGET = BUILD / "bench/target", BUILD / "bench/libtarget.so"
STANDIN = BUILD / "standin/libcuda.so.1"
TRACER_CPU = 0  # the target runs on CPU 1
SETTLE_S = 2.5  # seconds; in its first second cudalaunch has additional probes that learn kernel names
# An untraced call fails or does nothing, and takes less than this time. A call with any probe takes longer. The
# environment variable raises the limit for an emulated machine, which is slower (README.md, "arm64, emulated").
MAX_UNTRACED_NS = float(os.environ.get("GPUSNOOP_ALONE_NS", 250))


class Failed(Exception):
    """A measurement was not possible."""


def log(text):
    print(text, file=sys.stderr, flush=True)


children = []  # killed at the end of the run, and on errors


def spawn(command, **options):
    children.append(subprocess.Popen([str(word) for word in command], **options))
    return children[-1]


def spawn_piped(command):
    """A program that reads commands line by line, and answers each with a line."""
    return spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def prioritize_tracer():
    """Runs in the child. Tracer and target each have their own CPU and top priority, so that other load disturbs
    neither."""
    os.sched_setaffinity(0, {TRACER_CPU})
    os.setpriority(os.PRIO_PROCESS, 0, -20)


def copy_of(library, folder):
    folder.mkdir(parents=True)
    if library == RUNTIME:
        shutil.copyfile(STANDIN, folder / STANDIN.name)  # the runtime loads the driver from its own folder
    return pathlib.Path(shutil.copyfile(library, folder / (library if library in (NCCL, RUNTIME) else STANDIN).name))


class Target:
    def __init__(self, library, function=FUNCTION, python_frames=0):
        program = [TARGET]
        if python_frames:
            program = [sys.executable, ROOT / "tests/bench/python_target.py", LIBTARGET, python_frames]
        self.process = spawn_piped([*program, library, function])
        ready = self.process.stdout.readline().split()[1:]
        if len(ready) != 3 * len(function.split("+")):
            raise Failed(f"{library}: cannot call {function}")
        self.address, self.code = int(ready[0]), bytes.fromhex(ready[2])
        self.slow = [int(offset) for offset in ready[1::3]]

        # The driver's thunks begin with cmpl $imm32, disp32(%rip); je, and the kernel emulates the je. After endbr64 it
        # emulates a push. In other functions the probe is at the first byte.
        def bytes_before(code):
            return 10 if code.startswith("813d") and code[20:22] == "74" else 4 if code.startswith("f30f1efa55") else 0
        self.fast = [offset + bytes_before(code) for offset, code in zip(self.slow, ready[2::3])]
        self.calls = 0

    @property
    def pid(self):
        return self.process.pid

    def is_probed(self):
        """Returns true if the function contains a breakpoint."""
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(self.address)
            return memory.read(len(self.code)) != self.code

    def request(self, *command):
        """Sends a command, such as "run SECONDS [CALLS_PER_SECOND]" (target.cpp). Returns nanoseconds per call."""
        print(*command, file=self.process.stdin)
        calls, ns = self.process.stdout.readline().split()
        self.calls += int(calls)
        return float(ns)

    def run(self, seconds, rate=0):
        return self.request("run", seconds, rate)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Tracer:
    def __init__(self, command, output=subprocess.DEVNULL):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = spawn(command, stdin=subprocess.PIPE, stdout=output, stderr=self.errors,
                             preexec_fn=prioritize_tracer)

    def error_text(self):
        self.errors.seek(0)
        return self.errors.read().strip()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.stdin.close()  # ends floor
        self.process.wait()

    def cpu_ns(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0])

    def memory_kib(self):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1])

    def kernel_memory_kib(self):
        """Memory of all its BPF maps."""
        maps = {}
        for file in pathlib.Path(f"/proc/{self.process.pid}/fdinfo").iterdir():
            fields = dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
            if "map_id" in fields:
                maps[fields["map_id"]] = int(fields["memlock"])
        return sum(maps.values()) / 1024


class Setup:
    """A row's copy of the library, target processes and tracer."""

    def __init__(self, row, library, folder):
        self.row = row
        copy = copy_of(row.library or library, folder)
        self.target = Target(copy, row.function, row.python_frames)
        self.other = Target(copy, row.function) if "$other" in row.command else None
        self.tracer = None
        self.ns, self.factors = [], []  # one per round
        self.output = open(folder / "output", "w+") if row.count_pattern else subprocess.DEVNULL
        if not row.command:
            return
        target = self.target
        values = {"lib": copy, "pid": target.pid, "other": self.other and self.other.pid, "function": row.function,
                  "fast": ",".join(map(str, target.fast)), "slow": ",".join(map(str, target.slow))}
        self.tracer = Tracer([Template(str(word)).substitute(values) for word in row.command], self.output)

    def wait_until_attached(self):
        until = time.monotonic() + 20
        while self.tracer and not (self.other or self.target).is_probed():
            if self.tracer.process.poll() is not None or time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def measure(self, floor):
        """Returns nanoseconds per call, and their ratio to the floor."""
        floor_ns = floor.target.run(SAMPLE_S / 2) if floor else None
        ns = self.target.run(self.row.seconds)
        if self.row.seconds == BURST_S:
            time.sleep(5 * BURST_S)  # the tracer reads the events before the next measurement
        return ns, floor and ns / floor_ns

    def end(self):
        for one in filter(None, (self.tracer, self.target, self.other)):
            one.end()

    def miscount(self):
        """Returns an error message if the tool's counts differ from the calls made."""
        if not self.row.count_pattern:
            return None
        self.output.seek(0)
        found = re.finditer(self.row.count_pattern, self.output.read())
        counted, calls = sum(int(number) for match in found for number in match.groups()), self.target.calls
        return None if counted == calls else f"{self.row.label}: counted {counted} of {calls} calls"

    def line(self, by_name):
        """The row's line in the table."""
        row, bound = self.row, self.row.bound
        line = {"what": row.label, "ns": statistics.median(self.ns), "min_ns": min(self.ns), "max_ns": max(self.ns)}
        if row.floor in by_name and row.floor:
            line |= {"floor": row.floor, "x_floor": statistics.median(self.factors)}
            if row.is_block:
                line["over_floor_ns"] = statistics.median(ns - ns / factor for ns, factor in zip(self.ns, self.factors))
        if bound and bound.base in by_name:
            factors = self.factors
            if bound.base != row.floor:
                factors = [a / b for a, b in zip(self.ns, by_name[bound.base].ns)]
            line |= {"bound": str(bound), "ok": bound.holds(statistics.median(factors))}
        return line


def can_run(row):
    if not row.package or shutil.which(str(row.command[0])):
        return True
    log(f"bench: installing {row.package}")
    apt = ["apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0"]
    for action in (["update"], ["install", "--no-install-recommends", row.package]):
        subprocess.run(apt + action, stdout=sys.stderr, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    return bool(shutil.which(str(row.command[0])))


class QuietMachine:
    """Waits until no other tracer traces the whole machine. Such a tracer makes calls of untraced targets slow."""

    def __init__(self, targets):
        self.targets = targets
        self.patience = 60  # seconds

    def is_quiet(self):
        return all(target.run(0.005) < MAX_UNTRACED_NS for target in self.targets)

    def wait(self):
        while not self.is_quiet():
            if self.patience <= 0:
                raise Failed("untraced calls stay slow: another tracer traces the whole machine; stop it")
            self.patience -= 0.5
            time.sleep(0.5)


def measure(setups, by_name, rounds):
    """Measures each setup once per round, in random order."""
    quiet = QuietMachine([setup.target for setup in setups if not setup.row.command])
    for setup in [setup for _ in range(rounds) for setup in random.sample(setups, len(setups))]:
        while True:
            quiet.wait()
            ns, factor = setup.measure(by_name.get(setup.row.floor or None))
            if quiet.is_quiet():
                break
        setup.ns.append(ns)
        setup.factors.append(factor)


def cost_per_call(library, rounds, pattern, folder, failed):
    """Measures the rows of one library; returns dictionaries."""
    setups, skipped = [], []
    for row in rows.chosen_rows(pattern):
        if can_run(row):
            setups.append(Setup(row, library, folder / str(len(setups))))
        else:
            skipped.append({"what": row.label, "skipped": f"{row.command[0]} not found (package {row.package})"})
    for setup in list(setups):
        if not setup.wait_until_attached():
            error = setup.tracer.error_text() or "no probe in the function after 20 seconds"
            failed.append(f"{setup.row.label}: {error}")
            setups.remove(setup)
            setup.end()
    time.sleep(SETTLE_S)
    for setup in setups:
        setup.target.run(SAMPLE_S / 2)  # warm-up
    by_name = {setup.row.name: setup for setup in setups}
    measure(setups, by_name, rounds)
    for setup in setups:
        setup.end()
    failed += filter(None, (setup.miscount() for setup in setups))
    return [setup.line(by_name) for setup in setups] + skipped
