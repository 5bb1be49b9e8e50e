# SPDX-License-Identifier: Apache-2.0
"""Resources of running tools, sampled once a second: memory, descriptors, and the memory of their BPF maps."""
import os
import re
import time

from harness import check

# Allowed growth from the first quarter of the run to its second half.
kinds = {"memory": 4 << 10, "descriptors": 8, "maps": 64}  # KiB, descriptors, KiB


def resident(pid):
    """VmRSS in KiB."""
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"^VmRSS:\s*(\d+)", file.read(), re.M)[1])


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def maps(pid):
    """Memory in KiB of the process's BPF maps, each counted once."""
    memory_of_map = {}
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{name}") as file:
                fields = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
        except OSError:  # closed since the folder was listed
            continue
        if "map_id" in fields:
            memory_of_map[fields["map_id"]] = int(fields["memlock"])
    return sum(memory_of_map.values()) >> 10


class Samples:
    def __init__(self, pids):
        self.pids, self.due, self.values = pids, 0, {name: {kind: [] for kind in kinds} for name in pids}

    def sample(self):
        """Takes a sample if a second has passed."""
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + 1
        for name, pid in self.pids.items():
            for kind, measure in (("memory", resident), ("descriptors", descriptors), ("maps", maps)):
                self.values[name][kind].append(measure(pid))

    def maxima(self, name, kind):
        """Returns the maxima of the first quarter and of the second half."""
        values = self.values[name][kind]
        return max(values[:len(values) // 4]), max(values[len(values) // 2:])

    def check_flat(self, name, kind):
        early, late = self.maxima(name, kind)
        check(late <= early + kinds[kind],
              f"{kind} of {name} grew: at most {early} in the first quarter, {late} in the second half")

    def table(self):
        lines = ["| tool | memory, KiB | descriptors | BPF maps, KiB |", "| --- | --- | --- | --- |"]
        for name in self.pids:
            cells = " | ".join("{} -> {}".format(*self.maxima(name, kind)) for kind in kinds)
            lines.append(f"| {name} | {cells} |")
        return "\n".join(lines)
