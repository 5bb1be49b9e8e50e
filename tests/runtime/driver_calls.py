# SPDX-License-Identifier: Apache-2.0
"""Comparison of nvioctl's rows with the driver calls that build/standin/ioctls made."""
import collections
import json
import re

import harness
from harness import check, equal
from programs import Workload

known = re.compile(r"nvidia|kfd|card\d|renderD\d")


class Calls(Workload):
    """A program that makes the driver calls of a script, once go() is called."""

    def __init__(self, script, **options):
        super().__init__("touch {up}; wait {go}\n" + script, "ioctls", warm=False, **options)
        self.ready()

    def lines(self, *kinds):
        self.wait()
        rows = [json.loads(line) for line in self.truth_file.read_text().splitlines()]
        return [row for row in rows if row["type"] in kinds and known.match(row["device"])]


def command_of(device, request, wrapped_number=None):
    """Key of a command in the truth file and in rows. A command inside NVIDIA's transfer ioctl is identified by its own
    number."""
    if device.startswith("nvidia-uvm"):
        return request
    kind, number = request >> 8 & 0xff, request & 0xff
    return kind, number if wrapped_number is None else wrapped_number


def has_status(device):
    return bool(re.fullmatch(r"nvidiactl|nvidia\d+|nvidia-uvm(-tools)?", device))


def called(lines):
    """Counts in the truth file, by process, device, command and subject."""
    want = collections.defaultdict(collections.Counter)
    for row in lines:
        number = row["command"] if row["wrapped"] else None
        key = row["pid"], row["device"], command_of(row["device"], int(row["request"], 16), number), row["subject"]
        status = row["status"]
        failed = bool(row["errno"]) or (status is not None and 0 < status < 0x10000)
        unknown = not row["errno"] and status is None and has_status(row["device"])
        want[key] += collections.Counter(calls=row["count"], errors=row["count"] * failed, unknown=row["count"] * unknown)
        want[key][("bytes", "virtual_bytes")[row["virtual"]]] += (row["bytes"] or 0) * row["count"]
    return {key: {k: n for k, n in counts.items() if n} for key, counts in want.items()}


def shown(tool):
    """Counts of the tool's rows, with the keys of called()."""
    got = collections.defaultdict(collections.Counter)
    for row in tool.rows:
        if row["command"] in ("open", "close", "mmap"):
            continue
        key = row["pid"], row["device"], command_of(row["device"], int(row["request"], 16)), \
            int(row["subject"], 16) if "subject" in row else None
        for name in "calls", "errors", "unknown", "bytes", "virtual_bytes":
            got[key][name] += row.get(name, 0)
    return {key: {k: n for k, n in counts.items() if n} for key, counts in got.items() if counts["calls"]}


def same_calls(tool, workload):
    """Checks that counts are equal, except for hits that the kernel reports as skipped: a preemptible kernel may skip
    fentry programs."""
    got, want = shown(tool), called(workload.lines("ioctl"))
    skipped = tool.lost.get("hits_skipped", 0)
    if not skipped:
        equal(got, want, f"calls of {tool}")
    equal(sorted(got.keys() - want.keys()), [], f"{tool} reports calls that were not made")
    missing = sum(counts["calls"] - got.get(key, {}).get("calls", 0) for key, counts in want.items())
    check(missing <= skipped, f"calls of {tool}: {missing} are missing, but only {skipped} hits were skipped")
    for key, counts in got.items():
        check(all(n <= want[key].get(name, 0) for name, n in counts.items()), f"calls of {tool}: {key}: {counts}, {want[key]}")


def same_files(tool, workload, kinds=("open", "mmap", "close"), failures=True):
    """Checks opens, closes and mappings of device nodes. `failures`: whether the tool reports failed opens, which it
    cannot when it traces system calls."""
    want, got = collections.Counter(), collections.Counter()
    for row in workload.lines(*kinds):
        if failures or row["type"] != "open" or not row["errno"]:
            want[row["type"], row["device"], bool(row["errno"])] += row["count"]
    for row in tool.rows:
        if row["command"] in kinds:
            got[row["command"], row["device"], True] += row["errors"]
            got[row["command"], row["device"], False] += row["calls"] - row["errors"]
    equal(+got, +want, f"files of {tool}")
