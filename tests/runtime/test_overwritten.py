# SPDX-License-Identifier: Apache-2.0
"""Libraries that are overwritten in place while they are traced. The kernel would put breakpoints at the places of the
old code into the new one, and each process that maps the file would crash."""
import contextlib
import ctypes
import fcntl
import os
import re
import shutil
import signal
import subprocess
import termios
import time

import containers
import harness
import system
from harness import case, check, equal, wait_until
from programs import Tool, Workload
from truth import same_counts

script = "launch vecadd 101; launch saxpy 53 fn=cuLaunchKernel"
PR_CAPBSET_DROP, CAP_LEASE = 24, 28


def copy_of_standin(name="copy", *more):
    folder = harness.here / name
    shutil.copytree(harness.standin, folder, symlinks=True, ignore=shutil.ignore_patterns("obj", "*.a", *more))
    return folder


class Library:
    """A file of the stand-in in the case's folder, and two versions of it whose functions are at other places."""

    def __init__(self, folder, name="libcuda.so.1", other="moved/libcuda.so.1"):
        self.path = (folder / name).resolve()
        self.versions = [(harness.standin / which).read_bytes() for which in (name, other)]
        assert self.versions[0] != self.versions[1]
        self.current = 0

    def next(self):
        self.current ^= 1
        return self.versions[self.current]


def copy(library, tool):
    library.path.write_bytes(library.next())


def not_truncated(library, tool):
    source = harness.here / "source"
    source.write_bytes(library.next())
    subprocess.run(["dd", f"if={source}", f"of={library.path}", "conv=notrunc", "bs=64k", "status=none"], check=True)


def truncated_first(library, tool):
    os.truncate(library.path, 0)
    copy(library, tool)


def by_another_link(library, tool):
    link = harness.here / "link"
    with contextlib.suppress(FileExistsError):
        os.link(library.path, link)
    link.write_bytes(library.next())


def mapped_writable(library, tool):
    source = harness.here / "source"
    source.write_bytes(library.next())
    program = ("import mmap, sys; data = open(sys.argv[1], 'rb').read(); file = open(sys.argv[2], 'r+b'); file.truncate(len(data));"
               "memory = mmap.mmap(file.fileno(), len(data)); file.close(); memory[:] = data")
    subprocess.run(["python3", "-c", program, source, library.path], check=True)


