# SPDX-License-Identifier: Apache-2.0
"""Soak test: all tools trace all processes for an hour. Some programs make calls all the time; short-lived processes and
containers start and exit. In the end, each tool must have counted every call, and use no more resources than at first.

The case work() performs the run; the other cases report its outcomes, one per tool and check."""
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
interval = 5          # seconds between reports
new_file_every = 30   # seconds between containers with a driver of their own
churning = 3          # concurrent short-lived programs
known_files = 2       # drivers used all the time: the stand-in's, and the containers'
results = harness.build / "soak.json"

begin = "dlopen; touch {up}; wait {go}\n"  # maps the driver, but calls nothing

# The script that runs all the time.
steady = """threads %d; loop %d; launch vecadd 400; launch saxpy 100 stream=1; copy 100 bytes=70001; copy 50 fn=cuMemcpyHtoDAsync_v2
sync 50 fn=cuStreamSynchronize; sync 30 fn=cuStreamQuery result=600; alloc .a 4096; alloc .b 300 fn=cuMemAllocAsync; free .a
free .b; hostfunc 10; copy 20 fn=cuMemsetD8_v2; end; end
"""
drivers = "threads 2; loop %d; call RM_CONTROL 101 subject=0x20800102; call RM_ALLOC 29 subject=0x40 bytes=4096; call RM_FREE 13\nsleep 5; end; end\n"

# The script of a short-lived program.
short = """launch vecadd %d; launch reduce 5 fn=cuLaunchKernelEx; copy 7 fn=cuMemcpyHtoD_v2; alloc a 5000; alloc b 70001; free a; sync 3 fn=cuCtxSynchronize
graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 5; graph execdestroy X
"""
forked = "fork; name child; launch saxpy 11; copy 3 fn=cuMemcpyHtoD_v2; alloc c 4097; sync 2 fn=cuCtxSynchronize; end\n"
executed = "exec workload-driver; launch vecadd 13; copy 2; alloc d 4098; free d; end\n"
forms = ("workload-driver", "workload", "workload13", "workload-static", "workload-nopie", "workload-dlopen")

# Maximum share of copies with an unknown direction, for functions whose direction is determined by addresses: while a
# tool places probes in the process, the kernel cannot look up its memory.
directions_unknown = 1e-6

# cudatop samples stacks, and loses a sample if its slot is in use.
uncounted = {"stacks_lost"}


class OwnRows:
    """A tool's rows, without those of other programs on this machine."""

    def __init__(self, tool, calls):
        pids = {call["pid"] for call in calls}
        self.rows = [row for row in tool.rows if row.get("pid") in pids]
        self.arguments, self.name = tool.arguments, str(tool)

    def __str__(self):
        return self.name


# --- comparison of a tool's rows with the truth files ----------------------------------------------------------------

def without_directions(sums):
    return {key: n for key, n in sums.items() if key[-1] not in ("h2d_bytes", "d2h_bytes", "d2d_bytes")}


def bytes_with_direction(sums):
    return sum(n for key, n in sums.items() if key[-1] in ("h2d_bytes", "d2h_bytes", "d2d_bytes"))


def check_cudatop(tool, done):
    got, want = tops.found(tops.rows(tool)), tops.expected(done.calls)
    equal(without_directions(got), without_directions(want), f"{tool}, by pid")
    known, all_of_them = bytes_with_direction(got), bytes_with_direction(want)
    check((1 - directions_unknown) * all_of_them <= known <= all_of_them, f"{tool}: bytes by direction: {known} of {all_of_them}")


def check_launches(tool, done):
    truth.same_counts(tool, [call for call in done.calls if call["kind"] in ("kernel", "graph", "host")], by=("pid", "kernel"))


def check_copies(tool, done):
    copies.same(tool, done.calls, by=("pid",))
    of = collections.Counter()
    for row in tool.rows:
        of[row["kind"]] += row["copies"]
    check(of["unknown"] <= directions_unknown * of.total(), f"{tool}: copies by direction: {of}")


