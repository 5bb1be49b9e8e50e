# SPDX-License-Identifier: Apache-2.0
"""A check is a function with the decorator @check. An exception means failure; Skip means skipped."""
import os
import pathlib
import subprocess
import traceback

checks = []
source = pathlib.Path(__file__).resolve().parent.parent  # tests/standin
build = None                                             # folder of the built programs; set by main.py


class Skip(Exception):
    pass


def check(function):
    checks.append(function)
    return function


def equal(got, want, what=""):
    if isinstance(got, (set, frozenset)):  # show only the differences of large sets
        got, want = got - want, want - got
    assert got == want, f"{what}: got {got!r}, want {want!r}"


def table(name):
    """Words of each line of an export list."""
    lines = (source / name).read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def run_all():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for function in checks:
        name = f"{function.__module__}.{function.__name__}"
        try:
            function()
            counts["passed"] += 1
        except Skip as reason:
            counts["skipped"] += 1
            print(f"SKIP {name}: {reason}")
        except Exception:
            counts["failed"] += 1
            print(f"FAIL {name}\n{traceback.format_exc()}")
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    return 1 if counts["failed"] else 0


def environment(**extra):
    """The environment without LD_LIBRARY_PATH: the programs must find their libraries without it."""
    return {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"} | extra
