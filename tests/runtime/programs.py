# SPDX-License-Identifier: Apache-2.0
"""The two programs of each case: the workload, which records what it did, and the tool, which must report the same."""
import itertools
import json
import os
import re
import shutil
import signal
import subprocess

import harness
from harness import Failure, Skip, check, equal, wait_until

numbers = itertools.count(1)  # numbers that make file names in the case's folder unique

# Grid of the launch by which a workload maps its libraries before it is traced. No script uses this grid, so the launch
# can be removed from the truth.
warm_grid = [65521, 1, 1]


def kill_at_end(process):
    def end():
        if process.poll() is None:
            process.kill()
        process.wait()
    harness.at_end.append(end)


def copy_for_all(program):
    """A copy of a tool that ordinary users can execute, even if they cannot access the build folder."""
    original = program.resolve()  # all tools are links to one program
    folder = harness.here / f"{original.parent.name}-for-all"
    if not folder.exists():
        folder.mkdir()
        os.chmod(folder, 0o755)
        shutil.copy(original, folder)
    if not (folder / program.name).exists():
        (folder / program.name).symlink_to(original.name)
    return folder / program.name


class Workload:
    """A program of the stand-in that runs a script. By default it launches once, so that its libraries are mapped, and
    then waits for go(). In the script, {dir} is the case's folder, {go} the file that go() creates, and {up} the file
    that ready() waits for. `name`: its process name. `wrap` turns its command into the command that is run. `keep`:
    descriptors that it inherits."""

    def __init__(self, script, form="workload", *, warm=True, name=None, folder=None, env=None, preexec=None, start=True, keep=(),
                 wrap=lambda command: command):
        number = next(numbers)
        self.go_file, self.up_file, self.truth_file, error = (
            harness.here / f"workload{number}.{kind}" for kind in ("go", "up", "truth", "err"))
        if warm:
            script = f"launch scale 1 grid={warm_grid[0]}; touch {{up}}; wait {{go}}\n" + script
        if name:
            script = f"name {name}; {script}"
        for name, value in (("go", self.go_file), ("up", self.up_file), ("dir", harness.here)):
            script = script.replace(f"{{{name}}}", str(value))
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"} | (env or {})
        if harness.on_device:  # the form that opens the machine's driver
            form = "workload-dlopen"
            environment["WORKLOAD_DEVICE"] = "1"
        program = (folder or harness.standin) / form
        with open(error, "w") as stderr:
            self.process = subprocess.Popen(wrap([program, "--truth", self.truth_file, script]), env=environment,
                                            preexec_fn=preexec, pass_fds=keep, stdout=stderr, stderr=stderr)
        self.pid = self.process.pid
        self.error_file = error
        kill_at_end(self.process)
        if warm and start:
            self.ready()

    def ready(self):
        wait_until(lambda: self.up_file.exists() or self.process.poll() is not None, "the workload is up")
        if self.process.poll() is not None and not self.up_file.exists():
            self.skip_if_skipped()
            raise Failure(f"the workload ended with {self.process.returncode}: {self.error_file.read_text()}")
        return self

    def go(self):
        self.go_file.touch()
        return self

    def threads(self, count=1):
        """Waits until it has `count` threads besides the first, and returns their ids."""
        def others():
            ids = sorted(int(name) for name in os.listdir(f"/proc/{self.pid}/task") if int(name) != self.pid)
            return ids if len(ids) == count else None
        return wait_until(others, f"{count} threads")

    def wait(self, seconds=60):
        code = self.process.wait(seconds * harness.patience)
        self.skip_if_skipped()
        equal(code, 0, f"exit status of the workload ({self.error_file.read_text()})")
        return self

    def skip_if_skipped(self):
        if self.process.returncode == 77:
            raise Skip(self.error_file.read_text().removeprefix("workload: skipped: ").strip())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def truth(self):
        """Calls that a tracer must count, without setup and the first launch. Streams have the names that the tool
        gives them."""
        return calls_in(self.wait().truth_file)


def calls_in(truth_file):
    calls = []
    for line in truth_file.read_text().splitlines():
        row = json.loads(line)
        if row["type"] != "call" or row["kind"] == "setup" or row["grid"] == warm_grid:
            continue
        if row["stream"] == "0x0" and row["function"].endswith(("_ptsz", "_ptds")):
            row["stream"] = "0x2"
        calls.append(row)
    return calls


def unique_keys(pairs):
    keys = [key for key, _ in pairs]
    equal(len(keys), len(set(keys)), f"a JSON object has a duplicate key: {keys}")
    return dict(pairs)


def reject_constant(text):
    raise Failure(f"{text} is not JSON")


