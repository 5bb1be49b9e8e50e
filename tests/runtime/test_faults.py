# SPDX-License-Identifier: Apache-2.0
"""Faults in a tool's environment: output that is not read, low limits, signals at a bad moment. The tool exits in time
with a message and the right exit status, or continues; it never aborts. tests/README.md has the table."""
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
soon = 1.5  # seconds from a signal to the exit of the tool; tests/README.md promises 1 s on an idle machine
numbers = itertools.count(1)


class Run:
    """A run of a tool with standard streams chosen by the case. `tool`: name of a tool to run instead of the case's."""

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
        (harness.here / f"tool.{self.pid}").touch()  # for leftovers.find()
        programs.kill_at_end(self.process)

    @property
    def error(self):
        return self.error_file.read_text(errors="replace")

    def traces(self):
        """Waits until the tool traces."""
        wait_until(lambda: "Tracing" in self.error or self.process.poll() is not None, "the banner")
        check("Tracing" in self.error, f"it exited with {self.process.poll()}: {self.error}")
        return self

    def finish(self, *codes, seconds=60):
        """Waits until the tool exits with one of these statuses; returns its messages."""
        try:
            status = self.process.wait(seconds * harness.patience)
        except subprocess.TimeoutExpired:
            raise Failure(f"no exit within {seconds} s ({self.error})") from None
        check(status in (codes or (0,)), f"unexpected exit status {status} ({self.error})")
        return self.error

    def end(self, *codes, by=signal.SIGINT, within=soon):
        began = time.monotonic()
        self.process.send_signal(by)
        messages = self.finish(*codes, seconds=max(60, 2 * within))
        seconds = time.monotonic() - began
        check(seconds < within * harness.patience, f"it took {seconds:.2f} s to exit ({messages})")
        return messages


def waits_for_a_reader(pid):
    """Whether the tool waits in poll() for its standard output."""
    try:
        with open(f"/proc/{pid}/syscall") as file:
            number, *arguments = file.read().split()
        if number != "7":
            return False
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(int(arguments[0], 16))
            fd, = struct.unpack("i", memory.read(4))
        return os.readlink(f"/proc/{pid}/fd/{fd}") == os.readlink(f"/proc/{pid}/fd/1")
    except (OSError, ValueError):  # the tool left the system call meanwhile
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
def output_is_not_read(row):
    """Standard output accepts no more data: signals, and the exit of the target, still end the tool. Lost lines are
    reported, and the exit status is 1."""
    what, how = row
    workload = Workload(endless)
    held, out = unread[what]()
    run = Run("-e", "-p", workload.pid, *(["-d", "2"] if how == "duration" else []), stdout=out).traces()
    os.close(out)
    workload.go()
    if what != "stopped":
        wait_until(lambda: held_bytes(held) > 3000, "output is buffered")
    time.sleep(0.5)
    if how == "target":
        workload.process.kill()
        messages = run.finish(1, seconds=5)
    elif how == "duration":
        messages = run.finish(1, seconds=6)
    else:
        messages = run.end(1, by=ends[how])
    check(re.search(r"standard output has stopped reading: \d+ lines were not written", messages), f"no message about lost lines: {messages}")


def held_bytes(fd):
    """Bytes that are ready to be read from a descriptor."""
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]


@case(each={f"{tool},{how}": (tool, how) for tool in tools for how in ("interval", "end")},
      long=[f"{tool},{how}" for tool in tools for how in ("interval", "end") if (tool, how) != ("cudatop", "end")])
def table_is_not_read(row):
    """Standard output is a full pipe from the start, for every tool with JSON output."""
    tool, how = row
    held, out = full_pipe()
    workload = Workload("")
    run = Run("-p", workload.pid, *(["0.1"] if how == "interval" else []), "--json", tool=tool, stdout=out)
    wait_until(lambda: waits_for_a_reader(run.pid), "the tool waits for the pipe")
    run.end(1)
    check("standard output has stopped reading" in run.error, f"no message about the output: {run.error}")


