# SPDX-License-Identifier: Apache-2.0
"""Libraries that are overwritten in place while they are traced. If their probes were not detached, the kernel would
write breakpoints for the old code into the new code, and each process that maps the file would crash."""
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
    """A file of the stand-in in the case's folder, and two versions of it whose functions have different offsets."""

    def __init__(self, folder, name="libcuda.so.1", other="moved/libcuda.so.1"):
        self.path = (folder / name).resolve()
        self.versions = [(harness.standin / version).read_bytes() for version in (name, other)]
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


def messages_about(tool, library, sentence):
    """Number of messages with this sentence about the file, under any of its names."""
    return len(re.findall(rf"{library.path.parent}/{library.path.name.split('.')[0]}\S* {sentence}", tool.error))


def detached(tool, library):
    return messages_about(tool, library, "is being overwritten: its probes are detached")


def attached_again(tool, library):
    return messages_about(tool, library, "is complete again: its probes are attached")


def overwrite(tool, library, way):
    """Overwrites the library and waits until it is probed again. Programs that use it meanwhile must not crash."""
    before = detached(tool, library), attached_again(tool, library)
    begin = time.monotonic()
    way(library, tool)
    check(time.monotonic() - begin < 30, f"{way.__name__}: the writer waited until the kernel revoked the lease")
    for hasty in [Workload(script, folder=library.path.parent, warm=False) for _ in range(2)]:
        hasty.wait()
    wait_until(lambda: attached_again(tool, library) > before[1], f"{way.__name__}: probes attached again ({tool.error})")
    check(detached(tool, library) > before[0], f"{way.__name__}: no message that probes were detached: {tool.error}")


def counted(library, folder=None):
    """Calls of a program that uses the library."""
    return Workload(script, folder=folder or library.path.parent, warm=False).truth()


def overwrite_in_ways(tool, library, chosen, truth=(), api="driver"):
    truth = [*truth, *counted(library)]
    for way in chosen:
        overwrite(tool, library, way)
        truth += counted(library)
    tool.stop()
    same_counts(tool, truth, by=("pid", "kernel"), api=api)
    remarks = tool.of_type("attached")[-1]["remarks"]
    for sentence in "is being overwritten", "is complete again":
        check(any(sentence in remark for remark in remarks), f"no remark with '{sentence}': {remarks}")


def tool_probing(folder, *arguments, **options):
    """A tool that probes the driver in this folder before any process maps it."""
    return Tool("--by", "pid,kernel", *arguments, env={"LD_LIBRARY_PATH": str(folder)}, **options)


@case(alone=True)
def every_way_of_writing():
    """Programs that map the file while it is overwritten, or later, do not crash. Once probes are attached again,
    counts are exact."""
    folder = copy_of_standin()
    overwrite_in_ways(tool_probing(folder), Library(folder), ways)


@case(each={tier: tier for tier in ("multi", "tracefs", "perf")}, long=["perf"], alone=True)
def each_way_of_attaching(tier):
    system.need_tier(tier)
    folder = copy_of_standin()
    overwrite_in_ways(tool_probing(folder, "--attach", tier), Library(folder), [copy])


@case(alone=True)
def runtime_library():
    """The runtime is probed once a process maps it, and stays probed when that process has exited."""
    folder = copy_of_standin()
    first = Workload(script, folder=folder)
    tool = tool_probing(folder, "--api", "runtime")
    overwrite_in_ways(tool, Library(folder, "libcudart.so.12", "signed/libcudart.so.12"), [copy], first.go().truth(), "runtime")


@case()
def by_identical_bytes_while_mapped():
    """The process does not crash, and its probes are attached again."""
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
def while_output_is_blocked():
    """While the tool waits for the reader of its output, the writer of the library does not have to wait."""
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
    check(time.monotonic() - begin < 30, "the writer waited until the kernel revoked the lease")
    tool.process.send_signal(signal.SIGINT)
    tool.finish(1)


@case(alone=True)
def without_a_lease():
    """The file has another owner and there is no CAP_LEASE: writes are detected afterwards."""
    folder = copy_of_standin()
    library = Library(folder)
    os.chown(library.path, 65534, 65534)
    tool = tool_probing(folder, preexec=lambda: system.checked(
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
def open_for_writing_at_first():
    """The file is probed once its writer has closed it."""
    folder = copy_of_standin()
    library = Library(folder)
    with open(library.path, "r+b"):
        tool = tool_probing(folder)
        equal(messages_about(tool, library, "is open for writing: its probes are not attached"), 1, f"messages ({tool.error})")
    wait_until(lambda: attached_again(tool, library), f"attached ({tool.error})")
    truth = counted(library)
    same_counts(tool.stop(), truth, by=("pid", "kernel"))


@case(alone=True)
def not_a_library_for_a_while():
    """A file that is no longer a library is watched, and probed when it is a library again."""
    folder = copy_of_standin()
    library = Library(folder)
    tool = tool_probing(folder)
    truth = counted(library)
    library.path.write_text("no ELF file")
    wait_until(lambda: "was overwritten and is no longer traced: " in tool.error, f"the message ({tool.error})")
    overwrite(tool, library, copy)
    truth += counted(library)
    same_counts(tool.stop(), truth, by=("pid", "kernel"))


@case(alone=True)
def in_an_overlay():
    """The first write copies the file up, while other processes still use the lower file. The second write overwrites
    the copy."""
    lower = copy_of_standin("lower")
    merged = containers.overlay_on(lower)
    overwrite_in_ways(tool_probing(merged), Library(merged), [copy, copy, copy])