def check_waits(tool, done):
    waits.same_waits(tool, done.calls, by=("pid", "function", "wait"))


def check_allocations(tool, done):
    memory.same_calls(tool, done.calls, by=("pid", "kind"))


def check_graphs(tool, done):
    got, want = collections.Counter(), collections.Counter()
    for call in done.graph_calls:
        if call["exec"]:
            want.update({(call["pid"], name): n for name, n in graphs.count_of(call).items()})
    for row in tool.rows:
        got.update({(row["pid"], name): row[name] for name in graphs.sums})
    equal(+got, +want, f"{tool}: graphs")


def check_ioctls(tool, done):
    equal(shown(tool), called(done.driver_calls), f"calls of {tool}")


tools = {"cudatop": ([], check_cudatop), "cudalaunch": (["--by", "pid,kernel"], check_launches),
         "cudamemcpy": (["--by", "pid,kind", "-r", 0], check_copies), "cudasync": (["--by", "pid,api,wait"], check_waits),
         "gpualloc": (["--by", "pid,kind"], check_allocations), "cudagraph": ([], check_graphs),
         "nvioctl": (["--attach", "tracepoint", "-r", 0], check_ioctls)}


class ProbedFiles:
    """The number of probed files that a tool reports. It reports increases, but not decreases."""

    def __init__(self, tool):
        self.tool, self.file, self.position = tool, tool.out_file, 0

    def __str__(self):
        with open(self.file, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 200))
            return f"{self.tool} (last: {file.read().decode(errors='replace')[-200:]})"

    def recent_maximum(self):
        """The maximum number of files reported since the previous call."""
        files = 0
        with open(self.file, "rb") as file:
            file.seek(self.position)
            whole = file.read().rpartition(b"\n")[0]
        self.position += len(whole)
        for line in whole.splitlines():
            if line.startswith(b'{"type":"attached"'):
                files = max(files, json.loads(line)["files"])
        return files


# --- programs and containers -----------------------------------------------------------------------------------------

class Done:
    """Calls of all programs so far, from their truth files."""

    def __init__(self):
        self.calls, self.graph_calls, self.driver_calls = [], [], []
        self.processes = self.containers = self.files = 0

    def add(self, workload):
        if isinstance(workload, Calls):
            self.driver_calls += workload.lines("ioctl")
        else:
            self.calls += workload.truth()
            host_pids = getattr(workload, "pids", {})
            self.graph_calls += [call | {"pid": host_pids.get(call["pid"], call["pid"])} for call in graphs.calls(workload)]
            self.processes += len(memory.truth_lines(workload, "process"))
        workload.truth_file.unlink()

    def made(self):
        return sum(call["count"] for call in self.calls if call["layer"] == "driver") + \
            sum(call["count"] for call in self.driver_calls)


class ShortLived:
    """Short-lived programs and containers, a few at a time. The tools already know the image's files."""

    def __init__(self, image, done):
        self.image, self.done, self.running, self.number = image, done, [], 0

    def step(self):
        for one in [one for one in self.running if one[0].process.poll() is not None]:
            self.end(one)
        while len(self.running) < churning:
            self.running.append(self.start())

    def start(self):
        self.number += 1
        script = short % (self.number % 90 + 10)
        if self.number % 8 == 0:
            return Calls("call RM_CONTROL 11 subject=0x20800102; fork; call RM_FREE 3; end").go(), None
        if self.number % 4 == 0:
            group = Cgroup("v2", f"gpusnoop-test-{secrets.token_hex(4)}/{kubepods(Name())}")
            self.done.containers += 1
            return Container(begin + script, "workload-driver", image=self.image, cgroups=[group], warm=False).go(), group
        return Workload(script + forked + executed, forms[self.number % len(forms)], warm=False), None

    def end(self, one):
        workload, group = one
        self.done.add(workload)
        self.running.remove(one)
        if group:
            group.remove()

    def finish(self):
        for one in list(self.running):
            self.end(one)


