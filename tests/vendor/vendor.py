# SPDX-License-Identifier: Apache-2.0
"""Fetched libraries, and programs that call them."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import harness
from harness import Skip, check, equal
from programs import Tool, kill_at_end, numbers

fetched = harness.build / "vendor"
programs = harness.build / "vendor-tests"
fetch_error = ""  # last message of tests/vendor/fetch, if it failed

# {driver version: offset of the best probe position in nearly all of its functions}. Before 580, functions are thunks.
# In 580 they begin with a stack frame. In 595 the thunk's test is followed by a stack frame.
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


def each(names):
    """For the `each` of a case: each name is its own value."""
    return {name: name for name in names}


def fetched_file(name):
    path = fetched / name
    if not path.exists():
        raise Skip(fetch_error or f"{name} could not be fetched")
    return path


def npm(folder, contents):
    """Folder of packages fetched from npm, which need node."""
    path = fetched / folder
    if not (path / "fetched").exists() or not shutil.which("node"):
        raise Skip(f"{contents} could not be fetched from npm, or node is not installed")
    return path.resolve()


def driver_folder(version):
    return fetched if version == "535" else fetched / version


def driver(version):
    return fetched_file(driver_folder(version).relative_to(fetched) / "libcuda.so.1")


def runtime(version):
    for path in runtimes[version]:
        if path.exists():
            return path
    raise Skip(fetch_error if version != "13.0" and fetch_error else f"libcudart {version} not found")


def inspect(what, path, names=()):
    """Output of inspect.cpp."""
    command = harness.build / "inspect", what, path
    done = subprocess.run(command, input="\n".join(names), text=True, capture_output=True)
    equal((done.returncode, done.stderr), (0, ""), f"inspect {what} {path}")
    return done.stdout.strip()


def placements(path, names):
    """Lines of inspect about the probes on these functions."""
    found = [json.loads(line) for line in inspect("placement", path, sorted(names)).splitlines()]
    equal(sorted(one["name"] for one in found), sorted(names), "functions found")
    return found


def exports(library, kinds="T"):
    """Names of exported functions. kinds: symbol types of nm; "TW" includes weak symbols."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    symbols = [line.split() for line in lines.splitlines()]
    return {fields[2].partition("@")[0] for fields in symbols if len(fields) == 3 and fields[1] in kinds}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def typed(declarations):
    """Type-checks (type name, file with the type, JSON) tuples with TypeScript. Returns {index: error}, for unknown
    fields and values of another type."""
    compiler = npm("grafana", "TypeScript") / "node_modules/typescript/bin/tsc"
    source = harness.here / "typed.ts"
    source.write_text("".join(f"import type {{ {name} as T{n} }} from '{file}'; export const v{n}: T{n} = {text};\n"
                              for n, (name, file, text) in enumerate(declarations)))
    command = ["node", compiler, "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext",
               "--moduleResolution", "bundler", source]
    done = subprocess.run(command, capture_output=True, text=True)
    found = {}
    for line, text in re.findall(r"typed\.ts\((\d+),\d+\): (.*)", done.stdout):
        found[int(line) - 1] = found.get(int(line) - 1, "") + text
    equal(done.returncode != 0, bool(found), f"status of TypeScript ({done.stdout})")
    return found


class Program:
    """A program that reads commands from stdin, and answers with JSON lines that end with one of type "done". It exits
    at the end of stdin."""

    def __init__(self, command, folder=None):
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        if folder:
            environment["LD_LIBRARY_PATH"] = str(folder)
        self.error_file = harness.here / f"caller{next(numbers)}.err"
        with open(self.error_file, "w") as error:
            self.process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE,
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
        raise harness.Failure(f"exited with status {self.process.wait()}: {self.error_file.read_text()}")

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(20), 0, f"exit status ({self.error_file.read_text()})")


class Caller(Program):
    """caller.py, with a library opened."""

    def __init__(self, library, folder=None, loader=()):
        program = pathlib.Path(__file__).with_name("caller.py")
        super().__init__([*loader, sys.executable, "-B", program, programs], folder)
        self.ask(f"open {library}")

    def calls(self, count=1):
        return named_streams(self.ask(f"calls {count}"))

    def calls_of_all_results(self, count=1):
        """Makes the calls before and after cuInit(), since they then fail with different errors."""
        before = self.calls(count)
        equal(self.ask("init"), [{"type": "init", "result": 100}], "cuInit")
        return before + self.calls(count)


def named_streams(truth):
    """Names streams as the tools do: the default stream of a _ptsz function is the per-thread one (0x2)."""
    for call in truth:
        if call["stream"] == "0x0" and call["function"].endswith("_ptsz"):
            call["stream"] = "0x2"
    return truth


def check_probes(library, offset, functions=frozenset(), *arguments):
    """Checks that a tool's -v lists exactly the functions that the library lacks, and that it probes all others at this
    offset. `functions`: known ones of the tool's table. Returns the size of the table."""
    caller = Caller(library)
    tool = Tool("-v", "-p", caller.pid, *arguments)
    name = re.escape(library.name.partition(".")[0])
    line = next((text for text in tool.error.splitlines() if re.search(name + r"\.so\S*: \d+ of", text)), "")
    found = re.search(r": (\d+) of (\d+) functions, (\d+) at \+(\d+)(; not in this file: (.*))?$", line)
    check(found, f"-v prints {line!r}")
    present, wanted, placed, delta = (int(found[i]) for i in range(1, 5))
    missing = set((found[6] or "").split())
    equal((placed, delta), (present, offset), "functions probed at the expected offset, and the offset")
    equal((len(missing), missing & exports(library)), (wanted - present, set()), "missing functions, and exported ones")
    equal(missing & functions, functions - exports(library), "missing functions")
    caller.end()
    tool.finish()
    return wanted
