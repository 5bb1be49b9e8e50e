# SPDX-License-Identifier: Apache-2.0
"""Memory of each tool right after its start: its BPF maps (on this machine, and estimated for 256 CPUs) and its
anonymous memory. Mapped files are not limited, since the kernel can reclaim them."""
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
front_bytes = 4 * MiB  # maximum size of the map of front rows, for any number of CPUs (src/rows/calls.cpp)
tables_bytes = {"cudatop": 27 * MiB}
tables_bytes_of_others = 20 * MiB
own_bytes = 6 * MiB


def tables(pid):
    """The kernel's description of each BPF map (from fdinfo)."""
    found = {}
    for text in descriptors(pid):
        fields = dict(re.findall(r"^(\w+):\s+(\w+)$", text, re.MULTILINE))
        if "map_id" in fields:
            found[fields["map_id"]] = {key: int(value, 0) for key, value in fields.items() if key.startswith("map_") or key in
                                       ("key_size", "value_size", "max_entries", "memlock")}
    return found.values()


def bytes_with_many_cpus(table):
    """Memory of a map on a machine with 256 CPUs. Maps that allocate entries on demand are counted without growth."""
    if table["map_type"] not in per_cpu_kinds or table["map_flags"] & no_prealloc:
        return table["memlock"]
    more = cpus - len(os.sched_getaffinity(0))
    return table["memlock"] + table["max_entries"] * ((table["value_size"] + 7) // 8 * 8) * more


def memory_is_bounded(name):
    running = Tool("-p", os.getpid(), losses=True)
    found = list(tables(running.pid))
    with open(f"/proc/{running.pid}/status") as file:
        sizes = re.findall(r"^Rss(?:Anon|File):\s+(\d+) kB", file.read(), re.MULTILINE)
        own, mapped = (int(number) * 1024 for number in sizes)
    running.stop()
    here, estimate = sum(table["memlock"] for table in found), sum(map(bytes_with_many_cpus, found)) + front_bytes
    print(f"{name}: maps {here / MiB:.1f} MiB, with {cpus} CPUs at most {estimate / MiB:.1f}; "
          f"anonymous memory {own / MiB:.1f}, mapped files {mapped / MiB:.1f}")
    bound = tables_bytes.get(name, tables_bytes_of_others)
    check(found and here <= bound, f"{len(found)} maps use {here / MiB:.1f} MiB, the limit is {bound / MiB:.0f}")
    check(estimate <= bound + front_bytes + 2 * MiB, f"with {cpus} CPUs the maps would use {estimate / MiB:.1f} MiB")
    check(own <= own_bytes, f"the process uses too much anonymous memory: {own / MiB:.1f} MiB")


for tool in tools:
    def run():
        memory_is_bounded(harness.binary.name)
    run.__module__, run.__name__ = "test_memory", tool
    case(run, tool=tool)
