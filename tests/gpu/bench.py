# SPDX-License-Identifier: Apache-2.0
"""A traced program and the tools that trace it, with their output in a temporary folder."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time


class Missing(Exception):
    """A requirement is missing: the check is skipped."""


class Wrong(Exception):
    """A result is not as expected: the check fails."""


def until(condition, expectation, seconds=60, *, watched=(), every=0.02):
    """Polls condition() and returns its first true value. Stops early if a watched process fails."""
    seconds *= float(os.environ.get("GPUSNOOP_PATIENCE", 1))  # for emulated machines of tests/kernels
    end = time.monotonic() + seconds
    while not (value := condition()):
        if failed := next((process for process in watched if process.poll()), None):
            raise Wrong(f"{failed.args[0]} exited with {failed.returncode}")
        if time.monotonic() > end:
            raise Wrong(f"not within {seconds} s: {expectation}")
        time.sleep(every)
    return value


def is_tracing(messages):
    """Whether a tool is tracing, according to the file with its messages. On a busy machine, it may print "Tracing"
    before it finds the library that a process has mapped."""
    text = messages.read_text(errors="replace")
    return "Tracing " in text and ("yet; waiting for one" not in text or "now; tracing" in text)


def end(processes, seconds=30):
    """Interrupts processes (SIGINT) one after the other; kills a process that does not exit in time."""
    for process in processes:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Bench:
    """In commands and environment variables, {folder} is replaced by the folder with the output."""

    def __init__(self, build, folder):
        self.build, self.folder, self.running = build, folder, []

    def start(self, command, name, env={}, stdin=subprocess.DEVNULL):
        in_folder = lambda text: str(text).replace("{folder}", str(self.folder))
        variables = os.environ | {key: in_folder(value) for key, value in env.items()}
        with open(self.folder / f"{name}.out", "w") as out, open(self.folder / f"{name}.err", "w") as error:
            self.running.append(subprocess.Popen([in_folder(word) for word in command], stdin=stdin, stdout=out,
                                                 stderr=error, env=variables, text=True))
        return self.running[-1]

    def workload(self, script):
        """Starts the workload; it runs the script after go()."""
        script = "dlopen; launch scale 1; sync 1; touch {folder}/up; wait {folder}/go\n" + script
        process = self.start([self.build / "standin/workload-dlopen", script], "workload", {"WORKLOAD_DEVICE": "1"})
        until(lambda: (self.folder / "up").exists() or process.poll() is not None, "the workload has started")
        return process

    def go(self):
        (self.folder / "go").touch()

    def tool(self, name, *arguments):
        process = self.start([self.build / name, "--json", *arguments], name)
        self.wait_for_tool(name, process)
        if process.poll() is not None:
            raise Missing(self.messages(name))
        return process

    def wait_for_tool(self, name, process):
        path = self.folder / f"{name}.err"
        until(lambda: is_tracing(path) or process.poll() is not None, f"{name} is tracing")

    def messages(self, name):
        return (self.folder / f"{name}.err").read_text(errors="replace").strip()[-300:]

    def rows(self, name):
        """The rows in the complete lines that a tool has printed so far."""
        return [json.loads(line) for line in (self.folder / f"{name}.out").read_text().split("\n")[:-1]]


@contextlib.contextmanager
def bench(build):
    with tempfile.TemporaryDirectory(prefix="gpusnoop-bench-") as name:
        one = Bench(build, pathlib.Path(name))
        try:
            yield one
        finally:
            end(reversed(one.running))
