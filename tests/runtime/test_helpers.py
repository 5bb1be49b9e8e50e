# SPDX-License-Identifier: Apache-2.0
"""Helpers parse data that other processes control. If a helper hangs or crashes, other processes are still counted."""
import contextlib
import lzma
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import harness
import system
from harness import case, check, equal, wait_until
from programs import Tool, Workload, kill_at_end
from truth import Rows, expected, opening, same_counts
from test_hostile_files import attacker, copy_of_driver, map_files, newest, own_folder, victim_is_counted

sanitized = lambda: harness.binary.parent.name == "asan"


def helpers(tool):
    return [int(pid) for pid in Path(f"/proc/{tool.pid}/task/{tool.pid}/children").read_text().split()]


def status(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())


def kilobytes(tool):
    """Memory (PSS) of the tool and its helpers."""
    total = 0
    for pid in [tool.pid, *helpers(tool)]:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a helper that has exited
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += sum(int(kib) for kib in re.findall(r"^Pss: +(\d+) kB$", text, re.M))
    return total


@case(alone=True)
def helpers_have_few_privileges():
    """A helper has its own user id, and only capabilities for reading."""
    tool = Tool()
    [helper] = helpers(tool)
    now = status(helper)
    uid = int(now["Uid"].split()[0])
    check(uid > 2**31, f"the helper's user id is too low: {uid}")
    CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE = 2, 19, 40
    may = sum(1 << number for number in (CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE))
    equal(int(now["CapEff"], 16) & ~may, 0, "effective capabilities other than for reading")
    equal(int(now["CapPrm"], 16) & ~may, 0, "permitted capabilities other than for reading")
    equal(now["NoNewPrivs"], "1", "NoNewPrivs")
    if not sanitized():
        equal(now["Seccomp"], "2", "Seccomp")
    check(len(os.listdir(f"/proc/{helper}/fd")) <= 6, os.listdir(f"/proc/{helper}/fd"))
    tool.stop()
    wait_until(lambda: not os.path.exists(f"/proc/{helper}"), "the helper exits with the tool")


@case(alone=True)
def the_tool_drops_capabilities():
    """Only the capabilities in drop_capabilities() are kept: none for the network, modules, raw devices or the clock."""
    tool = Tool()
    now = status(tool.pid)
    CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT, CAP_SYS_TIME, CAP_MKNOD = \
        12, 13, 16, 17, 22, 25, 27
    for dropped in (CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT, CAP_SYS_TIME, CAP_MKNOD):
        for which in ("CapEff", "CapPrm"):
            equal(int(now[which], 16) >> dropped & 1, 0, f"capability {dropped} in {which}")
    kept = {number for number in range(64) if int(now["CapPrm"], 16) >> number & 1}
    equal(kept - {1, 2, 5, 6, 7, 14, 19, 21, 24, 28, 34, 38, 39, 40}, set(), "capabilities that no tool needs")
    tool.stop()


@case(alone=True)
def a_killed_helper_is_replaced():
    tool = Tool("--by", "pid,kernel", losses=True)
    calls = []
    for turn in range(3):
        for helper in helpers(tool):
            os.kill(helper, signal.SIGKILL)
        calls += victim_is_counted(tool, f"own{turn}")
    same_counts(tool.stop(), calls, by=("pid", "kernel"), ignore=opening)


def file_system(name, file, *owner):
    """Path of the file on a FUSE mount, and the process that serves it: while the server is stopped, accesses hang. If
    `owner` (a user id) is given, all other users are refused, including root."""
    if not os.path.exists("/dev/fuse"):
        raise harness.Skip("this kernel has no FUSE")
    folder = harness.here / name
    folder.mkdir()
    # Runs after the server has exited.
    harness.at_end.append(lambda: subprocess.run(["umount", "-l", str(folder)], check=False))
    server = subprocess.Popen([sys.executable, str(Path(__file__).parent / "hanging_files.py"), str(folder), str(file),
                               *map(str, owner)],
                              stdout=subprocess.PIPE, text=True)
    kill_at_end(server)
    equal(server.stdout.readline(), "up\n", "the file system is up")
    return folder / file.name, server


def stop_at_last(server):
    harness.at_end.append(server.kill)  # runs first: closing a file of the mount waits for the server
    os.kill(server.pid, signal.SIGSTOP)


def stopped_file_system(name):
    """A process that maps a driver on a FUSE mount whose server is stopped after that."""
    file, server = file_system(name, (harness.standin / "libcuda.so.1").resolve())
    process = attacker(map_files, file)
    stop_at_last(server)
    return process, file