@case(long=True)
def terminal_that_accepts_no_output():
    """A terminal that accepts no output, after Ctrl-S or because it is not read, does not block cudatop."""
    for stop in (True, False):
        workload = Workload("")
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 500, 1000, 0, 0))  # a frame exceeds the terminal's buffer
        before = termios.tcgetattr(slave)
        run = Run("-p", workload.pid, "0.1", tool="cudatop", stdin=slave, stdout=slave,
                  env={"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
        wait_until(lambda: held_bytes(master) > 1000, "a frame")
        if stop:
            termios.tcflow(slave, termios.TCOOFF)
        else:
            for lines in (400, 500) * 10:  # each size is drawn in full
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
def messages_cannot_be_written(row):
    """Standard error accepts no data: the tool continues, and exits with its usual status."""
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
    wait_until((harness.here / "done").exists, "all launches are made")
    run.end(0)
    check(out.read_bytes().rstrip().endswith(b"}") and b'"end"' in out.read_bytes(), "the output is incomplete")
    if tool == "cudalaunch":
        check(b'"launches":101' in out.read_bytes(), "the count is wrong")


stdouts = {"closed": (lambda: {"preexec": closed(1)}, "standard output is closed"),
           "closed, stdin too": (lambda: {"preexec": closed(0, 1)}, "standard output is closed"),
           "for reading": (lambda: {"stdout": os.open("/dev/null", os.O_RDONLY)}, "standard output is closed"),
           "full": (lambda: {"stdout": os.open("/dev/full", os.O_WRONLY)}, "No space left on device")}


@case(each=stdouts, long=["for reading", "full"])
def output_cannot_be_written(row):
    """The tool prints the reason and exits with 1. It opens no file with the number of a closed standard descriptor."""
    options, why = row
    workload = Workload("launch vecadd 101")
    run = Run("-p", workload.pid, **options()).traces()
    workload.go().wait()
    messages = run.finish(1)
    check(why in messages, f"no reason in: {messages}")


@case(each={tool: tool for tool in tools}, long=[tool for tool in tools if tool != "cudatop"])
def help_cannot_be_written(tool):
    for option in (["--help"], ["--version"], ["--columns", "help"]):
        with open("/dev/full", "w") as full:
            check("No space left" in Run(*option, "-p", os.getpid(), tool=tool, stdout=full).finish(1), "no reason on standard error")
        check("is closed" in Run(*option, "-p", os.getpid(), tool=tool, preexec=closed(1)).finish(1), "no reason on standard error")


# --- results in files ------------------------------------------------------------------------------------------------

results = {"record": ("cudalaunch", "--record", "x.json", "0.1"), "trace": ("cudalaunch", "--trace", "x.json", "-e"),
           "flames": ("cudalaunch", "--svg", "x.svg"), "metrics": ("cudatop", "--textfile", "x.prom", "0.1"),
           "state": ("gpuspend", "--state", "state", "0.1")}


def result(how, folder, *more, **options):
    """Starts a target, and a tool that traces it and writes a result into this folder."""
    tool, option, name, *words = results[how]
    workload = Workload(endless)
    return Run("-p", workload.pid, option, folder / name, *words, *more, tool=tool, **options), workload


@case(each={how: how for how in results})
def a_result_on_a_full_disk(how):
    """The disk fills up while the tool traces: exit 1, with the reason."""
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
    messages = run.end(1, within=10)
    check("cannot be written: No space left on device" in messages, f"no reason in: {messages}")


@case(each={how: how for how in results if how != "state"})
def file_size_limit_of_a_result(how):
    """RLIMIT_FSIZE: exit 1 with the name of the limit, no SIGXFSZ."""
    run, workload = result(how, harness.here, preexec=limited(resource.RLIMIT_FSIZE, 2000))
    workload.go()
    if how != "metrics":  # the metrics file is already written at start-up, so the tool exits by itself
        run.traces()
        time.sleep(1)
        run.end(1, within=10)
    check("the file size limit of 2000 bytes is reached (raise it: ulimit -f" in run.finish(1), f"no reason in: {run.error}")


@case
def file_size_limit_of_standard_output():
    workload = Workload(endless)
    with open(harness.here / "out", "wb") as file:
        run = Run("-e", "-p", workload.pid, stdout=file, preexec=limited(resource.RLIMIT_FSIZE, 2000)).traces()
    workload.go()
    check("ulimit -f" in run.finish(1), f"no reason in: {run.error}")


@case
def signals_of_the_program():
    """The tool ignores SIGPIPE and SIGXFSZ, but the program that it starts after -- does not."""
    status = harness.here / "status"
    Run("--", "sh", "-c", f"grep SigIgn /proc/self/status > {status}").finish()
    ignored = int(status.read_text().split()[1], 16)
    equal([number for number in (signal.SIGPIPE, signal.SIGXFSZ) if ignored >> number - 1 & 1], [], "signals that the program ignores")


# --- more records than can be printed --------------------------------------------------------------------------------

@case(each={"a signal": False, "a duration": True}, alone=True)
def more_events_than_can_be_printed(by_itself):
    """Events arrive faster than they can be printed. Signals and -d still end the tool on time."""
    workload = Workload("threads 4; forever; launch vecadd 1000; end; end")
    run = Run("-e", "-U", "-p", workload.pid, *(["-d", "1"] if by_itself else [])).traces()
    workload.go()
    began = time.monotonic()
    if by_itself:
        run.finish(0, seconds=10)
        check(time.monotonic() - began < 3 * harness.patience, "-d took too long")
    else:
        time.sleep(1.5)
        run.end(0)


# --- limits ----------------------------------------------------------------------------------------------------------

def limited(which, value):
    return lambda: resource.setrlimit(which, (value, value))


@case(each={str(n): n for n in (4, 16, 40, 64, 80)}, long=["16", "80"])
def few_files(limit):
    """Too few descriptors: the message has the name and value of the limit."""
    workload = Workload("")
    for tool in ("cudalaunch", "cudatop"):
        run = Run("-p", workload.pid, "-d", "0.1", tool=tool, preexec=limited(resource.RLIMIT_NOFILE, limit))
        messages = run.finish(0, 1)
        if run.process.returncode:
            check(re.search(rf"limit of {limit} open files is reached|limited to {limit} open files|with a limit of {limit}", messages)
                  and "ulimit -n" in messages, f"no reason in: {messages}")


@case(alone=True)
def few_files_for_perf():
    """Tier perf needs two descriptors per probe. If there are too few, this is reported before any probe is
    attached."""
    workload = Workload("", "workload-driver")
    messages = Run("-p", workload.pid, "--attach", "perf", "-d", "0.1", tool="cudatop",
               preexec=limited(resource.RLIMIT_NOFILE, 1024)).finish(1)
    check(re.search(r"its probes \(perf\) need \d+ more open files", messages), f"no message about open files: {messages}")


@case
def the_soft_limit_of_files_is_raised():
    soft = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 4096))  # noqa: E731
    Run("-p", Workload("").pid, "-d", "0.1", preexec=soft).finish(0)


