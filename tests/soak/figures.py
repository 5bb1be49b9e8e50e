# SPDX-License-Identifier: Apache-2.0
"""Resources of the tools, sampled once a second: memory, descriptors, and memory of their BPF maps."""
import os
import re
import time

from harness import check

# Allowed growth from the first quarter of the run to the second half.
kinds = {"memory": 4 << 10, "descriptors": 8, "maps": 64}  # KiB, descriptors, KiB


def resident(pid):
    """KiB."""
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"^VmRSS:\s*(\d+)", file.read(), re.M)[1])


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def maps(pid):
    """KiB of all BPF maps of the process, each counted once."""
    held = {}
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{name}") as file:
                fields = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
        except OSError:  # closed meanwhile
            continue
        if "map_id" in fields:
            held[fields["map_id"]] = int(fields["memlock"])
    return sum(held.values()) >> 10


class Samples:
    def __init__(self, pids):
        self.pids, self.due, self.of = pids, 0, {name: {kind: [] for kind in kinds} for name in pids}

    def take(self):
        """Once a second."""
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + 1
        for name, pid in self.pids.items():
            for kind, read in (("memory", resident), ("descriptors", descriptors), ("maps", maps)):
                self.of[name][kind].append(read(pid))

    def compared(self, name, kind):
        """Maximum of the first quarter, and of the second half."""
        values = self.of[name][kind]
        return max(values[:len(values) // 4]), max(values[len(values) // 2:])

    def check_flat(self, name, kind):
        early, late = self.compared(name, kind)
        check(late <= early + kinds[kind], f"{kind} of {name}: at most {early} in the first quarter, but {late} in the second half")

    def table(self):
        lines = ["| tool | memory, KiB | descriptors | BPF maps, KiB |", "| --- | --- | --- | --- |"]
        for name in self.pids:
            cells = " | ".join("{} -> {}".format(*self.compared(name, kind)) for kind in kinds)
            lines.append(f"| {name} | {cells} |")
        return "\n".join(lines)