@case(each={"at_start": True, "later": False}, alone=True, timeout=120)
def a_file_system_that_does_not_answer(at_start):
    """The tool starts, reports the file and its process, counts other processes meanwhile, and exits on Ctrl-C."""
    if at_start:
        process, file = stopped_file_system("hanging")
    begun = time.monotonic()
    tool = Tool("--by", "pid,kernel", 1, losses=True)
    check(time.monotonic() - begun < 5 * harness.patience, f"it took {time.monotonic() - begun:.1f} s to start")
    if not at_start:
        process, file = stopped_file_system("hanging")
    meanwhile = victim_is_counted(tool, "own")  # while a helper hangs
    warning = f"{file} (process {process.pid}): it cannot be read within 3 s; it is not traced"
    wait_until(lambda: warning in tool.error, "the warning about the file that hangs", 20)
    after = victim_is_counted(tool, "after")
    time.sleep(1.5)
    begun = time.monotonic()
    tool.stop()
    check(time.monotonic() - begun < 1.5 * harness.patience, f"{time.monotonic() - begun:.1f} s from Ctrl-C to the end")
    same_counts(tool, meanwhile + after, by=("pid", "kernel"), ignore=opening)


def refused_library():
    """A process that maps a driver on its user's FUSE mount, which root may not read."""
    file, _ = file_system("refused", (harness.standin / "libcuda.so.1").resolve(), 65534)
    return attacker(map_files, file), file


def refusal(process, file):
    return (f"{file} (process {process.pid}) cannot be read, so its calls are not traced: Permission denied "
            "(a FUSE mount needs the option allow_other)")


@case(alone=True)
def a_library_that_root_may_not_read():
    """The library is reported once, with the reason, and the report does not claim that no process maps CUDA."""
    process, file = refused_library()
    empty = subprocess.run([harness.binary, "-d", "1"], capture_output=True, text=True, timeout=60)
    check("; a CUDA library cannot be read (see the warning)" in empty.stdout + empty.stderr, f"unexpected report without rows: {empty}")
    check("maps CUDA" not in empty.stdout + empty.stderr and "waiting for one" not in empty.stderr, f"false claims: {empty}")
    tool = Tool()
    wait_until(lambda: refusal(process, file) in tool.error, "the warning", 20)
    calls = victim_is_counted(tool, "own")
    same_counts(tool.stop(), calls, by=("pid",), ignore=opening)
    equal(tool.error.count(refusal(process, file)), 1, "warnings")


@case
def a_target_whose_library_root_may_not_read():
    """-p: the tool exits with the reason."""
    process, file = refused_library()
    run = subprocess.run([harness.binary, "-p", str(process.pid)], capture_output=True, text=True, timeout=60)
    equal(run.returncode, 1, f"exit status ({run.stderr})")
    check(refusal(process, file) in run.stderr, run.stderr)


map_and_launch = """
from ctypes import *
cuda = CDLL(sys.argv[1])
context = c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(byref(context), 0, 0) == 0
kept = []
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        kept.append(mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
print("up", flush=True)
sys.stdin.readline()
for turn in range(401):
    assert cuda.cuLaunchKernel(c_void_p(64), 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
print("done", flush=True)
time.sleep(60)
"""


@case(each={"8s": 20, "28s": 70}, long=["28s"], alone=True, timeout=120)
def a_slow_file_system(files):
    """A process maps a driver and then many slow files. The driver is scanned first, so calls of the process are
    counted. Tracing starts before its other files are scanned, with a warning."""
    data = harness.here / "data"
    data.write_bytes(bytes(4096))
    file, server = file_system("slow", data)
    process = attacker(map_and_launch, copy_of_driver("late")["LD_LIBRARY_PATH"] + "/libcuda.so.1",
                       *(f"{file}@{number}" for number in range(3, 3 + files)))
    server.send_signal(signal.SIGUSR1)
    victim = Workload("launch vecadd 401")
    begun = time.monotonic()
    tool = Tool("--by", "pid", losses=True)
    took = time.monotonic() - begun
    check(took < 5 * harness.patience, f"{took:.1f} s to start")
    warning = f"process {process.pid} could not be scanned in time"
    check(warning in tool.error and tool.error.count(warning) == 1, tool.error)
    check(newest(tool)["remarks"][0].startswith(warning), newest(tool))
    check("no process has loaded" not in tool.error, tool.error)
    victim.go().wait()
    process.stdin.write("go\n")
    process.stdin.flush()
    equal(process.stdout.readline(), "done\n", "the process has finished its calls")
    tool.stop()
    equal({row["pid"]: row["launches"] for row in tool.rows}, {victim.pid: 401, process.pid: 401}, f"launches ({tool.error})")


