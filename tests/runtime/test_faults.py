# SPDX-License-Identifier: Apache-2.0
"""Faults of what surrounds a tool: output that nobody takes, limits that are too low, signals at a bad moment. It ends
in time with a sentence and the right status, or goes on; it never aborts. tests/README.md has the table."""
import fcntl
import itertools
import os
import pathlib
import pty
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

import harness
import leftovers
import programs
import system
from harness import Failure, Skip, case, check, equal, wait_until
from programs import Workload

tools = ("cudatop", "cudalaunch", "cudamemcpy", "cudasync", "gpualloc", "cudagraph", "nvioctl", "cudagap", "ncclwait",
         "gpuspend")
endless = "forever; launch vecadd 100; end"
soon = 1.5  # seconds from a signal to the end of the tool; a second is promised, to whom the machine belongs
numbers = itertools.count(1)


class Run:
    """A tool whose streams are the case's affair. `tool`: another than the case's."""

    def __init__(self, *arguments, tool=None, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=None, preexec=None,
                 wrap=(), env=None):
        if not {"-p", "--help"} & set(arguments):
            harness.must_be_alone()
        if "perf" in arguments:
            harness.must_be_alone()
        self.error_file = harness.here / f"fault{next(numbers)}.err"
        program = harness.build / tool if tool else harness.binary
        with open(self.error_file, "wb") as error:
            self.process = subprocess.Popen([*wrap, program, *map(str, arguments)], stdin=stdin, stdout=stdout,
                                            stderr=error if stderr is None else stderr, preexec_fn=preexec,
                                            env=os.environ | (env or {}))
        self.pid = self.process.pid
        (harness.here / f"tool.{self.pid}").touch()  # for leftovers
        programs.kill_at_end(self.process)

    @property
    def error(self):
        return self.error_file.read_text(errors="replace")

    def traces(self):
        """Until it does."""
        wait_until(lambda: "Tracing" in self.error or self.process.poll() is not None, "the banner")
        check("Tracing" in self.error, f"it ended with {self.process.poll()}: {self.error}")
        return self

    def finish(self, *codes, seconds=60):
        """It ends by itself, with one of these statuses. What it said."""
        try:
            status = self.process.wait(seconds * harness.patience)
        except subprocess.TimeoutExpired:
            raise Failure(f"no end within {seconds} s ({self.error})") from None
        check(status in (codes or (0,)), f"exit status {status} ({self.error})")
        return self.error

    def end(self, *codes, by=signal.SIGINT, within=soon):
        began = time.monotonic()
        self.process.send_signal(by)
        said = self.finish(*codes, seconds=max(60, 2 * within))
        seconds = time.monotonic() - began
        check(seconds < within * harness.patience, f"it took {seconds:.2f} s to end ({said})")
        return said


def waits_for_a_reader(pid):
    """In poll() on what standard output is: it waits for a new child in poll(), too."""
    try:
        with open(f"/proc/{pid}/syscall") as file:
            number, *arguments = file.read().split()
        if number != "7":
            return False
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(int(arguments[0], 16))
            fd, = struct.unpack("i", memory.read(4))
        return os.readlink(f"/proc/{pid}/fd/{fd}") == os.readlink(f"/proc/{pid}/fd/1")
    except (OSError, ValueError):  # it goes on while we look
        return False


# --- output ----------------------------------------------------------------------------------------------------------

def full_pipe():
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while os.write(writing, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(writing, True)
    return reading, writing


def terminal(stopped=False):
    master, slave = pty.openpty()
    if stopped:
        termios.tcflow(slave, termios.TCOOFF)  # Ctrl-S
    return master, slave


def sockets():
    return tuple(end.detach() for end in socket.socketpair())


unread = {"pipe": os.pipe, "terminal": terminal, "stopped": lambda: terminal(stopped=True), "socket": sockets}
ends = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP, "target": None, "duration": None}
stalls = {f"{what},{how}": (what, how) for what in unread for how in ends}


