# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's libraries as fetched, and the program that calls them."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

import harness
from harness import Skip, check, equal
from programs import kill_at_end, numbers

fetched = harness.build / "vendor"
programs = harness.build / "vendor-tests"
why_not_fetched = ""  # what fetch said

# By version; where a probe belongs on nearly all functions of that driver. Before 580 they are thunks, in 580 functions
# with a frame, in 595 the thunk's test is followed by a frame.
drivers = {"470": 10, "535": 10, "550": 10, "580": 0, "595": 10}

runtimes = {
    "11.8": [fetched / "cudart/11.8/libcudart.so.11.0"],
    "12.4": [fetched / "cudart/12.4/libcudart.so.12"],
    "13.0": [pathlib.Path(folder) / "lib64/libcudart.so.13" for folder in
             (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda") if folder],
}

results = {
    1: "CUDA_ERROR_INVALID_VALUE",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    400: "CUDA_ERROR_INVALID_HANDLE",
}
runtime_results = {
    35: "cudaErrorInsufficientDriver",
    100: "cudaErrorNoDevice",
}


def driver_folder(version):
    return fetched if version == "535" else fetched / version


def driver(version):
    path = driver_folder(version) / "libcuda.so.1"
    if not path.exists():
        raise Skip(why_not_fetched or f"no driver {version} could be fetched")
    return path


def runtime(version):
    for path in runtimes[version]:
        if path.exists():
            return path
    raise Skip(why_not_fetched if version != "13.0" and why_not_fetched else f"no libcudart {version} here")


def exports(library, kinds="T"):
    """Names of the functions that a library exports; W: also those that another library's may stand for."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    symbols = [line.split() for line in lines.splitlines()]
    return {fields[2].partition("@")[0] for fields in symbols if len(fields) == 3 and fields[1] in kinds}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def typed(declarations):
    """What TypeScript says of (type, file that has it, JSON) each, by number: fields that the type does not know, and
    values of another kind."""
    compiler = fetched / "grafana/node_modules/typescript/bin/tsc"
    if not compiler.exists() or not shutil.which("node"):
        raise Skip("no TypeScript could be fetched from npm, or there is no node")
    source = harness.here / "typed.ts"
    source.write_text("".join(f"import type {{ {name} as T{n} }} from '{file}'; export const v{n}: T{n} = {text};\n"
                              for n, (name, file, text) in enumerate(declarations)))
    done = subprocess.run(["node", compiler, "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution",
                           "bundler", source], capture_output=True, text=True)
    found = {}
    for line, text in re.findall(r"typed\.ts\((\d+),\d+\): (.*)", done.stdout):
        found[int(line) - 1] = found.get(int(line) - 1, "") + text
    equal(done.returncode != 0, bool(found), f"status of TypeScript ({done.stdout})")
    return found


class Program:
    """A program that does what it is told on stdin, answers in JSON lines up to one of type "done", and ends when that
    is closed."""

    def __init__(self, path, folder=None, loader=()):
        check(path.exists(), f"there is no {path}: make vendor-bins")
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        if folder:
            environment["LD_LIBRARY_PATH"] = str(folder)
        self.error_file = harness.here / f"caller{next(numbers)}.err"
        with open(self.error_file, "w") as error:
            self.process = subprocess.Popen([*loader, path], env=environment, text=True, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=error)
        self.pid = self.process.pid
        kill_at_end(self.process)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answers = []
        while text := self.process.stdout.readline():
            answers.append(json.loads(text))
            if answers[-1]["type"] == "done":
                return answers[:-1]
        raise harness.Failure(f"ended with {self.process.wait()}: {self.error_file.read_text()}")

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(20), 0, f"exit status ({self.error_file.read_text()})")


class Caller(Program):
    """The program `caller` with a library open."""

    def __init__(self, library=None, folder=None, loader=()):
        super().__init__(programs / "caller", folder, loader)
        if library:
            self.ask(f"open {library}")

    def calls(self, count=1):
        return named_streams(self.ask(f"calls {count}"))

    def calls_of_all_results(self, count=1):
        """Before and after cuInit() the same calls are refused for different reasons."""
        before = self.calls(count)
        equal(self.ask("init"), [{"type": "init", "result": 100}], "cuInit")
        return before + self.calls(count)


def named_streams(truth):
    """Streams as the tool names them: the default one of a _ptsz function is the thread's."""
    for call in truth:
        if call["stream"] == "0x0" and call["function"].endswith("_ptsz"):
            call["stream"] = "0x2"
    return truth
