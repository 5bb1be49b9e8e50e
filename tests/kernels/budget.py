# SPDX-License-Identifier: Apache-2.0
"""Table of the number of instructions that the verifier processed, by program and kernel. The numbers are parsed from
the output of the cases, which check the budget themselves (tests/runtime/test_budget.py)."""
import re

line = re.compile(r"^verified (\S+) (\S+) (\d+)  (.*)$", re.M)
min_shown = 20_000  # verified instructions; programs with fewer on all kernels are left out


def read(text):
    """{(tool, program): instructions in the tool's most expensive mode}. Program "all" is the sum over all programs."""
    largest = {}
    for tool, program, number, _ in line.findall(text):
        key = tool, program
        largest[key] = max(largest.get(key, 0), int(number))
    return largest


def show(verified):
    """Prints the table in the README from {kernel: result of read()}."""
    if not verified:
        return
    keys = list(dict.fromkeys(key for found in verified.values() for key in found))
    keys = [key for key in keys if key[1] == "all" or max(found.get(key, 0) for found in verified.values()) >= min_shown]
    print(f"\nVerified instructions in the most expensive mode; programs below {min_shown:,} are left out:\n")
    print(f"| tool: program | {' | '.join(verified)} |\n|{' --- |' * (1 + len(verified))}")
    for tool, program in sorted(keys, key=lambda key: (key[0], key[1] != "all", key[1])):
        cells = [f"{found[tool, program]:,}" if (tool, program) in found else "" for found in verified.values()]
        print(f"| {tool}: {program} | {' | '.join(cells)} |")
    print()
