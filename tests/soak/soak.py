# SPDX-License-Identifier: Apache-2.0
"""All tools trace everybody for an hour, while two programs call without a pause, and processes and containers come and
go. At the end each tool has counted what was done, to the last call, and needs no more than it did at the beginning.

One case does all that; the others say what came of it, each for one tool."""
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
new_file_every = 30   # seconds: a container with a driver of its own
churning = 3          # short-lived programs at a time
known_files = 2       # drivers of what goes on all the time: the stand-in's, and the containers'
results = harness.build / "soak.json"

begin = "dlopen; touch {up}; wait {go}\n"  # the driver is mapped, and nothing has been called

# What goes on all the time, made long by its loop.
steady = """threads %d; loop %d; launch vecadd 400; launch saxpy 100 stream=1; copy 100 bytes=70001; copy 50 fn=cuMemcpyHtoDAsync_v2
sync 50 fn=cuStreamSynchronize; sync 30 fn=cuStreamQuery result=600; alloc .a 4096; alloc .b 300 fn=cuMemAllocAsync; free .a
free .b; hostfunc 10; copy 20 fn=cuMemsetD8_v2; end; end
"""
drivers = "threads 2; loop %d; call RM_CONTROL 101 subject=0x20800102; call RM_ALLOC 29 subject=0x40 bytes=4096; call RM_FREE 13\nsleep 5; end; end\n"

# What one short-lived program does.
short = """launch vecadd %d; launch reduce 5 fn=cuLaunchKernelEx; copy 7 fn=cuMemcpyHtoD_v2; alloc a 5000; alloc b 70001; free a; sync 3 fn=cuCtxSynchronize
graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 5; graph execdestroy X
"""
forked = "fork; name child; launch saxpy 11; copy 3 fn=cuMemcpyHtoD_v2; alloc c 4097; sync 2 fn=cuCtxSynchronize; end\n"
executed = "exec workload-driver; launch vecadd 13; copy 2; alloc d 4098; free d; end\n"
forms = ("workload-driver", "workload", "workload13", "workload-static", "workload-nopie", "workload-dlopen")

# Of copies whose direction the addresses have to tell: where memory is looked up while a tool places probes in that very
# process, the kernel gives no answer, and the direction is shown as unknown. So many at most, of all.
directions_unknown = 1e-6

# cudatop's stacks are samples, of which some find their place taken.
uncounted = {"stacks_lost"}


class Ours:
    """A tool's rows without those of other programs on this machine."""

    def __init__(self, tool, calls):
        pids = {call["pid"] for call in calls}
        self.rows = [row for row in tool.rows if row.get("pid") in pids]
        self.arguments, self.name = tool.arguments, str(tool)

    def __str__(self):
        return self.name


# --- what each must have counted -------------------------------------------------------------------------------------

def without_directions(sums):
    return {key: n for key, n in sums.items() if key[-1] not in ("h2d_bytes", "d2h_bytes", "d2d_bytes")}


def in_one_direction(sums):
    return sum(n for key, n in sums.items() if key[-1] in ("h2d_bytes", "d2h_bytes", "d2d_bytes"))


def topped(tool, seen):
    got, want = tops.found(tops.rows(tool)), tops.expected(seen.calls)
    equal(without_directions(got), without_directions(want), f"{tool}, by pid")
    known, all_of_them = in_one_direction(got), in_one_direction(want)
    check((1 - directions_unknown) * all_of_them <= known <= all_of_them, f"{tool}: bytes by direction: {known} of {all_of_them}")


def launched(tool, seen):
    truth.same_counts(tool, [call for call in seen.calls if call["kind"] in ("kernel", "graph", "host")], by=("pid", "kernel"))


def copied(tool, seen):
    copies.same(tool, seen.calls, by=("pid",))
    of = collections.Counter()
    for row in tool.rows:
        of[row["kind"]] += row["copies"]
    check(of["unknown"] <= directions_unknown * of.total(), f"{tool}: copies by direction: {of}")


def waited(tool, seen):
    waits.same_waits(tool, seen.calls, by=("pid", "function", "wait"))


def allocated(tool, seen):
    memory.same_calls(tool, seen.calls, by=("pid", "kind"))


def graphed(tool, seen):
    got, want = collections.Counter(), collections.Counter()
    for call in seen.graph_calls:
        if call["exec"]:
            want.update({(call["pid"], name): n for name, n in graphs.count_of(call).items()})
    for row in tool.rows:
        got.update({(row["pid"], name): row[name] for name in graphs.sums})
    equal(+got, +want, f"{tool}: graphs")


def ioctls(tool, seen):
    equal(shown(tool), called(seen.driver_calls), f"calls of {tool}")


tools = {"cudatop": ([], topped), "cudalaunch": (["--by", "pid,kernel"], launched),
         "cudamemcpy": (["--by", "pid,kind", "-r", 0], copied), "cudasync": (["--by", "pid,api,wait"], waited),
         "gpualloc": (["--by", "pid,kind"], allocated), "cudagraph": ([], graphed),
         "nvioctl": (["--attach", "tracepoint", "-r", 0], ioctls)}


class Attached:
    """What a tool has said of the files that it has probed; it does when there are more, not when there are fewer."""

    def __init__(self, tool):
        self.tool, self.file, self.at = tool, tool.out_file, 0

    def __str__(self):
        with open(self.file, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 200))
            return f"{self.tool} (last: {file.read().decode(errors='replace')[-200:]})"

    def more(self):
        """The most files that it has spoken of since it was asked before."""
        files = 0
        with open(self.file, "rb") as file:
            file.seek(self.at)
            whole = file.read().rpartition(b"\n")[0]
        self.at += len(whole)
        for line in whole.splitlines():
            if line.startswith(b'{"type":"attached"'):
                files = max(files, json.loads(line)["files"])
        return files


