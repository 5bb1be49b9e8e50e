# SPDX-License-Identifier: Apache-2.0
"""Leftovers of tracing: BPF programs (a leftover link keeps its program loaded), tracefs events, breakpoints. Since
other tracers may run at the same time, anything that belongs to a running process is ignored."""
import functools
import glob
import json
import os
import re
import shutil
import subprocess
import time

import bpf

drivers = "nvidia", "modeset", "caps", "uvm", "uvm_tools", "kfd", "amdgpu"
kinds = ("launch", "copy", "batch", "memory", "leave", "wait", "mark", "state", "note", "alloc", "free", "handle", "release",
         "graph", "node", "event", "follow", "life", "calibrate")
# The kernel keeps only the first 15 characters of a name.
our_programs = {name[:15] for name in (
    *(f"{driver}_{call}_{end}" for driver in drivers for call in ("ioctl", "open", "close", "mmap") for end in ("entry", "return")),
    *(f"{kind}_{end}" for kind in kinds for end in ("entry", "return", "session")),
    *(f"{call}_{end}" for call in ("ioctl", "close", "mmap") for end in ("enter", "exit")),
    "function_entry", "function_return", "open_exit", "xid_event", "xid_report", "mapped_inodes", "registers")}
# Process names of the tools, which hold such programs.
tools = "cudatop", "cudalaunch", "cudamemcpy", "cudasync", "gpualloc", "cudagraph", "nvioctl", "cudagap", "ncclwait", \
    "gpuspend"
tracefs = "/sys/kernel/tracing/uprobe_events"


@functools.cache
def bpftool():
    """Path of bpftool. Ubuntu's bpftool is a wrapper that needs the tools package of the running kernel, although the
    bpftool of any kernel works."""
    for candidate in (os.environ.get("BPFTOOL"), shutil.which("bpftool", path=os.environ["PATH"] + ":/usr/sbin"),
                      *sorted(glob.glob("/usr/lib/linux-tools*/*/bpftool"), reverse=True)):
        if candidate and subprocess.run([candidate, "version"], capture_output=True).returncode == 0:
            return candidate
    return None


def show(kind, *which):
    done = subprocess.run([bpftool(), "--json", kind, "show", *map(str, which)], capture_output=True, text=True)
    found = json.loads(done.stdout or "[]")
    # An object that is deleted while bpftool lists it appears as an error.
    return [one for one in found if "id" in one] if isinstance(found, list) else found


def is_ours(name):
    return name in our_programs or name.startswith("gpusnoop_")


def programs():
    """Ids of all loaded programs that have the name of a gpusnoop program."""
    return {number for number in bpf.ids(bpf.PROGRAM) if is_ours(bpf.program_name(number))}


def ids_held(pid, key):
    """Values of a key (e.g. prog_id) in the fdinfo of all descriptors of a process."""
    ids = set()
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path) as file:
                ids |= {int(n) for n in re.findall(rf"^{key}:\s*(\d+)$", file.read(), re.M)}
        except OSError:
            pass
    return ids


def programs_of(pid):
    """Ids of the programs that a process holds by descriptor."""
    return ids_held(pid, "prog_id")


def call_programs(pid):
    """Ids of a tool's programs that run when a traced function is called. Its other programs identify files and inspect
    threads (src/proc)."""
    return {number for number in programs_of(pid) if not bpf.program_name(number).startswith(("mapped_inodes", "registers"))}


def pids_in_map(tool, name):
    """Process ids in a map of the tool. A key begins with the process id; in a trie, the prefix length precedes it."""
    held = ids_held(tool.pid, "map_id")
    table, = (m for m in show("map") if m["id"] in held and m.get("name", "") == name[:15])
    dump = subprocess.run([bpftool(), "--json", "map", "dump", "id", str(table["id"])], capture_output=True, text=True)
    at = 4 if table["type"] == "lpm_trie" else 0
    return {int.from_bytes(bytes(int(byte, 16) for byte in entry["key"][at:at + 4]), "little") for entry in json.loads(dump.stdout)}


