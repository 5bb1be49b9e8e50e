# SPDX-License-Identifier: Apache-2.0
"""Processes choose which files they map and what a path leads to. The tool opens only their own regular files, and
still counts other processes."""
import ctypes
import os
import re
import shutil
import struct
import subprocess
import sys
import time

import harness
import system
from harness import case, check, equal, wait_until
from programs import Tool, Workload, kill_at_end
from truth import opening, same_counts

libc = ctypes.CDLL(None, use_errno=True)
unprivileged_uid = 65534
IN_OPEN, IN_NONBLOCK = 0x20, 0o4000
PR_CAPBSET_DROP, CAP_SYS_PTRACE = 24, 19


class Opens:
    """Counts how often any process opens a file (inotify)."""

    def __init__(self, path):
        self.descriptor = system.checked(libc.inotify_init1(IN_NONBLOCK), "inotify_init1")
        system.checked(libc.inotify_add_watch(self.descriptor, os.fsencode(path), IN_OPEN), "inotify_add_watch")

    def count(self):
        try:
            return len(os.read(self.descriptor, 1 << 20)) // 16
        except BlockingIOError:
            return 0


drop_privileges = f"""
import ctypes, mmap, os, struct, sys, time
os.setgroups([])
os.setresgid({unprivileged_uid}, {unprivileged_uid}, {unprivileged_uid})
os.setresuid({unprivileged_uid}, {unprivileged_uid}, {unprivileged_uid})
"""