def sparse_elf(path, symbols, strings):
    """An ELF file of a few KiB on disk that claims to have this number of symbols and bytes of names."""
    sections = 4096
    symtab = 1 << 20
    strtab = symtab + symbols * 24
    section = lambda name, kind, offset, size, link, entry: struct.pack("2I4Q2I2Q", name, kind, 0, 0, offset, size, link, 1,
                                                                        8, entry)
    header = struct.pack("16s2HI3QI6H", b"\x7fELF\2\1\1", 3, 62, 1, 0, 64, sections, 0, 64, 56, 1, 64, 4, 3)
    with open(path, "wb") as file:
        file.truncate(strtab + strings)
        file.write(header + struct.pack("2I6Q", 1, 5, 0, 0, 0, 4096, 4096, 4096))
        file.seek(sections)
        file.write(section(0, 0, 0, 0, 0, 0) + section(1, 2, symtab, symbols * 24, 2, 24) +
                   section(9, 3, strtab, strings, 0, 0) + section(17, 3, 8192, 64, 0, 0))
        file.seek(8192)
        file.write(b"\0.symtab\0.strtab\0.shstrtab\0")


@case(alone=True, timeout=120)
def libraries_that_are_bombs():
    """20 files of a few KiB that claim 8 million symbols each: memory stays small, other processes are counted."""
    folder = own_folder("bombs")
    for number in range(20):
        sparse_elf(folder / f"libcuda.so.{number}", 8_000_000, 500 << 20)
    tool = Tool("--by", "pid,kernel", 1, losses=True)
    process = attacker(map_files, *sorted(folder.iterdir()))
    peak_kib = 0

    def all_are_reported():
        nonlocal peak_kib
        peak_kib = max(peak_kib, kilobytes(tool))
        return tool.error.count(f"(process {process.pid})") >= 20
    wait_until(all_are_reported, "a warning for each file", 60)
    calls = victim_is_counted(tool, "own")
    time.sleep(1.2)
    begun = time.monotonic()
    tool.stop()
    check(time.monotonic() - begun < 1.5 * harness.patience, f"{time.monotonic() - begun:.1f} s from Ctrl-C to the end")
    check(peak_kib < 100 << 10 or sanitized(), f"tool and helper used {peak_kib} KiB")
    same_counts(tool, calls, by=("pid", "kernel"), ignore=opening)


# The first page of a file: code that calls its argument, then bytes whose addresses serve as kernel handles.
code_at = 2048
calling = b"\x55\x48\x89\xe5\xff\xd7\x5d\xc3"  # push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret

launch_and_wait = """
from ctypes import *
driver, path = sys.argv[1:]
with open(path, "rb") as file:
    mapped = mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
at = addressof(c_char.from_buffer(mapped)) + 2048
call = CFUNCTYPE(c_int, c_void_p)(at)
cuda = CDLL(driver)
context = c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(byref(context), 0, 0) == 0
print("up", flush=True)
for turn in range(int(sys.stdin.readline())):
    assert cuda.cuLaunchKernel(c_void_p(at + 64 + turn % 8), 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
    assert call(cast(cuda.cuCtxSynchronize, c_void_p)) == 0
print("done", flush=True)
time.sleep(60)
"""


def names_in_a_file_that_hangs(tool, consequence):
    """The file hangs after the tool has attached to the process that maps it. The process then makes 1,000 calls."""
    code = harness.here / "code"
    code.write_bytes(bytes(code_at) + calling.ljust(4096 - code_at, b"\x90"))
    file, server = file_system("hanging", code)
    files = newest(tool)["files"] if tool.of_type("attached") else 0
    process = attacker(launch_and_wait, copy_of_driver("of_attacker")["LD_LIBRARY_PATH"] + "/libcuda.so.1", file)
    wait_until(lambda: tool.of_type("attached") and newest(tool)["files"] > files, "its driver is probed")
    time.sleep(1)  # until the tool has scanned its files
    stop_at_last(server)
    process.stdin.write("1000\n")
    process.stdin.flush()
    equal(process.stdout.readline(), "done\n", "the process has finished its calls")
    warning = f"{file} (process {process.pid}): it cannot be read within 3 s; {consequence}"
    wait_until(lambda: warning in tool.error, "the warning about the file that hangs", 20)
    return process


def ends_in_time(tool, consequence):
    begun = time.monotonic()
    tool.stop()
    check(time.monotonic() - begun < 1.5 * harness.patience, f"{time.monotonic() - begun:.1f} s from Ctrl-C to the end")
    equal(tool.error.count(consequence), 1, f"number of warnings in: {tool.error}")


