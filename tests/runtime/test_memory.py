# SPDX-License-Identifier: Apache-2.0
"""What a tool that has just begun takes of memory: its tables in the kernel, here and with 256 CPUs, and what its process has
for itself. What that has mapped is one of the two: tables, or files, which the kernel takes back when it wants to."""
import os
import re

import harness
from harness import case, check
from programs import Tool
from test_idle import descriptors, tools

MiB = 1 << 20
per_cpu_kinds = (5, 6, 10)  # BPF_MAP_TYPE_PERCPU_HASH, _PERCPU_ARRAY, _LRU_PERCPU_HASH
no_prealloc = 1
cpus = 256
front_bytes = 4 * MiB  # at most, however many CPUs there are: src/rows/calls.cpp, tests/unit/rows/calls_test.cpp
tables_bytes = {"cudatop": 27 * MiB}
tables_bytes_of_others = 20 * MiB
own_bytes = 6 * MiB


def tables(pid):
    """What the kernel says of each, by its number."""
    found = {}
    for text in descriptors(pid):
        fields = dict(re.findall(r"^(\w+):\s+(\w+)$", text, re.MULTILINE))
        if "map_id" in fields:
            found[fields["map_id"]] = {key: int(value, 0) for key, value in fields.items() if key.startswith("map_") or key in
                                       ("key_size", "value_size", "max_entries", "memlock")}
    return found.values()


def with_many_cpus(table):
    """Its bytes. One that makes room for each CPU when a row comes has none of it yet."""
    if table["map_type"] not in per_cpu_kinds or table["map_flags"] & no_prealloc:
        return table["memlock"]
    more = cpus - len(os.sched_getaffinity(0))
    return table["memlock"] + table["max_entries"] * ((table["value_size"] + 7) // 8 * 8) * more


def takes_little(name):
    running = Tool("-p", os.getpid(), losses=True)
    found = list(tables(running.pid))
    with open(f"/proc/{running.pid}/status") as file:
        own, of_files = (int(number) * 1024 for number in re.findall(r"^Rss(?:Anon|File):\s+(\d+) kB", file.read(), re.MULTILINE))
    running.stop()
    here, there = sum(table["memlock"] for table in found), sum(map(with_many_cpus, found)) + front_bytes
    print(f"{name}: tables {here / MiB:.1f} MiB, with {cpus} CPUs at most {there / MiB:.1f}; "
          f"of its own {own / MiB:.1f}, mapped {of_files / MiB:.1f}")
    bound = tables_bytes.get(name, tables_bytes_of_others)
    check(found and here <= bound, f"{len(found)} tables take {here / MiB:.1f} MiB, not {bound / MiB:.0f}")
    check(there <= bound + front_bytes + 2 * MiB, f"with {cpus} CPUs they would take {there / MiB:.1f} MiB")
    check(own <= own_bytes, f"its process takes {own / MiB:.1f} MiB")


for tool in tools:
    def run():
        takes_little(harness.binary.name)
    run.__module__, run.__name__ = "test_memory", tool
    case(run, tool=tool)