@case(each=stalls, long=[name for name in stalls if name not in ("pipe,SIGINT", "pipe,target", "terminal,SIGTERM")])
def nobody_reads_the_output(row):
    """Standard output takes nothing any more: signals end the tool, and so does the end of what it traces; what is lost
    is told, and is a failure."""
    what, how = row
    workload = Workload(endless)
    held, out = unread[what]()
    run = Run("-e", "-p", workload.pid, *(["-d", "2"] if how == "duration" else []), stdout=out).traces()
    os.close(out)
    workload.go()
    if what != "stopped":
        wait_until(lambda: held_bytes(held) > 3000, "output comes")
    time.sleep(0.5)
    if how == "target":
        workload.process.kill()
        said = run.finish(1, seconds=5)
    elif how == "duration":
        said = run.finish(1, seconds=6)
    else:
        said = run.end(1, by=ends[how])
    check(re.search(r"standard output has stopped reading: \d+ lines were not written", said), f"says so: {said}")


def held_bytes(fd):
    """What somebody could read from it."""
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]


@case(each={f"{tool},{how}": (tool, how) for tool in tools for how in ("interval", "end")},
      long=[f"{tool},{how}" for tool in tools for how in ("interval", "end") if (tool, how) != ("cudatop", "end")])
def nobody_reads_a_table(row):
    """The same for every tool, with a pipe that is full from the start: each has something to print in JSON."""
    tool, how = row
    held, out = full_pipe()
    workload = Workload("")
    run = Run("-p", workload.pid, *(["0.1"] if how == "interval" else []), "--json", tool=tool, stdout=out)
    wait_until(lambda: waits_for_a_reader(run.pid), "it waits")
    run.end(1)
    check("standard output has stopped reading" in run.error, f"says so: {run.error}")