def launches_probed(tool, pid):
    """True once launches of this process run a counting program of `tool`, according to the kernel's list of links.
    Works only for attach tiers that use uprobe_multi links. Breakpoints prove nothing, since a child inherits its
    parent's breakpoints. If links for all processes exist, they count only after the last link for a single process is
    removed."""
    links = filter(None, map(bpf.uprobe_multi_link, ids_held(tool, "link_id")))
    probed = {link.pid for link in links
              if "libcuda.so" in link.path and bpf.program_name(link.program).startswith("launch_")}
    return pid in probed or probed == {0}


def held_by_a_process(ids):
    """Returns the ids of those programs that some process holds. Checks gpusnoop's tools first, since there are many
    other processes."""
    left, others = set(ids), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/comm", errors="replace") as file:
                comm = file.read().strip()
        except OSError:
            continue
        if comm in tools:
            left -= programs_of(name)
        else:
            others.append(name)
    for name in others if left else ():
        left -= programs_of(name)
    return set(ids) - left


def stale_events(pids):
    """Uprobe events that were defined by one of these processes, if that process has exited."""
    try:
        with open(tracefs) as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    names = [m for line in lines if (m := re.match(r"[pr]:(gpusnoop/p(\d+)_\d+) ", line))]
    return sorted({m[1] for m in names if int(m[2]) in pids and not os.path.exists(f"/proc/{m[2]}")})


def remove(events):
    for event in events:
        fd = os.open(tracefs, os.O_WRONLY | os.O_APPEND)  # open("a") seeks, which this file refuses
        os.write(fd, f"-:{event}\n".encode())
        os.close(fd)


def find(before, pids):
    """Programs without a holder that did not exist in `before` (from programs()), and events of the tools with these
    pids. The kernel frees links some time after their process exits, so this waits up to 30 s. A program that has a
    holder at the start belongs to another running case, and is ignored from then on."""
    end = time.monotonic() + 30
    ids = programs() - before
    ids -= held_by_a_process(ids) if ids else set()
    while True:
        events = stale_events(pids)
        if not ids and not events:
            return []
        if time.monotonic() > end:
            break
        time.sleep(0.01)
        ids &= programs() if ids else set()
    remove(events)  # otherwise every later case would find them, and fail
    return [f"BPF program {i}" for i in sorted(ids)] + [f"uprobe event {e}" for e in events]


def foreign_programs():
    """Returns BPF programs of gpusnoop that processes outside this case hold. If there are any, another tool is
    running, and may trace the case's processes."""
    import harness
    import system
    harness.must_be_alone()
    ours = {os.getpid(), *system.descendants()}
    others = (programs_of(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in ours)
    return programs() & set().union(*others)


def run_count(ids):
    """How often these programs have run in total, while count_runs() is active."""
    return sum(map(bpf.runs, ids))


def count_runs():
    """Makes the kernel count runs of BPF programs until the returned descriptor is closed (BPF_ENABLE_STATS)."""
    import harness
    harness.must_be_alone()
    return bpf.enable_statistics()


def check_no_breakpoints(pid, library):
    """Fails if a process has breakpoints in a library, unless another tracer may have set them."""
    from harness import check, wait_until

    def ours():
        free = not foreign_programs()
        found = breakpoints(pid, library)
        return (found, free and not foreign_programs()) if free or not found else None
    for attempt in range(5):
        found, alone = wait_until(ours, "other tracers on this machine end", 60)
        if not found:
            return
        time.sleep(0.2)
    check(not alone, f"breakpoints are left in {library} of process {pid}: {found}")


def breakpoints(pid, library):
    """Offsets in the file of `library` (part of its path) at which the memory of a process differs from the file: only
    breakpoints change an executable mapping."""
    import harness
    harness.must_be_alone()
    different = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            fields = line.split(maxsplit=5)  # a path may contain spaces
            if len(fields) < 6 or "x" not in fields[1] or library not in fields[5]:
                continue
            start, end = (int(n, 16) for n in fields[0].split("-"))
            memory.seek(start)
            got = memory.read(end - start)
            with open(f"/proc/{pid}/map_files/{start:x}-{end:x}", "rb") as file:
                offset = int(fields[2], 16)
                file.seek(offset)
                want = file.read(end - start)
            different += [offset + i for i, (a, b) in enumerate(zip(got, want)) if a != b]
    return different