class NewFiles:
    """Containers with a new copy of the driver. Each makes its calls once all tools have probed the copy."""

    def __init__(self, done, running):
        self.done, self.running, self.stage = done, running, self.start
        self.due = time.monotonic() + new_file_every / 3
        self.reports = [ProbedFiles(tool) for tool in running]

    def step(self):
        self.stage()

    def start(self):
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + new_file_every
        self.image = Image()
        for report in self.reports:
            report.recent_maximum()
        self.pending = list(self.reports)
        self.workload = Container(begin + short % 17, "workload-driver", image=self.image, warm=False)
        self.stage = self.wait

    def wait(self):
        self.pending = [report for report in self.pending if report.recent_maximum() <= known_files]
        if not self.pending:
            self.workload.go()
            self.stage = self.end
        check(time.monotonic() < self.due + 60 * harness.patience,
              f"all tools probe a new file; not yet: {', '.join(str(report) for report in self.pending)}")

    def end(self):
        if self.workload.process.poll() is None:
            return
        self.done.add(self.workload)
        self.done.files += 1
        shutil.rmtree(self.image.lower)
        self.stage = self.start

    def finish(self):
        while self.stage != self.start:
            self.stage()
            time.sleep(0.05)


def avoid_pid_reuse():
    """Raises pid_max: rows are matched by pid, and a run may have more processes than there are pids."""
    limit = pathlib.Path("/proc/sys/kernel/pid_max")
    before = limit.read_text()
    limit.write_text("4194304")
    harness.at_end.append(lambda: limit.write_text(before))


def work():
    avoid_pid_reuse()
    seconds, outcomes, done = round(minutes * 60), {}, Done()
    image = Image()
    steady_programs = [Workload(begin + steady % (threads, seconds), "workload-driver", warm=False).ready(),
               Container(begin + steady % (1, seconds), "workload-driver", image=image, warm=False), Calls(drivers % seconds)]
    running = {}
    for name, (arguments, _) in tools.items():
        harness.binary = harness.build / name
        running[name] = programs.Tool(*arguments, "-i", interval, losses=True)
    samples = figures.Samples({name: tool.pid for name, tool in running.items()})
    churn = ShortLived(image, done)
    new_files = NewFiles(done, [tool for name, tool in running.items() if name != "nvioctl"])
    for workload in steady_programs:
        workload.go()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        churn.step()
        new_files.step()
        samples.take()
        for tool in running.values():
            check(tool.process.poll() is None, f"{tool} is running: {tool.error}")
        time.sleep(0.02)
    churn.finish()
    new_files.finish()
    for workload in steady_programs:
        done.add(workload)
    for name, tool in running.items():
        harness.binary = harness.build / name
        attempt(outcomes, name, "ends", tool.stop)
        attempt(outcomes, name, "counts", lambda: tools[name][1](OwnRows(tool, done.driver_calls if name == "nvioctl" else done.calls), done))
        attempt(outcomes, name, "losses", lambda: equal({k: n for k, n in tool.lost.items() if k not in uncounted}, {}, f"losses of {tool}"))
        for what in figures.kinds:
            attempt(outcomes, name, what, lambda: samples.check_flat(name, what))
    print(f"{minutes:g} minutes: {done.made():,} calls, {done.processes} processes, {done.containers} containers, "
          f"{done.files} of them with a driver of their own\n{samples.table()}", flush=True)
    results.write_text(json.dumps(outcomes))


def attempt(outcomes, name, what, function):
    try:
        function()
        outcomes[f"{name}.{what}"] = ""
    except Exception as error:
        outcomes[f"{name}.{what}"] = f"{type(error).__name__}: {error}"


def register():
    results.unlink(missing_ok=True)
    case(work, alone=True, timeout=minutes * 60 + 900)

    def passes(outcome):
        if not results.exists():
            raise Skip("the run did not finish")
        why = json.loads(results.read_text())[outcome]
        check(not why, why)
    passes.__module__ = "soak"
    case(passes, each={outcome: outcome for outcome in (f"{name}.{what}" for name in tools for what in
                                                 ("ends", "counts", "losses", *figures.kinds))}, alone=True)
