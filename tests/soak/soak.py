# SPDX-License-Identifier: Apache-2.0
"""Soak test: all tools trace the whole machine for an hour, while some programs make calls all the time, and others
start and exit. At the end, each tool must have counted every call, and its resources must not have grown.

The case run_all_tools does the run. Each of the other cases reports one result for one tool."""
import collections
import json
import os
import pathlib
import secrets
import shutil
import time

import copies
import figures
import graphs
import harness
import memory
import programs
import tops
import truth
import waits
from containers import Cgroup, Container, Image, Name, kubepods
from driver_calls import Calls, called, shown
from harness import Skip, case, check, equal
from programs import Workload

minutes = 60
threads = 2
interval = 5             # seconds between reports
new_file_interval = 30   # seconds between containers that have their own driver
short_lived = 3          # number of short-lived programs at a time
initial_files = 2        # driver files of the steady programs: the stand-in, and its copy in containers
results = harness.build / "soak.json"

begin = "dlopen; touch {up}; wait {go}\n"  # maps the driver, and calls nothing yet

# Steady programs, which loop for the whole run.
steady = """threads %d; loop %d; launch vecadd 400; launch saxpy 100 stream=1; copy 100 bytes=70001
copy 50 fn=cuMemcpyHtoDAsync_v2
sync 50 fn=cuStreamSynchronize; sync 30 fn=cuStreamQuery result=600; alloc .a 4096; alloc .b 300 fn=cuMemAllocAsync
free .a; free .b; hostfunc 10; copy 20 fn=cuMemsetD8_v2; end; end
"""
steady_ioctls = """threads 2; loop %d; call RM_CONTROL 101 subject=0x20800102; call RM_ALLOC 29 subject=0x40 bytes=4096
call RM_FREE 13
sleep 5; end; end
"""

# Short-lived programs.
short = """launch vecadd %d; launch reduce 5 fn=cuLaunchKernelEx; copy 7 fn=cuMemcpyHtoD_v2; alloc a 5000; alloc b 70001
free a; sync 3 fn=cuCtxSynchronize
graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 5; graph execdestroy X
"""
fork_and_call = """fork; name child; launch saxpy 11; copy 3 fn=cuMemcpyHtoD_v2; alloc c 4097
sync 2 fn=cuCtxSynchronize; end
"""
exec_and_call = "exec workload-driver; launch vecadd 13; copy 2; alloc d 4098; free d; end\n"
workload_builds = ("workload-driver", "workload", "workload13", "workload-static", "workload-nopie", "workload-dlopen")

# Maximum share of copies with an unknown direction. If the function does not state the direction, the tools look up the
# memory at the addresses; the kernel refuses that while a tool places probes in the same process.
max_unknown_directions = 1e-6

# cudatop samples stacks, and drops a sample whose slot is occupied.
allowed_losses = {"stacks_lost"}


class OwnRows:
    """A tool's rows of the processes that made these calls. Leaves out other programs on this machine."""

    def __init__(self, tool, calls):
        pids = {call["pid"] for call in calls}
        self.rows = [row for row in tool.rows if row.get("pid") in pids]
        self.arguments, self.name = tool.arguments, str(tool)

    def __str__(self):
        return self.name


# --- expected counts -------------------------------------------------------------------------------------------------

def without_directions(sums):
    return {key: n for key, n in sums.items() if key[-1] not in ("h2d_bytes", "d2h_bytes", "d2d_bytes")}


def bytes_with_direction(sums):
    return sum(n for key, n in sums.items() if key[-1] in ("h2d_bytes", "d2h_bytes", "d2d_bytes"))


def check_cudatop(tool, expected):
    got, want = tops.found(tops.rows(tool)), tops.expected(expected.calls)
    equal(without_directions(got), without_directions(want), f"{tool}, by pid")
    known, total = bytes_with_direction(got), bytes_with_direction(want)
    check((1 - max_unknown_directions) * total <= known <= total,
          f"{tool}: direction of {known} bytes of {total} is known")


def check_cudalaunch(tool, expected):
    launches = [call for call in expected.calls if call["kind"] in ("kernel", "graph", "host")]
    truth.same_counts(tool, launches, by=("pid", "kernel"))


