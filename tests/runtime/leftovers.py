# SPDX-License-Identifier: Apache-2.0
"""What tracing puts into a system: BPF programs (a link holds its program), tracefs events, breakpoints. Others may
trace at the same time: what belongs to a living process is not ours to judge."""
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
kinds = ("launch", "copy", "batch", "memory", "leave", "wait", "mark", "state", "note", "alloc", "free", "handle", "gone",
         "graph", "node", "event", "follow", "life", "calibrate")
# As far as the kernel keeps names.
our_programs = {name[:15] for name in (
    *(f"{driver}_{call}_{end}" for driver in drivers for call in ("ioctl", "open", "close", "mmap") for end in ("entry", "return")),
    *(f"{kind}_{end}" for kind in kinds for end in ("entry", "return", "session")),
    *(f"{call}_{end}" for call in ("ioctl", "close", "mmap") for end in ("enter", "exit")),
    "function_entry", "function_return", "open_exit", "xid_event", "xid_report", "mapped_inodes", "registers")}
# Processes that hold such programs are called so.
tools = "cudatop", "cudalaunch", "cudamemcpy", "cudasync", "gpualloc", "cudagraph", "nvioctl", "cudagap", "ncclwait", \
    "gpuspend"
tracefs = "/sys/kernel/tracing/uprobe_events"


@functools.cache
def bpftool():
    """Ubuntu's bpftool is a wrapper that wants the tools of the running kernel; those of any kernel will do here."""
    for candidate in (os.environ.get("BPFTOOL"), shutil.which("bpftool", path=os.environ["PATH"] + ":/usr/sbin"),
                      *sorted(glob.glob("/usr/lib/linux-tools*/*/bpftool"), reverse=True)):
        if candidate and subprocess.run([candidate, "version"], capture_output=True).returncode == 0:
            return candidate
    return None


def show(kind, *which):
    done = subprocess.run([bpftool(), "--json", kind, "show", *map(str, which)], capture_output=True, text=True)
    found = json.loads(done.stdout or "[]")
    # What goes away while it is listed is an error in the list.
    return [one for one in found if "id" in one] if isinstance(found, list) else found


def is_ours(name):
    return name in our_programs or name.startswith("gpusnoop_")


def programs():
    """Ids of all programs with names like ours."""
    return {number for number in bpf.numbers(bpf.PROGRAM) if is_ours(bpf.program_name(number))}


def ids_held(pid, key):
    """Numbers behind this key of what a process holds by descriptor."""
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
    """The same without those that it runs itself, to tell files apart and to look at threads (src/proc)."""
    return {number for number in programs_of(pid) if not bpf.program_name(number).startswith(("mapped_inodes", "registers"))}


def pids_in_map(tool, name):
    """Processes that have entries in a table; its keys begin with the process id, a trie's with how many bits count."""
    held = ids_held(tool.pid, "map_id")
    table, = (m for m in show("map") if m["id"] in held and m.get("name", "") == name[:15])
    dump = subprocess.run([bpftool(), "--json", "map", "dump", "id", str(table["id"])], capture_output=True, text=True)
    at = 4 if table["type"] == "lpm_trie" else 0
    return {int.from_bytes(bytes(int(byte, 16) for byte in entry["key"][at:at + 4]), "little") for entry in json.loads(dump.stdout)}


def launches_probed(tool, pid):
    """True once launches of this process run a program of `tool` that counts, by the kernel's list of links; tiers with
    multi links only. A child has its parent's breakpoints in its memory, so those tell nothing; and links for everybody
    do not count before those for single processes, in whose place they come, have gone."""
    links = filter(None, map(bpf.uprobe_multi_link, ids_held(tool, "link_id")))
    probed = {link.pid for link in links
              if "libcuda.so" in link.path and bpf.program_name(link.program).startswith("launch_")}
    return pid in probed or probed == {0}


def held_by_a_process(ids):
    """Those of them that some process holds; the tools are asked first, as there are many other processes."""
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
    """Definitions of uprobe events that these processes have left, which have ended."""
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
    """What has been left since `before` (programs()), and by the tools with these process ids. The kernel takes links
    apart after their process has ended, so this waits a while before it says so. Other cases go on meanwhile: what is
    somebody's now cannot have been left before, also if it is nobody's later."""
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
    remove(events)  # they would stay, and fail every later case
    return [f"BPF program {i}" for i in sorted(ids)] + [f"uprobe event {e}" for e in events]


def foreign_programs():
    """Programs like ours that somebody else holds: another tool runs, and may trace what the cases start."""
    import harness
    import system
    harness.must_be_alone()
    ours = {os.getpid(), *system.descendants()}
    others = (programs_of(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in ours)
    return programs() & set().union(*others)


def run_count(ids):
    """How often these programs have run, all together. The kernel counts while it is told to: see count_runs()."""
    return sum(map(bpf.runs, ids))


def count_runs():
    """The kernel counts runs as long as this descriptor is open (BPF_ENABLE_STATS)."""
    import harness
    harness.must_be_alone()
    return bpf.enable_statistics()


def check_no_breakpoints(pid, library):
    """Fails if a process has any, but those of a stranger."""
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
    check(not alone, f"breakpoints in {library} of process {pid}: {found}")


def breakpoints(pid, library):
    """Offsets in the file of `library` (part of its path) at which the memory of a process differs from the file: an
    executable mapping is never written to but by those who set breakpoints."""
    import harness
    harness.must_be_alone()
    different = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            fields = line.split()
            if len(fields) < 6 or "x" not in fields[1] or library not in fields[5]:
                continue
            start, end = (int(n, 16) for n in fields[0].split("-"))
            memory.seek(start)
            there = memory.read(end - start)
            with open(f"/proc/{pid}/map_files/{start:x}-{end:x}", "rb") as file:
                offset = int(fields[2], 16)
                file.seek(offset)
                want = file.read(end - start)
            different += [offset + i for i, (a, b) in enumerate(zip(there, want)) if a != b]
    return different