@case(long=True)
def a_screen_that_nobody_sees():
    """A terminal that takes nothing does not hold cudatop: Ctrl-S, or one that nobody reads."""
    for stop in (True, False):
        workload = Workload("")
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 500, 1000, 0, 0))  # a frame does not fit into its buffer
        before = termios.tcgetattr(slave)
        run = Run("-p", workload.pid, "0.1", tool="cudatop", stdin=slave, stdout=slave,
                  env={"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
        wait_until(lambda: held_bytes(master) > 1000, "a frame")
        if stop:
            termios.tcflow(slave, termios.TCOOFF)
        else:
            for lines in (400, 500) * 10:  # each is drawn anew
                fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", lines, 1000, 0, 0))
                os.kill(run.pid, signal.SIGWINCH)
                time.sleep(0.1)
        time.sleep(1)
        run.end(0)
        equal(termios.tcgetattr(slave)[:4], before[:4], "modes of the terminal")
        os.close(master)


def gone_reader():
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def closed(*fds):
    def close():
        for fd in fds:
            os.close(fd)
    return close


stderrs = {"full": lambda: {"stderr": os.open("/dev/full", os.O_WRONLY)},
           "closed": lambda: {"preexec": closed(2)},
           "reader gone": lambda: {"stderr": gone_reader()},
           "unread": lambda: {"stderr": full_pipe()[1]},
           "all closed": lambda: {"preexec": closed(0, 1, 2)}}
errors = {f"{tool},{how}": (tool, how) for tool in tools for how in stderrs}


@case(each=errors, long=[name for name in errors if name not in
                         ("cudalaunch,full", "cudalaunch,closed", "cudatop,reader gone", "cudalaunch,unread")])
def nobody_takes_the_messages(row):
    """Standard error takes nothing: the tool goes on, and ends with the status it would have had."""
    tool, how = row
    workload = Workload("launch vecadd 101; touch {dir}/done; wait {dir}/end")
    out = harness.here / "out"
    with open(out, "wb") as file:
        options = {"stdout": file, **stderrs[how]()}
        run = Run("-p", workload.pid, "--json", tool=tool, **options)
    if how == "all closed":
        run.finish(1)
        return
    wait_until(lambda: b'"attached"' in out.read_bytes() or run.process.poll() is not None, "it traces")
    workload.go()
    wait_until((harness.here / "done").exists, "the launches are made")
    run.end(0)
    check(out.read_bytes().rstrip().endswith(b"}") and b'"end"' in out.read_bytes(), "the whole output is there")
    if tool == "cudalaunch":
        check(b'"launches":101' in out.read_bytes(), "it counts as ever")


stdouts = {"closed": (lambda: {"preexec": closed(1)}, "standard output is closed"),
           "closed, stdin too": (lambda: {"preexec": closed(0, 1)}, "standard output is closed"),
           "for reading": (lambda: {"stdout": os.open("/dev/null", os.O_RDONLY)}, "standard output is closed"),
           "full": (lambda: {"stdout": os.open("/dev/full", os.O_WRONLY)}, "No space left on device")}


@case(each=stdouts, long=["for reading", "full"])
def nobody_takes_the_output(row):
    """No descriptor of the tool's own stands in for a closed one: exit 1, and why."""
    options, why = row
    workload = Workload("launch vecadd 101")
    run = Run("-p", workload.pid, **options()).traces()
    workload.go().wait()
    said = run.finish(1)
    check(why in said, f"says why: {said}")


@case(each={tool: tool for tool in tools}, long=[tool for tool in tools if tool != "cudatop"])
def help_that_nobody_takes(tool):
    for option in (["--help"], ["--version"], ["--columns", "help"]):
        with open("/dev/full", "w") as full:
            check("No space left" in Run(*option, "-p", os.getpid(), tool=tool, stdout=full).finish(1), "says why")
        check("is closed" in Run(*option, "-p", os.getpid(), tool=tool, preexec=closed(1)).finish(1), "says why")


# --- results in files ------------------------------------------------------------------------------------------------

results = {"record": ("cudalaunch", "--record", "x.json", "0.1"), "trace": ("cudalaunch", "--trace", "x.json", "-e"),
           "flames": ("cudalaunch", "--svg", "x.svg"), "metrics": ("cudatop", "--textfile", "x.prom", "0.1"),
           "state": ("gpuspend", "--state", "state", "0.1")}


def result(how, folder, *more, **options):
    """A tool that keeps a result in this folder, and its target."""
    tool, option, name, *words = results[how]
    workload = Workload(endless)
    return Run("-p", workload.pid, option, folder / name, *words, *more, tool=tool, **options), workload


@case(each={how: how for how in results})
def a_result_on_a_full_disk(how):
    """The disk is full once it traces: exit 1, and why."""
    system.private_mounts()
    disk = harness.here / "disk"
    disk.mkdir()
    system.mount("tmpfs", disk, "tmpfs", options="size=64k")
    run, workload = result(how, disk)
    run.traces()
    with open(disk / "other", "wb", buffering=0) as other:
        try:
            while other.write(b"x" * 4096):
                pass
        except OSError:
            pass
    workload.go()
    time.sleep(1)
    said = run.end(1, within=10)
    check("cannot be written: No space left on device" in said, f"says why: {said}")


@case(each={how: how for how in results if how != "state"})
def a_result_that_may_not_grow(how):
    """RLIMIT_FSIZE: exit 1 and the limit's name, not SIGXFSZ."""
    run, workload = result(how, harness.here, preexec=limited(resource.RLIMIT_FSIZE, 2000))
    workload.go()
    if how != "metrics":  # whose file is written at the start, too
        run.traces()
        time.sleep(1)
        run.end(1, within=10)
    check("the file size limit of 2000 bytes is reached (raise it: ulimit -f" in run.finish(1), f"says why: {run.error}")


@case
def standard_output_that_may_not_grow():
    """The same of standard output."""
    workload = Workload(endless)
    with open(harness.here / "out", "wb") as file:
        run = Run("-e", "-p", workload.pid, stdout=file, preexec=limited(resource.RLIMIT_FSIZE, 2000)).traces()
    workload.go()
    check("ulimit -f" in run.finish(1), f"says why: {run.error}")


@case
def signals_of_the_program():
    """What a tool ignores, SIGPIPE and SIGXFSZ, the program that it starts gets back."""
    status = harness.here / "status"
    Run("--", "sh", "-c", f"grep SigIgn /proc/self/status > {status}").finish()
    ignored = int(status.read_text().split()[1], 16)
    equal([number for number in (signal.SIGPIPE, signal.SIGXFSZ) if ignored >> number - 1 & 1], [], "ignored signals")


# --- more records than can be printed --------------------------------------------------------------------------------

@case(each={"a signal": False, "a duration": True}, alone=True)
def more_events_than_can_be_printed(by_itself):
    """The kernel side sends lines faster than they are printed: signals, -d and reports come in time all the same."""
    workload = Workload("threads 4; forever; launch vecadd 1000; end; end")
    run = Run("-e", "-U", "-p", workload.pid, *(["-d", "1"] if by_itself else [])).traces()
    workload.go()
    began = time.monotonic()
    if by_itself:
        run.finish(0, seconds=10)
        check(time.monotonic() - began < 3 * harness.patience, "the duration is kept to")
    else:
        time.sleep(1.5)
        run.end(0)


# --- limits ----------------------------------------------------------------------------------------------------------

def limited(which, value):
    return lambda: resource.setrlimit(which, (value, value))


@case(each={str(n): n for n in (4, 16, 40, 64, 80)}, long=["16", "80"])
def few_files(limit):
    """Too few descriptors: the limit has a name and a number, and nobody is said to be missing."""
    workload = Workload("")
    for tool in ("cudalaunch", "cudatop"):
        run = Run("-p", workload.pid, "-d", "0.1", tool=tool, preexec=limited(resource.RLIMIT_NOFILE, limit))
        said = run.finish(0, 1)
        if run.process.returncode:
            check(re.search(rf"may have (no more than )?{limit} open files|of the {limit} that this process may have", said)
                  and "ulimit -n" in said, f"says why: {said}")


@case(alone=True)
def few_files_for_the_slowest_way():
    """Tier perf takes two descriptors per place: what does not fit is said before half of it is attached."""
    workload = Workload("", "workload-driver")
    said = Run("-p", workload.pid, "--attach", "perf", "-d", "0.1", tool="cudatop",
               preexec=limited(resource.RLIMIT_NOFILE, 1024)).finish(1)
    check(re.search(r"its probes \(perf\) need \d+ more open files", said), f"says so: {said}")


@case
def the_soft_limit_of_files_is_raised():
    soft = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 4096))  # noqa: E731
    Run("-p", Workload("").pid, "-d", "0.1", preexec=soft).finish(0)