def check_cudamemcpy(tool, expected):
    copies.same(tool, expected.calls, by=("pid",))
    directions = collections.Counter()
    for row in tool.rows:
        directions[row["kind"]] += row["copies"]
    check(directions["unknown"] <= max_unknown_directions * directions.total(),
          f"{tool}: too many copies with an unknown direction: {directions}")


def check_cudasync(tool, expected):
    waits.same_waits(tool, expected.calls, by=("pid", "function", "wait"))


def check_gpualloc(tool, expected):
    memory.same_calls(tool, expected.calls, by=("pid", "kind"))


def check_cudagraph(tool, expected):
    got, want = collections.Counter(), collections.Counter()
    for call in expected.graph_calls:
        if call["exec"]:
            want.update({(call["pid"], name): n for name, n in graphs.count_of(call).items()})
    for row in tool.rows:
        got.update({(row["pid"], name): row[name] for name in graphs.sums})
    equal(+got, +want, f"{tool}: graph calls by pid")


def check_nvioctl(tool, expected):
    equal(shown(tool), called(expected.driver_calls), f"{tool}: calls")


tools = {"cudatop": ([], check_cudatop), "cudalaunch": (["--by", "pid,kernel"], check_cudalaunch),
         "cudamemcpy": (["--by", "pid,kind", "-r", 0], check_cudamemcpy),
         "cudasync": (["--by", "pid,api,wait"], check_cudasync),
         "gpualloc": (["--by", "pid,kind"], check_gpualloc), "cudagraph": ([], check_cudagraph),
         "nvioctl": (["--attach", "tracepoint", "-r", 0], check_nvioctl)}


class ProbedFiles:
    """Number of files that a tool reports as probed. The tool reports the number when it grows, not when it shrinks."""

    def __init__(self, tool):
        self.tool, self.file, self.position = tool, tool.out_file, 0

    def __str__(self):
        with open(self.file, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 200))
            return f"{self.tool} (last: {file.read().decode(errors='replace')[-200:]})"

    def max_since_last(self):
        """Returns the largest number reported since the last call."""
        files = 0
        with open(self.file, "rb") as file:
            file.seek(self.position)
            complete = file.read().rpartition(b"\n")[0]
        self.position += len(complete)
        for line in complete.splitlines():
            if line.startswith(b'{"type":"attached"'):
                files = max(files, json.loads(line)["files"])
        return files


# --- programs --------------------------------------------------------------------------------------------------------

class Expected:
    """Calls of all programs that have exited, as reported by these programs."""

    def __init__(self):
        self.calls, self.graph_calls, self.driver_calls = [], [], []
        self.processes = self.containers = self.files = 0

    def add(self, workload):
        if isinstance(workload, Calls):
            self.driver_calls += workload.lines("ioctl")
        else:
            self.calls += workload.truth()
            host_pids = getattr(workload, "pids", {})
            self.graph_calls += [call | {"pid": host_pids.get(call["pid"], call["pid"])}
                                 for call in graphs.calls(workload)]
            self.processes += len(memory.truth_lines(workload, "process"))
        workload.truth_file.unlink()

    def call_count(self):
        return sum(call["count"] for call in self.calls if call["layer"] == "driver") + \
            sum(call["count"] for call in self.driver_calls)


class ShortLived:
    """Starts short-lived programs and containers all the time. All containers have one image, so one driver file."""

    def __init__(self, image, expected):
        self.image, self.expected, self.running, self.number = image, expected, [], 0

    def step(self):
        for started in [started for started in self.running if started[0].process.poll() is not None]:
            self.end(started)
        while len(self.running) < short_lived:
            self.running.append(self.start())

    def start(self):
        self.number += 1
        script = short % (self.number % 90 + 10)
        if self.number % 8 == 0:
            return Calls("call RM_CONTROL 11 subject=0x20800102; fork; call RM_FREE 3; end").go(), None
        if self.number % 4 == 0:
            group = Cgroup("v2", f"gpusnoop-test-{secrets.token_hex(4)}/{kubepods(Name())}")
            self.expected.containers += 1
            container = Container(begin + script, "workload-driver", image=self.image, cgroups=[group], warm=False)
            return container.go(), group
        program = workload_builds[self.number % len(workload_builds)]
        return Workload(script + fork_and_call + exec_and_call, program, warm=False), None

    def end(self, started):
        workload, group = started
        self.expected.add(workload)
        self.running.remove(started)
        if group:
            group.remove()

    def finish(self):
        for started in list(self.running):
            self.end(started)