@case(each={f"{n}M": n << 20 for n in (24, 32, 40, 48, 64, 96)}, long=["24M", "40M", "48M", "96M"])
def little_memory(limit):
    """With too little memory, the tool exits with a message; with enough, it runs as usual."""
    workload = Workload("")
    for tool in ("cudalaunch", "cudatop"):
        run = Run("-p", workload.pid, "-d", "0.1", tool=tool, preexec=limited(resource.RLIMIT_AS, limit))
        messages = run.finish(0, 1, 127)  # 127: the dynamic loader failed
        check(run.process.returncode == 0 or messages, "no reason on standard error")


def few_tasks(count):
    """Folder of a cgroup (v1 or v2) that is limited to `count` tasks."""
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
    raise Skip("no cgroup of this machine can limit tasks (pids.max)")


@case(each={tier: tier for tier in ("session", "tracefs")}, long=["session"], alone=True)
def no_threads(tier):
    """If no thread can be created, the tool detaches links one by one."""
    system.need_tier(tier)
    folder = few_tasks(16)
    workload = Workload("launch vecadd 101")
    run = Run("-p", workload.pid, "--attach", tier, "--json", stdout=open(harness.here / "out", "wb"),
              preexec=lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))).traces()
    (folder / "pids.max").write_text("1")
    workload.go().wait()
    run.finish(0)
    check(b'"launches":101' in (harness.here / "out").read_bytes(), "the count is wrong")


@case(alone=True)
def no_helper():
    """Reports that no helper process can be started, and which limit to raise."""
    folder = few_tasks(1)
    workload = Workload("")
    run = Run("-p", workload.pid, preexec=lambda: (folder / "cgroup.procs").write_text(str(os.getpid())))
    messages = run.finish(1)
    check("cannot start a helper process: Resource temporarily unavailable" in messages and "pids.max" in messages, messages)


# --- signals during start-up -----------------------------------------------------------------------------------------

starts = {f"{tool},{tier}": (tool, tier) for tool in ("cudalaunch", "cudatop") for tier in ("session", "tracefs", "perf")}


