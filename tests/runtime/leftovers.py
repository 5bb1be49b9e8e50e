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

our_programs = re.compile(r"(nvidia|modeset|caps|uvm|uvm_tools|kfd|amdgpu)_(ioctl|open|close|mmap)_(entry|return)|"
                          r"function_(entry|return)|(ioctl|close|mmap)_(enter|exit)|open_exit|xid_(event|report)|"
                          r"(launch|copy|memory|leave|wait|mark|state|note|alloc|free|handle|gone|graph|node|event)_(entry|return|session)|mapped_inodes|gpusnoop_\w*")
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


def programs():
    """Ids of all programs with names like ours."""
    if not bpftool():
        return set()
    return {p["id"] for p in show("prog") if our_programs.fullmatch(p.get("name", ""))}


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


def launches_probed(tool, pid):
    """True once launches of this process run a program of `tool`, by the kernel's list of links; tiers with multi links
    only. A child has its parent's breakpoints in its memory, so those tell nothing."""
    held = ids_held(tool, "link_id")
    counting = {p["id"] for p in show("prog") if p.get("name", "").startswith("launch_")}
    return any(link["id"] in held and link["prog_id"] in counting and link.get("pid", 0) in (0, pid)
               and "libcuda.so" in link.get("path", "") for link in show("link"))


def owned_programs():
    ids = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            ids |= programs_of(name)
    return ids


def dead_events(pids):
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
    ids -= owned_programs() if ids else set()
    while True:
        events = dead_events(pids)
        if not ids and not events:
            return []
        if time.monotonic() > end:
            break
        time.sleep(0.05)
        ids &= programs() if ids else set()
    remove(events)  # they would stay, and fail every later case
    return [f"BPF program {i}" for i in sorted(ids)] + [f"uprobe event {e}" for e in events]


def strangers():
    """Programs like ours that somebody else holds: another tool runs, and may trace what the cases start."""
    import harness
    import system
    harness.must_be_alone()
    ours = {os.getpid(), *system.descendants()}
    others = (programs_of(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in ours)
    return programs() & set().union(*others)


def run_count(ids):
    """How often these programs have run, all together. The kernel counts while it is told to: see counting()."""
    return sum(p.get("run_cnt", 0) for i in ids for p in [show("prog", "id", i)] if isinstance(p, dict))


def counting():
    """The kernel counts runs as long as this descriptor is open (BPF_ENABLE_STATS)."""
    import ctypes
    import harness
    harness.must_be_alone()
    attributes = (ctypes.c_uint32 * 4)()  # type 0: BPF_STATS_RUN_TIME
    fd = ctypes.CDLL(None, use_errno=True).syscall(321, 32, ctypes.byref(attributes), 4)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "BPF_ENABLE_STATS")
    return fd


def check_no_breakpoints(pid, library):
    """Fails if a process has any, but those of a stranger."""
    from harness import check, wait_until

    def ours():
        free = not strangers()
        found = breakpoints(pid, library)
        return (found, free and not strangers()) if free or not found else None
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