class NewFiles:
    """Starts a container with its own driver file every 30 seconds. It makes calls once all tools probe the file."""

    def __init__(self, expected, running):
        self.expected, self.running, self.stage = expected, running, self.start
        self.due = time.monotonic() + new_file_interval / 3
        self.probed_files = [ProbedFiles(tool) for tool in running]

    def step(self):
        self.stage()

    def start(self):
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + new_file_interval
        self.image = Image()
        for files in self.probed_files:
            files.max_since_last()
        self.pending = list(self.probed_files)
        self.workload = Container(begin + short % 17, "workload-driver", image=self.image, warm=False)
        self.stage = self.wait

    def wait(self):
        self.pending = [files for files in self.pending if files.max_since_last() <= initial_files]
        if not self.pending:
            self.workload.go()
            self.stage = self.end
        check(time.monotonic() < self.due + 60 * harness.patience,
              f"the driver of a new container is not probed by {', '.join(map(str, self.pending))}")

    def end(self):
        if self.workload.process.poll() is None:
            return
        self.expected.add(self.workload)
        self.expected.files += 1
        shutil.rmtree(self.image.lower)
        self.stage = self.start

    def finish(self):
        while self.stage != self.start:
            self.stage()
            time.sleep(0.05)


def prevent_pid_reuse():
    """Raises pid_max for the run: rows and calls are matched by pid, and an hour may use up the default range."""
    limit = pathlib.Path("/proc/sys/kernel/pid_max")
    before = limit.read_text()
    limit.write_text("4194304")
    harness.at_end.append(lambda: limit.write_text(before))


def run_all_tools():
    prevent_pid_reuse()
    seconds, outcomes, expected = round(minutes * 60), {}, Expected()
    image = Image()
    steady_programs = [Workload(begin + steady % (threads, seconds), "workload-driver", warm=False).ready(),
                       Container(begin + steady % (1, seconds), "workload-driver", image=image, warm=False),
                       Calls(steady_ioctls % seconds)]
    running = {}
    for name, (arguments, _) in tools.items():
        harness.binary = harness.build / name
        running[name] = programs.Tool(*arguments, "-i", interval, losses=True)
    samples = figures.Samples({name: tool.pid for name, tool in running.items()})
    churn = ShortLived(image, expected)
    new_files = NewFiles(expected, [tool for name, tool in running.items() if name != "nvioctl"])
    for workload in steady_programs:
        workload.go()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        churn.step()
        new_files.step()
        samples.sample()
        for tool in running.values():
            check(tool.process.poll() is None, f"{tool} exited: {tool.error}")
        time.sleep(0.02)
    churn.finish()
    new_files.finish()
    for workload in steady_programs:
        expected.add(workload)
    for name, tool in running.items():
        harness.binary = harness.build / name
        calls = expected.driver_calls if name == "nvioctl" else expected.calls
        attempt(outcomes, name, "exits", tool.stop)
        attempt(outcomes, name, "counts", lambda: tools[name][1](OwnRows(tool, calls), expected))
        attempt(outcomes, name, "losses", lambda: equal({k: n for k, n in tool.lost.items() if k not in allowed_losses},
                                                        {}, f"losses of {tool}"))
        for aspect in figures.kinds:
            attempt(outcomes, name, aspect, lambda: samples.check_flat(name, aspect))
    print(f"{minutes:g} minutes: {expected.call_count():,} calls, {expected.processes} processes, "
          f"{expected.containers} containers, and {expected.files} containers with their own driver\n{samples.table()}",
          flush=True)
    results.write_text(json.dumps(outcomes))


def attempt(outcomes, name, aspect, function):
    try:
        function()
        outcomes[f"{name}.{aspect}"] = ""
    except Exception as error:
        outcomes[f"{name}.{aspect}"] = f"{type(error).__name__}: {error}"


def register():
    results.unlink(missing_ok=True)
    case(run_all_tools, alone=True, timeout=minutes * 60 + 900)

    def result(name):
        if not results.exists():
            raise Skip("run_all_tools failed")
        error = json.loads(results.read_text())[name]
        check(not error, error)
    result.__module__ = "soak"
    names = [f"{tool}.{aspect}" for tool in tools for aspect in ("exits", "counts", "losses", *figures.kinds)]
    case(result, each={name: name for name in names}, alone=True)
