# SPDX-License-Identifier: Apache-2.0
"""What the verifier had to do for each program under each kernel: read from what the cases say, shown as one table.
The cases themselves hold the budget (tests/runtime/test_budget.py)."""
import re

line = re.compile(r"^verified (\S+) (\S+) (\d+)  (.*)$", re.M)
small = 5000  # what is nowhere as large as that is in no row


def read(text):
    """{(tool, program): instructions, in the largest of its modes}; the program of all together is called "all"."""
    largest = {}
    for tool, program, number, _ in line.findall(text):
        key = tool, program
        largest[key] = max(largest.get(key, 0), int(number))
    return largest


def show(verified):
    """{kernel: what was read}, as a table of the README."""
    if not verified:
        return
    keys = list(dict.fromkeys(key for found in verified.values() for key in found))
    keys = [key for key in keys if key[1] == "all" or max(found.get(key, 0) for found in verified.values()) >= small]
    print(f"\nVerified instructions, in the largest of all modes; programs below {small:,} are left out:\n")
    print(f"| tool: program | {' | '.join(verified)} |\n|{' --- |' * (1 + len(verified))}")
    for tool, program in sorted(keys, key=lambda key: (key[0], key[1] != "all", key[1])):
        cells = [f"{found[tool, program]:,}" if (tool, program) in found else "" for found in verified.values()]
        print(f"| {tool}: {program} | {' | '.join(cells)} |")
    print()