def slowly(library, tool):
    data = library.next()
    with open(library.path, "wb") as file:
        before = attached_again(tool, library)
        file.write(data[:len(data) // 2])
        file.flush()
        time.sleep(0.5)  # longer than the tool takes to attach again
        equal(attached_again(tool, library), before, "attachments while the file is open for writing")
        file.write(data[len(data) // 2:])


ways = (copy, not_truncated, truncated_first, by_another_link, mapped_writable, slowly)


def bytes_waiting(pipe):
    count = ctypes.c_int()
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count.value


def said(tool, library, sentence):
    """How often, of the file by any of its names."""
    return len(re.findall(rf"{library.path.parent}/{library.path.name.split('.')[0]}\S* {sentence}", tool.error))


def detached(tool, library):
    return said(tool, library, "is being overwritten: its probes are detached")


def attached_again(tool, library):
    return said(tool, library, "is complete again: its probes are attached")


def overwrite(tool, library, way):
    """Overwrites it and waits until it is probed again; programs that use it at once live."""
    before = detached(tool, library), attached_again(tool, library)
    begin = time.monotonic()
    way(library, tool)
    check(time.monotonic() - begin < 30, f"{way.__name__}: the writer waited until the kernel took the lease away")
    for hasty in [Workload(script, folder=library.path.parent, warm=False) for _ in range(2)]:
        hasty.wait()
    wait_until(lambda: attached_again(tool, library) > before[1], f"{way.__name__}: attached again ({tool.error})")
    check(detached(tool, library) > before[0], f"{way.__name__}: no message that probes were detached: {tool.error}")


def counted(library, folder=None):
    """The calls of a program that uses it."""
    return Workload(script, folder=folder or library.path.parent, warm=False).truth()


def in_every_way(tool, library, some, truth=(), api="driver"):
    truth = [*truth, *counted(library)]
    for way in some:
        overwrite(tool, library, way)
        truth += counted(library)
    tool.stop()
    same_counts(tool, truth, by=("pid", "kernel"), api=api)
    remarks = tool.of_type("attached")[-1]["remarks"]
    for sentence in "is being overwritten", "is complete again":
        check(any(sentence in remark for remark in remarks), f"no remark says '{sentence}': {remarks}")


def tool_that_reaches(folder, *arguments, **options):
    """It probes the driver in this folder before any process maps it."""
    return Tool("--by", "pid,kernel", *arguments, env={"LD_LIBRARY_PATH": str(folder)}, **options)


@case(alone=True)
def in_place():
    """Programs that map the file, during and after, live; from the moment it is attached again they are counted exactly."""
    folder = copy_of_standin()
    in_every_way(tool_that_reaches(folder), Library(folder), ways)


@case(each={tier: tier for tier in ("multi", "tracefs", "perf")}, long=["perf"], alone=True)
def each_way_of_attaching(tier):
    system.need_tier(tier)
    folder = copy_of_standin()
    in_every_way(tool_that_reaches(folder, "--attach", tier), Library(folder), [copy])


@case(alone=True)
def a_runtime():
    """It is found once a process maps it, and stays probed when that has ended."""
    folder = copy_of_standin()
    first = Workload(script, folder=folder)
    tool = tool_that_reaches(folder, "--api", "runtime")
    in_every_way(tool, Library(folder, "libcudart.so.12", "signed/libcudart.so.12"), [copy], first.go().truth(), "runtime")


@case()
def a_process_that_maps_it():
    """What is written is what was there: the process lives in any case, and its own probes come back."""
    folder = copy_of_standin()
    library = Library(folder)
    workload = Workload(script, folder=folder)
    tool = Tool("-p", workload.pid)
    with open(library.path, "r+b") as file:
        file.write(library.versions[0])
    wait_until(lambda: attached_again(tool, library), f"attached again ({tool.error})")
    workload.go()
    same_counts(tool.finish(), workload.truth())


@case()
def while_nobody_reads_the_output():
    """The tool waits for a reader; the writer does not wait for that."""
    folder = copy_of_standin()
    library = Library(folder)
    workload = Workload("launch vecadd 20000; touch {dir}/done; wait {dir}/never", folder=folder)
    reading, writing = os.pipe()
    tool = Tool("-e", "-p", workload.pid, json=False, stdout=writing)
    os.close(writing)
    workload.go()
    wait_until((harness.here / "done").exists, "the launches are done")
    wait_until(lambda: bytes_waiting(reading) >= 60000, "the pipe is full")
    begin = time.monotonic()
    with open(library.path, "r+b") as file:
        file.write(library.versions[0])
    check(time.monotonic() - begin < 30, "the writer waited until the kernel took the lease away")
    tool.process.send_signal(signal.SIGINT)
    tool.finish(1)


@case(alone=True)
def without_a_lease():
    """The file is another user's and there is no CAP_LEASE: writes are noticed once they have happened."""
    folder = copy_of_standin()
    library = Library(folder)
    os.chown(library.path, 65534, 65534)
    tool = tool_that_reaches(folder, preexec=lambda: system.checked(
        system.libc.prctl(PR_CAPBSET_DROP, CAP_LEASE, 0, 0, 0), "prctl"))
    truth = counted(library)
    copy(library, tool)
    wait_until(lambda: detached(tool, library), f"detached ({tool.error})")
    for hasty in [Workload(script, folder=folder, warm=False) for _ in range(2)]:
        hasty.wait()
    wait_until(lambda: attached_again(tool, library), f"attached again ({tool.error})")
    truth += counted(library)
    same_counts(tool.stop(), truth, by=("pid", "kernel"))


@case(alone=True)
def open_when_it_is_found():
    """It is probed once its writer has closed it."""
    folder = copy_of_standin()
    library = Library(folder)
    with open(library.path, "r+b"):
        tool = tool_that_reaches(folder)
        equal(said(tool, library, "is open for writing: its probes are not attached"), 1, f"messages ({tool.error})")
    wait_until(lambda: attached_again(tool, library), f"attached ({tool.error})")
    truth = counted(library)
    same_counts(tool.stop(), truth, by=("pid", "kernel"))


@case(alone=True)
def no_library_for_a_while():
    """A file that has become another one is watched for the day when it is a library again."""
    folder = copy_of_standin()
    library = Library(folder)
    tool = tool_that_reaches(folder)
    truth = counted(library)
    library.path.write_text("no ELF file")
    wait_until(lambda: "was overwritten and is no longer traced: " in tool.error, f"says so ({tool.error})")
    overwrite(tool, library, copy)
    truth += counted(library)
    same_counts(tool.stop(), truth, by=("pid", "kernel"))


@case(alone=True)
def in_an_overlay():
    """The first write copies the file up, where another program goes on with the lower one; the second one overwrites it."""
    lower = copy_of_standin("lower")
    merged = containers.overlay_on(lower)
    in_every_way(tool_that_reaches(merged), Library(merged), [copy, copy, copy])
