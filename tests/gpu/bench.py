# SPDX-License-Identifier: Apache-2.0
"""A workload, and tools that trace it, for findings.py."""
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

import processes


class Missing(Exception):
    """A requirement of a finding is missing: the finding is skipped."""


class Wrong(Exception):
    """A result is not as expected: the finding fails."""


def until(condition, expectation, seconds=60):
    seconds *= float(os.environ.get("GPUSNOOP_PATIENCE", 1))  # for emulated machines of tests/kernels
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise Wrong(f"not within {seconds} s: {expectation}")
        time.sleep(0.02)
    return value


class Bench:
    """A workload, and tools that trace it. In the script, {folder} is replaced by the folder with the output of the
    workload and the tools."""

    def __init__(self, build, folder):
        self.build, self.folder, self.running = build, folder, []

    def workload(self, script):
        """Starts the workload; it runs the script after go()."""
        script = "dlopen; launch scale 1; sync 1; touch {folder}/up; wait {folder}/go\n" + script
        process = self.start([self.build / "standin/workload-dlopen", script.replace("{folder}", str(self.folder))], "workload",
                             os.environ | {"WORKLOAD_DEVICE": "1"})
        until(lambda: (self.folder / "up").exists() or process.poll() is not None, "the workload has started")
        return process

    def go(self):
        (self.folder / "go").touch()

    def tool(self, name, *arguments):
        process = self.start([self.build / name, "--json", *map(str, arguments)], name)
        messages = self.folder / f"{name}.err"
        until(lambda: processes.is_tracing(messages) or process.poll() is not None, f"{name} is tracing")
        if process.poll() is not None:
            raise Missing(messages.read_text(errors="replace").strip()[-300:])
        return process

    def start(self, command, name, env=None):
        with open(self.folder / f"{name}.out", "w") as out, open(self.folder / f"{name}.err", "w") as error:
            self.running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=error, env=env))
        return self.running[-1]

    def rows(self, name):
        """The rows in the complete lines that a tool has printed so far."""
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