@case(each={f"{n}M": n << 20 for n in (24, 32, 40, 48, 64, 96)}, long=["24M", "40M", "48M", "96M"])
def little_memory(limit):
    """No memory: a sentence, at whatever moment; where it suffices, a run like any other."""
    workload = Workload("")
    for tool in ("cudalaunch", "cudatop"):
        run = Run("-p", workload.pid, "-d", "0.1", tool=tool, preexec=limited(resource.RLIMIT_AS, limit))
        said = run.finish(0, 1, 127)  # 127: the program itself cannot be loaded
        check(run.process.returncode == 0 or said, "says why")


def few_tasks(count):
    """A cgroup for so many tasks: its folder, of either version."""
    for line in open("/proc/mounts"):
        _, mount, kind, options, *_ = line.split()
        if kind != "cgroup2" and not (kind == "cgroup" and "pids" in options.split(",")):
            continue
        folder = pathlib.Path(mount) / f"gpusnoop-faults-{os.getpid()}"
        try:
            folder.mkdir()
            harness.at_end.append(folder.rmdir)
            (folder / "pids.max").write_text(str(count))
            return folder
        except OSError:
            continue
    raise Skip("no cgroup of this machine can be given a limit of tasks (pids.max)")


@case(each={tier: tier for tier in ("session", "tracefs")}, long=["session"], alone=True)
def no_threads(tier):
    """No task can be made any more: the tool detaches by itself, one link after the other."""
    system.need_tier(tier)
    folder = few_tasks(16)
    workload = Workload("launch vecadd 101")
    run = Run("-p", workload.pid, "--attach", tier, "--json", stdout=open(harness.here / "out", "wb"),
              preexec=lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))).traces()
    (folder / "pids.max").write_text("1")
    workload.go().wait()
    run.finish(0)
    check(b'"launches":101' in (harness.here / "out").read_bytes(), "it counts as ever")


@case(alone=True)
def no_helper():
    """Reports that no helper process can be started, and which limit to raise."""
    folder = few_tasks(1)
    workload = Workload("")
    run = Run("-p", workload.pid, preexec=lambda: (folder / "cgroup.procs").write_text(str(os.getpid())))
    said = run.finish(1)
    check("cannot start a helper process: Resource temporarily unavailable" in said and "pids.max" in said, said)


# --- signals before the loop -----------------------------------------------------------------------------------------

starts = {f"{tool},{tier}": (tool, tier) for tool in ("cudalaunch", "cudatop") for tier in ("session", "tracefs", "perf")}


