# SPDX-License-Identifier: Apache-2.0
"""Control of standin/hip/main.cpp, a program that calls any function of a HIP library, and a record of its calls."""
import json
import os
import subprocess

import harness
from harness import check, equal
from programs import Tool, kill_at_end, numbers

versions = {version: version for version in ("5", "6", "7")}

# Arguments of calls.
stream = 0x5000
kernel, other_kernel = 0x401000, 0x402000
device, host = 0x7e0000000000, 0x7ffc00000000


def library(version):
    return harness.standin / f"hip/libamdhip64.so.{version}"


class Calls:
    """Calls functions of the library that was opened last. `made`: {function: {result: number of calls}}."""

    def __init__(self, *libraries, loader=(), env=None):
        self.error_file = harness.here / f"calls{next(numbers)}.err"
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"} | (env or {})
        with open(self.error_file, "w") as error:
            self.process = subprocess.Popen([*loader, harness.standin / "hip/calls"], env=environment, text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=error)
        kill_at_end(self.process)
        self.pid, self.made = self.process.pid, {}
        for path in libraries:
            self.ask(f"open {path}")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        check(answer, f"{line}: {self.error_file.read_text()}")
        return json.loads(answer)

    def call(self, function, count, *words):
        """Calls a function `count` times; returns the number of calls by result."""
        results = {int(result): n for result, n in self.ask(" ".join(map(str, ("call", function, count, *words))))["results"].items()}
        of_function = self.made.setdefault(function, {})
        for result, n in results.items():
            of_function[result] = of_function.get(result, 0) + n
        return results

    def order(self, what, number):
        self.ask(f"order standin_hip_{what} {number}")

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(20), 0, f"exit status ({self.error_file.read_text()})")


def start(program, *arguments, **options):
    harness.binary = harness.build / program
    return Tool(*arguments, **options)


def dim3(x, y, z):
    """Arguments for a dim3 passed by value, in two registers."""
    return y << 32 | x, z


def words(*values):
    return "{" + ",".join(map(str, values)) + "}"


def times(number):
    """Number of calls of the function at this position in a list. It is unique to the function."""
    return 3 + 2 * number