def attacker(code, *words):
    """A Python program of an unprivileged user, started and ready."""
    process = subprocess.Popen([sys.executable, "-c", drop_privileges + code, *map(str, words)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, cwd="/")
    kill_at_end(process)
    equal(process.stdout.readline(), "up\n", "the attacker is up")
    return process


def own_folder(name):
    folder = harness.here / name
    folder.mkdir()
    os.chmod(folder, 0o777)
    return folder


def copy_of_driver(name):
    """Environment with LD_LIBRARY_PATH set to a new copy of the driver, which has no probes yet."""
    folder = harness.here / name
    folder.mkdir()
    shutil.copy(harness.standin / "libcuda.so.1", folder)
    return {"LD_LIBRARY_PATH": str(folder)}


script = "launch vecadd 1009; launch saxpy 503"


def victim_is_counted(tool, name):
    """Starts a process with its own copy of the driver, and waits until that copy is probed. Returns the calls that the
    process then made."""
    files = newest(tool)["files"]
    victim = Workload("launch vecadd 401", "workload-driver", env=copy_of_driver(name))
    wait_until(lambda: newest(tool)["files"] > files, f"the driver of {victim.pid} is probed")
    victim.go()
    return victim.truth()


def newest(tool):
    """The newest record of what the tool has attached."""
    return tool.of_type("attached")[-1]


def holds(tool, file):
    """True if the tool has this file (a result of os.stat()) open."""
    def identity(name):
        try:
            status = os.stat(f"/proc/{tool.pid}/fd/{name}")
            return status.st_dev, status.st_ino
        except OSError:
            return None
    return (file.st_dev, file.st_ino) in map(identity, os.listdir(f"/proc/{tool.pid}/fd"))


@case(each={"device": "device", "fifo": "fifo"})
def link_in_library_path_to_a(kind):
    """LD_LIBRARY_PATH of -p's target has a link called libcuda.so.1: the tool does not open what it leads to."""
    decoy = harness.here / "decoy"
    if kind == "device":
        os.mknod(decoy, 0o600 | 0o020000, os.makedev(1, 3))
    else:
        os.mkfifo(decoy, 0o600)
    folder = own_folder("lib")
    (folder / "libcuda.so.1").symlink_to(decoy)
    opens = Opens(decoy)
    target = subprocess.Popen(["sleep", "60"], env={"LD_LIBRARY_PATH": str(folder)}, user=unprivileged_uid,
                              group=unprivileged_uid, extra_groups=[])
    kill_at_end(target)
    Tool("-p", target.pid).stop()
    equal(opens.count(), 0, "opens of the decoy")


@case(alone=True)
def a_library_that_becomes_a_link():
    """A library is repeatedly mapped, unmapped and replaced by a link to a device. The tool never opens the device."""
    decoy = harness.here / "decoy"
    os.mknod(decoy, 0o600 | 0o020000, os.makedev(1, 3))
    opens = Opens(decoy)
    tool = Tool(losses=True)
    attacker("""
folder, decoy = sys.argv[1:]
library = folder + "/libcuda.so.1"
os.symlink(decoy, folder + "/link")
for turn in range(1000):
    with open(library, "wb") as file:
        file.write(b"junk" * 1024)
    with open(library, "rb") as file:
        mapping = mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    mapping.close()
    os.rename(folder + "/link", library)
    os.unlink(library)
    os.symlink(decoy, folder + "/link")
print("up", flush=True)
""", own_folder("lib"), decoy).wait()
    tool.stop()
    equal(opens.count(), 0, "opens of the decoy")


@case(alone=True)
def links_of_a_container():
    """An absolute link in a container is resolved within the container's file system."""
    root = harness.here / "root"
    (root / "real").mkdir(parents=True)
    (root / "lib").mkdir()
    shutil.copy(harness.standin / "libcuda.so.1", root / "real/libcuda.so.1")
    (root / "lib/libcuda.so.1").symlink_to("/real/libcuda.so.1")
    process = subprocess.Popen([sys.executable, "-c",
                                f"import os, time; os.chroot({str(root)!r}); print('up', flush=True); time.sleep(60)"],
                               env={"LD_LIBRARY_PATH": "/lib"}, stdout=subprocess.PIPE, text=True)
    kill_at_end(process)
    equal(process.stdout.readline(), "up\n", "the container is up")
    tool = Tool("-p", process.pid)
    check(holds(tool, os.stat(root / "real/libcuda.so.1")), "the container's driver is not probed")
    tool.stop()


@case
def an_endless_environment():
    """prctl() makes /proc show a terabyte of the process's memory as its environment. The tool still starts in time,
    and uses little memory."""
    attack = attacker("""
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.sbrk.restype = ctypes.c_void_p, ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
size = 1 << 40
start = libc.mmap(None, size, 1, 0x4022, -1, 0)  # PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
field = lambda number: int(fields[number - 3])
layout = [field(26), field(27), field(45), field(46), field(47), libc.sbrk(0), field(28), field(48), field(49), start,
       start + size]
change = struct.pack("11QQII", *layout, 0, 0, 0xffffffff)
if libc.prctl(35, 14, change, len(change), 0):  # PR_SET_MM, PR_SET_MM_MAP
    print(os.strerror(ctypes.get_errno()), flush=True)
print("up", flush=True)
time.sleep(60)
""")
    begun = time.monotonic()
    tool = Tool("-p", attack.pid)
    check(time.monotonic() - begun < 10 * harness.patience, "the tool started too late")
    memory = int(next(line for line in open(f"/proc/{tool.pid}/status") if line.startswith("VmHWM:")).split()[1])
    check(memory < 100 << 10 or harness.binary.parent.name == "asan", f"the tool used {memory} KiB")
    tool.stop()


map_files = """
kept = []
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        kept.append(mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
print("up", flush=True)
time.sleep(60)
"""


@case(alone=True)
def many_junk_libraries():
    """600 files called libcuda.so.N without valid content: later processes are counted, and no descriptor is kept."""
    folder = own_folder("junk")
    for number in range(600):
        (folder / f"libcuda.so.{number}").write_bytes(b"junk" * 1024)
    tool = Tool("--by", "pid,kernel", losses=True)
    before = len(os.listdir(f"/proc/{tool.pid}/fd"))
    attacker(map_files, *sorted(folder.iterdir()))
    calls = victim_is_counted(tool, "own")
    wait_until(lambda: "junk/libcuda.so" in tool.error, "a warning about the files")
    check(len(os.listdir(f"/proc/{tool.pid}/fd")) < before + 64, "descriptors of junk are kept")
    check(tool.error.count("\n") < 300, "300 warnings or more")
    same_counts(tool.stop(), calls, by=("pid", "kernel"), ignore=opening)


@case(alone=True, timeout=120)
def many_real_libraries():
    """200 copies of the driver in one process: some are probed, the limit is reported, other processes are counted."""
    folder = own_folder("copies")
    driver = (harness.standin / "libcuda.so.1").resolve()
    for number in range(200):
        shutil.copy(driver, folder / f"libcuda.so.{number}")
    attack = attacker(map_files, *sorted(folder.iterdir()))
    tool = Tool("--by", "pid,kernel", losses=True)
    wait_until(lambda: f"process {attack.pid} maps more than 64 CUDA libraries" in tool.error, "the warning about the limit", 60)
    calls = victim_is_counted(tool, "own")
    attack.kill()
    attack.wait()
    same_counts(tool.stop(), calls, by=("pid", "kernel"), ignore=opening)


@case(alone=True, long=True, timeout=180)
def many_mappings():
    """60,000 mappings of a long path, and 50 new libraries a second: other processes are counted, and Ctrl-C works."""
    folder = own_folder("maps")
    deep = folder
    for _ in range(15):
        deep /= "d" * 200
        deep.mkdir()
    os.chmod(deep, 0o777)
    attacker("""
folder = sys.argv[1]
os.chdir(folder)
with open(sys.argv[2] + "/file", "wb") as file:
    file.write(b"x" * 8192)
libc = ctypes.CDLL(None)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
with open(sys.argv[2] + "/file", "rb") as file:
    for i in range(60000):
        libc.mmap(None, 4096, 1 + 4 * (i % 2), 2, file.fileno(), 0)  # PROT_READ, PROT_EXEC; MAP_PRIVATE
print("up", flush=True)
while True:
    with open("libcuda.so.1", "wb") as file:
        file.write(b"junk" * 1024)
    with open("libcuda.so.1", "rb") as file:
        mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
    os.unlink("libcuda.so.1")
    time.sleep(0.02)
""", folder, deep)
    tool = Tool("--by", "pid,kernel", 1, losses=True)
    calls = victim_is_counted(tool, "own")
    time.sleep(5)
    begun = time.monotonic()
    tool.stop()
    check(time.monotonic() - begun < 2 * harness.patience, f"{time.monotonic() - begun:.1f} s from Ctrl-C to the end")
    reports = {row["time"] for row in tool.rows}
    check(reports, "no reports")
    same_counts(tool, calls, by=("pid", "kernel"), ignore=opening)


@case(each={"session": "session", "multi": "multi", "tracefs": "tracefs", "perf": "perf"},
      long=harness.all_but_one_in(4, ["session", "multi", "tracefs", "perf"]), alone=True)
def a_container_that_exits(tier):
    """When a container exits, the tool closes its files and detaches its probes, within five seconds if no other
    container runs."""
    system.need_tier(tier)
    known = Workload("sleep 1")
    tool = Tool("--attach", tier, "--by", "pid,kernel", losses=True)  # calls made during attaching may be lost
    outside = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    system.private_mounts()
    image = harness.here / "image"
    image.mkdir()
    system.mount("tmpfs", image, "tmpfs")
    shutil.copy(harness.standin / "libcuda.so.1", image)
    driver, files = os.stat(image / "libcuda.so.1"), newest(tool)["files"]
    contained = Workload("launch vecadd 401; wait {dir}/end", "workload-driver", env={"LD_LIBRARY_PATH": str(image)})
    system.enter_mounts(outside)
    wait_until(lambda: newest(tool)["files"] > files, "the driver is probed")
    contained.go()
    (harness.here / "end").touch()
    calls = contained.truth()
    check(holds(tool, driver), "the tool does not have the container's driver open")
    wait_until(lambda: not holds(tool, driver), "the driver is closed")
    known.go().wait()
    same_counts(tool.stop(), calls, by=("pid", "kernel"), ignore=opening)


@case(alone=True)
def events_of_a_killed_run():
    """The next run removes uprobe events of a killed one."""
    system.need_tier("tracefs")
    workload = Workload("launch vecadd 401")
    killed = Tool("--attach", "tracefs", "-p", workload.pid)
    system.private_mounts()
    tracefs = harness.here / "tracefs"
    tracefs.mkdir()
    system.mount("tracefs", tracefs, "tracefs")
    events = lambda pid: f"gpusnoop/p{pid}_" in (tracefs / "uprobe_events").read_text()
    check(events(killed.pid), "the run created no events")
    killed.process.kill()
    killed.process.wait()
    check(events(killed.pid), "the events disappeared with the killed run")
    tool = Tool("--attach", "tracefs", "-p", workload.pid)
    check(not events(killed.pid) and events(tool.pid), "old events are left, or the new run has none")
    workload.go()
    same_counts(tool.finish(), workload.truth())


@case(alone=True)
def clean_after_a_killed_run():
    """--clean removes what killed runs left, and nothing of running ones."""
    system.need_tier("tracefs")
    workload = Workload("launch vecadd 401")
    killed, living = (Tool("--attach", "tracefs", "-p", workload.pid) for _ in range(2))
    system.private_mounts()
    tracefs = harness.here / "tracefs"
    tracefs.mkdir()
    system.mount("tracefs", tracefs, "tracefs")
    cache = harness.here / "cache"
    cache.mkdir(0o700)

    def events(pid):
        return set(re.findall(rf"gpusnoop/p{pid}_\d+", (tracefs / "uprobe_events").read_text()))

    def clean():
        tool = Tool("--clean", json=False, banner=False, attaches=False, env={"CACHE_DIRECTORY": str(cache)}).finish()
        equal(tool.error, "", "messages")
        return tool.lines
    lines = clean()
    check(events(killed.pid) and events(living.pid), "a run created no events")
    check("nothing to remove" in lines and any("of running processes" in line for line in lines), f"unexpected output of --clean before a run was killed: {lines}")
    killed.process.kill()
    killed.process.wait()
    left, kept = events(killed.pid), set()
    while kept != (now := events(living.pid)):  # until the tool has detached the probes that collected names
        kept = now
        time.sleep(2.5)
    check(left and kept, "the events of a run have disappeared")
    entry = "0123456789abcdef0123-4711"
    files = entry, f"{entry}.{killed.pid}.0123abcd", f"{entry}.{living.pid}.0123abcd", f"{entry}.{killed.pid}.more", "other"
    for name in files:
        (cache / name).touch(0o600)
    equal([line for line in clean() if "of running processes" not in line],
          [f"removed {len(left)} uprobe event{'s'[:len(left) != 1]} of killed runs",
           f"removed 1 unfinished file from {cache}"], "output")
    equal((events(killed.pid), events(living.pid)), (set(), kept), "events")
    equal({path.name for path in cache.iterdir()}, set(files) - {f"{entry}.{killed.pid}.0123abcd"}, "files")
    check("nothing to remove" in clean(), "--clean found something to remove again")
    workload.go()
    same_counts(living.finish(), workload.truth())
    check(f"removed 1 unfinished file from {cache}" in clean() and not events(living.pid), "the ended tool's unfinished file or its events are left")


@case(alone=True)
def mappings_that_may_not_be_read():
    """Without CAP_SYS_PTRACE the tool does not claim that no process maps CUDA."""
    def unprivileged():
        os.setgroups([])
        os.setresgid(unprivileged_uid, unprivileged_uid, unprivileged_uid)
        os.setresuid(unprivileged_uid, unprivileged_uid, unprivileged_uid)
    process = subprocess.Popen(["sleep", "60"], preexec_fn=unprivileged)
    kill_at_end(process)
    tool = Tool(preexec=lambda: system.checked(libc.prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0), "prctl"))
    check("cannot be read" in tool.error and "CAP_SYS_PTRACE" in tool.error, tool.error)
    tool.stop()


@case(each={"memfd": "memfd", "hashed": "hashed", "bare": "bare"})
def a_driver_in_another_form(kind):
    """The driver is in a memfd (used by programs that load libraries from archives), has a hash in its name (as in
    Python wheels), or has no section headers, which the dynamic loader does not need."""
    if kind == "memfd":
        descriptor = os.memfd_create("loader", 0)
        os.write(descriptor, (harness.standin / "libcuda.so.1").read_bytes())
        copy, keep = f"/proc/self/fd/{descriptor}", (descriptor,)
    else:
        copy, keep = harness.here / ("libcuda-a0b1c2d3.so.1" if kind == "hashed" else "libcuda.so.1"), ()
        data = bytearray((harness.standin / "libcuda.so.1").read_bytes())
        if kind == "bare":
            struct.pack_into("<Q", data, 40, 0)   # e_shoff
            struct.pack_into("<HH", data, 60, 0, 0)  # e_shnum, e_shstrndx
        copy.write_bytes(data)
    workload = Workload(script, "workload-driver", env={"LD_PRELOAD": str(copy)},
                        keep=keep)
    tool = Tool("-p", workload.pid)
    workload.go()
    same_counts(tool.finish(), workload.truth())