@case(each=starts, alone=True, timeout=400, long=[name for name in starts if name != "cudalaunch,tracefs"])
def a_signal_while_it_starts(row):
    """In steps of 50 ms until it has started: 0 in time, and nothing is left (the harness looks)."""
    tool, tier = row
    system.need_tier(tier)
    # The kernel detaches perf events one after the other, and waits 20 to 80 ms for each: of perf cudatop has 932, of
    # tracefs 35. Attached they are much faster, so that however soon the signal comes, all may have to be detached.
    step_seconds, to_detach = (0.4, 120) if tier == "perf" else (0.05, 20)
    workload = Workload("", "workload-driver")
    system.private_mounts()
    mounted = harness.here / "tracefs"  # this machine may have none, and the tool mounts its own
    mounted.mkdir()
    system.mount("tracefs", mounted, "tracefs")
    events = mounted / "uprobe_events"
    for step in itertools.count():
        run = Run("-p", workload.pid, "--attach", tier, tool=tool)
        time.sleep((0.02 + step_seconds * step) * harness.patience)
        started = "Tracing" in run.error
        if run.process.poll() is not None:
            raise Failure(f"it ended by itself: {run.error}")
        # As long as the dynamic loader is at work, a signal does what it does to every program.
        loading = not (signals_held(run.pid) or started)
        at_once = tier == "session"
        run.end(*((0, -signal.SIGINT) if loading else (0,)), within=soon if at_once else to_detach)
        check(f"/p{run.pid}_" not in events.read_text(), f"no events are left after {step} steps")
        leftovers.check_no_breakpoints(workload.pid, "libcuda")
        if started or step > 100:
            return


def signals_held(pid):
    """Whether SIGINT waits to be asked for."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    masks = {key: int(re.search(rf"^{key}:\s*(\w+)$", status, re.M)[1], 16) for key in ("SigBlk", "SigCgt")}
    return any(mask & 1 << signal.SIGINT - 1 for mask in masks.values())


# --- made-up libraries -----------------------------------------------------------------------------------------------

@case(each={tool: tool for tool in ("cudalaunch", "cudatop")}, long=["cudatop"], alone=True)
def a_file_that_is_called_like_a_library(tool):
    """Whoever maps junk as libcuda.so.7 does not keep others from being traced: the tool waits for them."""
    junk = harness.here / "libcuda.so.7"
    junk.write_bytes(b"junk" * 1024)
    code = ("import mmap, os, sys, time; f = os.open(sys.argv[1], os.O_RDONLY)\n"
            "m = mmap.mmap(f, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)\n"
            "print(flush=True); time.sleep(60)")
    mapper = subprocess.Popen([sys.executable, "-c", code, junk], stdout=subprocess.PIPE)
    programs.kill_at_end(mapper)
    mapper.stdout.readline()
    run = Run(*(["-b"] if tool == "cudatop" else []), "-d", "0.2", tool=tool)
    said = run.finish(0)
    check(str(junk) in said, f"says what is wrong with it: {said}")


# --- other users' files ----------------------------------------------------------------------------------------------

other_user = 65534


def files_in(folder):
    return {path.name: path.read_text(errors="replace") for path in folder.iterdir()}


@case(each={how: how for how in results})
def a_link_of_another_user_in_the_path(how):
    """Root writes a result into another user's folder, where a link leads elsewhere: exit 1, and nothing is written."""
    theirs, target = harness.here / "theirs", harness.here / "target"
    theirs.mkdir()
    target.mkdir()
    (theirs / "link").symlink_to(target)
    os.chown(theirs, other_user, other_user)
    os.chown(theirs / "link", other_user, other_user, follow_symlinks=False)
    run, _ = result(how, theirs / "link", "-d", "0.1")
    said = run.finish(1)
    check("behind the symbolic link 'link'" in said and "hint: use the path" in said, f"says why: {said}")
    equal(files_in(target), {}, "files behind the link")
    os.chown(theirs / "link", 0, 0, follow_symlinks=False)
    os.chown(theirs, 0, 0)
    result(how, theirs / "link", "-d", "0.1")[0].finish()


@case(each={how: how for how in results})
def files_that_are_not_the_tools_own(how):
    """Files called as results, or as what is beside them, stay as they are."""
    name = results[how][2]
    folder = harness.here / "folder"
    folder.mkdir()
    for called, refused in ((f"{name}.new", False), (f"{name}.1", how == "record"), (name, True)):
        (folder / called).write_text("precious")
        said = result(how, folder, "-d", "0.1")[0].finish(1 if refused else 0)
        check(not refused or f"{called}' exists and is not a gpusnoop" in said and "hint: name another file" in said, f"says why: {said}")
        equal((folder / called).read_text(), "precious", called)
        if refused:
            (folder / called).unlink()
    made = folder / name
    if made.exists():
        os.chown(made, other_user, other_user)
        check("belongs to another user" in result(how, folder, "-d", "0.1")[0].finish(1), "another user's")