@case(each=starts, alone=True, timeout=400, long=[name for name in starts if name != "cudalaunch,tracefs"])
def a_signal_while_it_starts(row):
    """Each run gets SIGINT a step later than the previous one (50 ms; perf: 0.4 s), until start-up is complete. The
    tool exits with 0 in time; the harness checks for leftovers."""
    tool, tier = row
    system.need_tier(tier)
    # The kernel detaches perf events one by one, in 20 to 80 ms each; cudatop has 932 events with perf, 35 with
    # tracefs. Attaching is much faster, so even after an early signal, all events may have to be detached.
    step_seconds, to_detach = (0.4, 120) if tier == "perf" else (0.05, 20)
    workload = Workload("", "workload-driver")
    system.private_mounts()
    mounted = harness.here / "tracefs"  # if the machine has not mounted it, the tool mounts its own
    mounted.mkdir()
    system.mount("tracefs", mounted, "tracefs")
    events = mounted / "uprobe_events"
    for step in itertools.count():
        run = Run("-p", workload.pid, "--attach", tier, tool=tool)
        time.sleep((0.02 + step_seconds * step) * harness.patience)
        started = "Tracing" in run.error
        if run.process.poll() is not None:
            raise Failure(f"it exited before the signal: {run.error}")
        # While the dynamic loader runs, SIGINT kills the program as usual.
        loading = not (signals_held(run.pid) or started)
        at_once = tier == "session"
        run.end(*((0, -signal.SIGINT) if loading else (0,)), within=soon if at_once else to_detach)
        check(f"/p{run.pid}_" not in events.read_text(), f"uprobe events are left after {step} steps")
        leftovers.check_no_breakpoints(workload.pid, "libcuda")
        if started or step > 100:
            return


def signals_held(pid):
    """Whether the process blocks or catches SIGINT."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    masks = {key: int(re.search(rf"^{key}:\s*(\w+)$", status, re.M)[1], 16) for key in ("SigBlk", "SigCgt")}
    return any(mask & 1 << signal.SIGINT - 1 for mask in masks.values())


# --- fake libraries --------------------------------------------------------------------------------------------------

@case(each={tool: tool for tool in ("cudalaunch", "cudatop")}, long=["cudatop"], alone=True)
def junk_named_like_a_library(tool):
    """A process that maps junk as libcuda.so.7 does not stop the tool, which waits for other processes."""
    junk = harness.here / "libcuda.so.7"
    junk.write_bytes(b"junk" * 1024)
    code = ("import mmap, os, sys, time; f = os.open(sys.argv[1], os.O_RDONLY)\n"
            "m = mmap.mmap(f, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)\n"
            "print(flush=True); time.sleep(60)")
    mapper = subprocess.Popen([sys.executable, "-c", code, junk], stdout=subprocess.PIPE)
    programs.kill_at_end(mapper)
    mapper.stdout.readline()
    run = Run(*(["-b"] if tool == "cudatop" else []), "-d", "0.2", tool=tool)
    messages = run.finish(0)
    check(str(junk) in messages, f"no message about the file: {messages}")


# --- other users' files ----------------------------------------------------------------------------------------------

other_user = 65534


def files_in(folder):
    return {path.name: path.read_text(errors="replace") for path in folder.iterdir()}


@case(each={how: how for how in results})
def a_link_of_another_user_in_the_path(how):
    """Root writes a result to a path in another user's folder that contains a link: exit 1, and nothing is written."""
    theirs, target = harness.here / "theirs", harness.here / "target"
    theirs.mkdir()
    target.mkdir()
    (theirs / "link").symlink_to(target)
    os.chown(theirs, other_user, other_user)
    os.chown(theirs / "link", other_user, other_user, follow_symlinks=False)
    run, _ = result(how, theirs / "link", "-d", "0.1")
    messages = run.finish(1)
    check("behind the symbolic link 'link'" in messages and "hint: use the path" in messages, f"no reason in: {messages}")
    equal(files_in(target), {}, "files in the link's target")
    os.chown(theirs / "link", 0, 0, follow_symlinks=False)
    os.chown(theirs, 0, 0)
    result(how, theirs / "link", "-d", "0.1")[0].finish()


@case(each={how: how for how in results})
def existing_files_are_kept(how):
    """Existing files with names of results, or of their temporary files, are not changed."""
    name = results[how][2]
    folder = harness.here / "folder"
    folder.mkdir()
    for called, refused in ((f"{name}.new", False), (f"{name}.1", how == "record"), (name, True)):
        (folder / called).write_text("precious")
        messages = result(how, folder, "-d", "0.1")[0].finish(1 if refused else 0)
        check(not refused or f"{called}' exists and is not a gpusnoop" in messages and "hint: name another file" in messages, f"no reason in: {messages}")
        equal((folder / called).read_text(), "precious", called)
        if refused:
            (folder / called).unlink()
    made = folder / name
    if made.exists():
        os.chown(made, other_user, other_user)
        check("belongs to another user" in result(how, folder, "-d", "0.1")[0].finish(1), "no message about another user's file")