def ignore_and_block_signals():
    """Preexec function: ignores SIGCHLD, as after a shell's trap '' CHLD, and blocks all signals."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


class Tool:
    """One run of the case's tool. Its output goes to files, so that a slow case cannot block it. If the tool reports
    losses, the case fails unless `losses` is true. `attaches`: whether the tool attaches its probes. `program`: command
    after --, which the tool starts."""

    types = {"start", "attached", "table", "row", "event", "process", "hist", "stack", "lost", "end"}

    def __init__(self, *arguments, json=True, losses=False, env=None, preexec=None, stdout=None, banner=True,
                 attaches=True, program=()):
        if attaches and not program and not {"-p", "-t", "-c"} & set(arguments):
            harness.must_be_alone()  # the tool traces all processes, or uses a name that other cases use
        if "perf" in arguments:
            harness.must_be_alone()  # hundreds of probes are detached one by one, each after an RCU grace period
        number = next(numbers)
        self.json, self.losses_expected, self.all_records = json, losses, None
        self.out_file, self.error_file = harness.here / f"tool{number}.out", harness.here / f"tool{number}.err"
        self.arguments = [*map(str, arguments), *(["--json"] if json else []),
                          *(["--", *map(str, program)] if program else [])]
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        # Sanitizers use an exit status that the tool itself never has.
        environment |= {"ASAN_OPTIONS": "exitcode=99", "UBSAN_OPTIONS": "exitcode=99:print_stacktrace=1"} | (env or {})
        with open(self.out_file, "wb") as out, open(self.error_file, "wb") as error:
            self.process = subprocess.Popen([harness.binary, *self.arguments], stdin=subprocess.DEVNULL, env=environment,
                                            stdout=out if stdout is None else stdout, stderr=error, preexec_fn=preexec)
        self.pid = self.process.pid
        (harness.here / f"tool.{self.pid}").touch()  # for leftovers.find()
        kill_at_end(self.process)
        if banner:
            self.wait_for_banner()

    def __str__(self):
        return " ".join([harness.binary.name, *self.arguments])

    @property
    def error(self):
        return self.error_file.read_text(errors="replace")

    def wait_for_banner(self):
        wait_until(lambda: "Tracing " in self.error or self.process.poll() is not None, f"banner of {self}", 60)
        check("Tracing " in self.error, f"{self} ended with {self.process.poll()}: {self.error}")
        return self

    def stop(self, by=signal.SIGINT):
        self.process.send_signal(by)
        return self.finish()

    def finish(self, code=0, seconds=120):
        """Waits until it exits; checks its exit status, and that its output is complete and consistent."""
        status = self.process.wait(seconds * harness.patience)
        check(not re.search("Sanitizer|runtime error:", self.error), f"{self}: {self.error}")
        equal(status, code, f"exit status of {self} ({self.error})")
        if code == 0 and self.json:
            self.all_records = self.records  # cached: parsing many records takes time
            self.check_json()
        elif code == 0 and not self.losses_expected:
            # Messages about losses begin with a number. -v reports numbers of functions in the same form.
            losses = re.findall(rf"^{harness.binary.name}: \d+ (?!functions in).*", self.error, re.M)
            equal(losses, [], f"losses of {self}")
        return self

    def check_json(self):
        kinds = [record.get("type") for record in self.records]
        equal(set(kinds) - self.types, set(), f"types of lines of {self}")
        equal((kinds[:2], kinds[-1:]), (["start", "attached"], ["end"]), f"first and last lines of {self}")
        equal((kinds.count("start"), kinds.count("end")), (1, 1), f"starts and ends of {self}")
        if not self.losses_expected:
            equal(self.lost, {}, f"losses of {self}")

    @property
    def lines(self):
        """Complete lines so far."""
        return self.out_file.read_bytes().decode(errors="strict" if self.json else "replace").split("\n")[:-1]

    @property
    def text(self):
        return self.out_file.read_bytes().decode(errors="replace")

    @property
    def records(self):
        if self.all_records is not None:
            return self.all_records
        return [{key: value for key, value in record.items() if key not in common_keys(record["type"])} for record in self.full_records]

    @property
    def full_records(self):
        """Records with the keys that identify run, host and tool."""
        return [json.loads(line, object_pairs_hook=unique_keys, parse_constant=reject_constant) for line in self.lines]

    def of_type(self, kind):
        return [record for record in self.records if record["type"] == kind]

    @property
    def rows(self):
        return self.of_type("row")

    @property
    def events(self):
        return self.of_type("event")

    @property
    def lost(self):
        """Losses of the whole run, by key."""
        total = {}
        for record in self.of_type("lost"):
            for key, value in record.items():
                if key != "type":
                    total[key] = total.get(key, 0) + value
        return total


def common_keys(kind):
    """Keys of lines of this type that only identify the run."""
    if kind == "start":
        return {"run", "monotonic_ns"}
    return {"run", "host", "boot_id", "tool", "schema", "monotonic_ns"} | ({"time"} if kind in ("attached", "table", "process", "lost", "end") else set())


def use_realtime_priority():
    """Preexec function: lets a measured program run without delay even if the machine is busy."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:  # its cgroup has no realtime budget
        os.nice(-20)


def trace(script, *arguments, form="workload", timed=False, **options):
    """Traces one workload from before its script to its end; returns the tool and the truth. `timed`: the case checks
    durations of calls."""
    workload = Workload(script, form, preexec=use_realtime_priority if timed else None)
    tool = Tool("-p", workload.pid, *arguments, **options)
    workload.go().wait()
    return tool.finish(), workload.truth()


def check_record_types(tool, mode, name):
    """Checks that a tool's records have exactly the types of this mode, and identify the tool. Returns the type of its
    rows, events or histograms."""
    kind = "hist" if "-H" in mode else "event" if "-e" in mode else "row"
    related = {"row": {"table"}, "event": {"process"}}.get(kind, set())
    equal({record["type"] for record in tool.records}, {"start", "attached", kind, "end"} | related, "types of lines")
    start = tool.records[0]
    equal((start["tool"], start["schema"]), (name, 1), "start")
    return kind