@case(alone=True, timeout=120)
def kernel_names_in_a_file_that_hangs():
    """Kernels of the process that maps the file have no names; everything else is unaffected."""
    tool = Tool("--by", "pid,kernel", 1, losses=True)
    calls = victim_is_counted(tool, "own")
    consequence = "its kernels are no longer named"
    process = names_in_a_file_that_hangs(tool, consequence)
    calls += victim_is_counted(tool, "after")
    time.sleep(1.5)
    ends_in_time(tool, consequence)
    own = [row for row in tool.rows if row["pid"] == process.pid]
    equal(sum(row["launches"] for row in own), 1000, "launches of the process whose file hangs")
    equal({row.get("kernel") for row in own}, {None}, "their kernels")
    others = Rows(calls).count([row for row in tool.rows if row["pid"] != process.pid], ("pid", "kernel"), False)
    equal({key: n for key, n in others.items() if opening not in key},
          {key: n for key, n in expected(calls, ("pid", "kernel"), "driver", False).items() if opening not in key},
          "launches of other processes")


@case(alone=True, timeout=120, tool="cudasync")
def stack_through_a_file_that_hangs():
    """The stacks contain addresses instead of names, and all calls are counted."""
    tool = Tool("-U", 1, losses=True)
    consequence = "functions in its stacks are no longer named"
    process = names_in_a_file_that_hangs(tool, consequence)
    time.sleep(1.5)
    ends_in_time(tool, consequence)
    equal(sum(row["calls"] for row in tool.rows), 1000, "waits")
    check(all(row["frames"][0].startswith("0x") for row in tool.rows), f"unexpected callers: {[row['frames'][:2] for row in tool.rows]}")


def xz_bomb(path):
    """A library of 40 KiB with compressed symbols (.gnu_debugdata) that unpack to 256 MiB."""
    packer = lzma.LZMACompressor(preset=0)
    packed = b"".join([packer.compress(bytes(1 << 20)) for _ in range(256)] + [packer.flush()])
    names = b"\0.dynsym\0.dynstr\0.gnu_debugdata\0.shstrtab\0"
    dynsym, dynstr, strings, sections, data = 1024, 1100, 1200, 1400, 4096
    section = lambda name, kind, offset, size, link=0, entry=0: struct.pack(
        "2I4Q2I2Q", names.index(b"\0" + name) + 1 if name else 0, kind, 0, offset, offset, size, link, 1, 8, entry)
    header = struct.pack("16s2HI3QI6H", b"\x7fELF\2\1\1", 3, 62, 1, 0, 64, sections, 0, 64, 56, 1, 64, 5, 4)
    page = bytearray(4096)
    for at, content in ((0, header), (64, struct.pack("2I6Q", 1, 5, 0, 0, 0, 4096, 4096, 4096)), (dynstr, b"\0name\0"),
                            (strings, names), (code_at, calling),
                            (sections, section(b"", 0, 0, 0) + section(b".dynsym", 11, dynsym, 48, 2, 24) +
                             section(b".dynstr", 3, dynstr, 6) + section(b".gnu_debugdata", 1, data, len(packed)) +
                             section(b".shstrtab", 3, strings, len(names)))):
        page[at:at + len(content)] = content
    path.write_bytes(bytes(page) + packed)


@case(alone=True, timeout=120, tool="cudasync")
def compressed_symbols_that_are_a_bomb():
    """Memory stays small, and stacks through the file contain addresses."""
    file = harness.here / "bomb"
    xz_bomb(file)
    tool = Tool("-U", losses=True)
    process = attacker(launch_and_wait, copy_of_driver("of_attacker")["LD_LIBRARY_PATH"] + "/libcuda.so.1", file)
    wait_until(lambda: tool.of_type("attached") and newest(tool)["files"] > 0, "its driver is probed")
    process.stdin.write("1000\n")
    process.stdin.flush()
    equal(process.stdout.readline(), "done\n", "the process has finished its calls")
    end, peak_kib = time.monotonic() + 4, 0
    while time.monotonic() < end:
        peak_kib = max(peak_kib, kilobytes(tool))
    begun = time.monotonic()
    tool.stop()
    check(time.monotonic() - begun < 1.5 * harness.patience, f"{time.monotonic() - begun:.1f} s from Ctrl-C to the end")
    check(peak_kib < 100 << 10 or sanitized(), f"tool and helpers used {peak_kib} KiB")
    equal(sum(row["calls"] for row in tool.rows), 1000, "waits")
    check(all(row["frames"][0].startswith("bomb+0x") for row in tool.rows), [row["frames"][:2] for row in tool.rows])