# --- what is done ----------------------------------------------------------------------------------------------------

class Seen:
    """What all programs have done so far, by their own word."""

    def __init__(self):
        self.calls, self.graph_calls, self.driver_calls = [], [], []
        self.processes = self.containers = self.files = 0

    def take(self, workload):
        if isinstance(workload, Calls):
            self.driver_calls += workload.lines("ioctl")
        else:
            self.calls += workload.truth()
            of_machine = getattr(workload, "pids", {})
            self.graph_calls += [call | {"pid": of_machine.get(call["pid"], call["pid"])} for call in graphs.calls(workload)]
            self.processes += len(memory.truth_lines(workload, "process"))
        workload.truth_file.unlink()

    def made(self):
        return sum(call["count"] for call in self.calls if call["layer"] == "driver") + \
            sum(call["count"] for call in self.driver_calls)


class ShortLived:
    """Programs and containers, one after the other; the image's files are known to the tools."""

    def __init__(self, image, seen):
        self.image, self.seen, self.running, self.number = image, seen, [], 0

    def turn(self):
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
            self.seen.containers += 1
            return Container(begin + script, "workload-driver", image=self.image, cgroups=[group], warm=False).go(), group
        return Workload(script + forked + executed, forms[self.number % len(forms)], warm=False), None

    def end(self, one):
        workload, group = one
        self.seen.take(workload)
        self.running.remove(one)
        if group:
            group.remove()

    def finish(self):
        for one in list(self.running):
            self.end(one)


class NewFiles:
    """A container with a driver that no tool has seen, which calls once all of them have."""

    def __init__(self, seen, running):
        self.seen, self.running, self.stage = seen, running, self.start
        self.due = time.monotonic() + new_file_every / 3
        self.told = [Attached(tool) for tool in running]

    def turn(self):
        self.stage()

    def start(self):
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + new_file_every
        self.image = Image()
        for told in self.told:
            told.more()
        self.waited_for = list(self.told)
        self.workload = Container(begin + short % 17, "workload-driver", image=self.image, warm=False)
        self.stage = self.wait

    def wait(self):
        self.waited_for = [told for told in self.waited_for if told.more() <= known_files]
        if not self.waited_for:
            self.workload.go()
            self.stage = self.end
        check(time.monotonic() < self.due + 60 * harness.patience,
              f"a new file is probed by all tools, also by {', '.join(str(told) for told in self.waited_for)}")

    def end(self):
        if self.workload.process.poll() is None:
            return
        self.seen.take(self.workload)
        self.seen.files += 1
        shutil.rmtree(self.image.lower)
        self.stage = self.start

    def finish(self):
        while self.stage != self.start:
            self.stage()
            time.sleep(0.05)


def without_pids_used_again():
    """Rows are joined with what was done by pid, and an hour has more processes than the machine may have numbers."""
    limit = pathlib.Path("/proc/sys/kernel/pid_max")
    before = limit.read_text()
    limit.write_text("4194304")
    harness.at_end.append(lambda: limit.write_text(before))


def work():
    without_pids_used_again()
    seconds, outcomes, seen = round(minutes * 60), {}, Seen()
    image = Image()
    lasting = [Workload(begin + steady % (threads, seconds), "workload-driver", warm=False).ready(),
               Container(begin + steady % (1, seconds), "workload-driver", image=image, warm=False), Calls(drivers % seconds)]
    running = {}
    for name, (arguments, _) in tools.items():
        harness.binary = harness.build / name
        running[name] = programs.Tool(*arguments, "-i", interval, losses=True)
    samples = figures.Samples({name: tool.pid for name, tool in running.items()})
    churn = ShortLived(image, seen)
    new_files = NewFiles(seen, [tool for name, tool in running.items() if name != "nvioctl"])
    for workload in lasting:
        workload.go()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        churn.turn()
        new_files.turn()
        samples.take()
        for tool in running.values():
            check(tool.process.poll() is None, f"{tool} goes on: {tool.error}")
        time.sleep(0.02)
    churn.finish()
    new_files.finish()
    for workload in lasting:
        seen.take(workload)
    for name, tool in running.items():
        harness.binary = harness.build / name
        attempt(outcomes, name, "ends", tool.stop)
        attempt(outcomes, name, "counts", lambda: tools[name][1](Ours(tool, seen.driver_calls if name == "nvioctl" else seen.calls), seen))
        attempt(outcomes, name, "losses", lambda: equal({k: n for k, n in tool.lost.items() if k not in uncounted}, {}, f"losses of {tool}"))
        for what in figures.kinds:
            attempt(outcomes, name, what, lambda: samples.check_flat(name, what))
    print(f"{minutes:g} minutes: {seen.made():,} calls, {seen.processes} processes, {seen.containers} containers, "
          f"{seen.files} of them with a driver of their own\n{samples.table()}", flush=True)
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

    def holds(which):
        if not results.exists():
            raise Skip("the run has not come to its end")
        why = json.loads(results.read_text())[which]
        check(not why, why)
    holds.__module__ = "soak"
    case(holds, each={which: which for which in (f"{name}.{what}" for name in tools for what in
                                                 ("ends", "counts", "losses", *figures.kinds))}, alone=True)
