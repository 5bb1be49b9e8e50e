# SPDX-License-Identifier: Apache-2.0
"""Mapping gate: when the program after `--` maps a library, it waits until the library has its probes, so that no call
is missed."""
import ctypes
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys

import harness
from harness import Skip, case, check, equal, wait_until
from programs import Tool, calls_in, kill_at_end
from truth import same_counts

calls = "launch vecadd 1009; launch saxpy 503"
libc = ctypes.CDLL(None, use_errno=True)

# Launches without delay, through the library at the given path.
python_calls = """
import ctypes, os, sys
launch = ctypes.CDLL(sys.argv[1]).cuLaunchKernel
launch.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
for _ in range(int(sys.argv[2])):
    launch(16, 1, 1, 1, 1, 1, 1, 0, None, None, None)
os._exit(0)
"""

# Installs a seccomp filter that allows everything, then executes the given program.
under_own_filter = """
import ctypes, os, sys
class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("t", ctypes.c_ubyte), ("f", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("first", ctypes.POINTER(Instruction))]
allow = (Instruction * 1)(Instruction(6, 0, 0, 0x7fff0000))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(1, allow)), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def own_driver(name):
    """A copy of the driver in a folder that no tool searches."""
    folder = harness.here / name
    folder.mkdir()
    shutil.copy(harness.standin / "libcuda.so.1", folder)
    return folder / "libcuda.so.1"


def workload(script, truth, form="workload-dlopen"):
    return [harness.standin / form, "--truth", harness.here / truth, script]


def quoted(words):
    return " ".join(shlex.quote(str(word)) for word in words)


def by_process(tool):
    found = {}
    for row in tool.rows:
        found[row["pid"]] = found.get(row["pid"], 0) + row["launches"]
    return sorted(found.values())


@case(each={"c": "c", "python": "python"})
def twenty_programs_with_new_libraries(language):
    """20 programs run in sequence. Each opens a driver that no process has mapped before, and calls it immediately. No
    call is missed, and the tool exits with the script's status."""
    commands = []
    for i in range(20):
        driver = own_driver(f"lib{i}")
        commands.append(workload(f"dlopen {driver}; launch vecadd {100 + i}", f"{i}.truth") if language == "c" else
                        [sys.executable, "-SsE", "-c", python_calls, driver, 100 + i])
    tool = Tool("--by", "pid", program=["sh", "-c", "; ".join([*map(quoted, commands), "exit 7"])]).finish(7)
    equal(by_process(tool), [100 + i for i in range(20)], "launches of each process")
    check("held" not in tool.error, tool.error)


@case(each={"multi": "multi", "tracefs": "tracefs", "perf": "perf"}, alone=("perf",), long=("tracefs", "perf"))
def each_way_to_attach(way):
    tool = Tool("--attach", way, program=workload(f"dlopen {own_driver('lib')}; {calls}", "truth")).finish()
    same_counts(tool, calls_in(harness.here / "truth"))


@case(each={form: form for form in ("workload", "workload-nopie", "workload-static")})
def runtime_from_the_first_call(form):
    """Calls of the runtime, which may be linked into the program: the program then waits when it starts."""
    tool = Tool("--api", "runtime", program=workload(calls, "truth", form)).finish()
    same_counts(tool, calls_in(harness.here / "truth"), api="runtime")


@case
def another_program_after_exec():
    """A process executes another program, which maps another library."""
    script = f"dlopen {own_driver('a')}; {calls}; exec; dlopen {own_driver('b')}; launch vecadd 257; end"
    same_counts(Tool(program=workload(script, "truth")).finish(), calls_in(harness.here / "truth"))


@case(each={kind: kind for kind in ("call", "tail", "chain")}, long=("call", "tail"))
def a_driver_that_forwards(kind):
    """Both drivers have their probes before the first call, which is counted once."""
    folders = f"LD_LIBRARY_PATH={harness.standin}/forward/{kind}:{harness.standin}"
    tool = Tool(program=["env", folders, *workload(f"dlopen; {calls}", "truth")]).finish()
    same_counts(tool, calls_in(harness.here / "truth"))


@case
def program_with_a_seccomp_filter():
    command = workload(f"dlopen {own_driver('lib')}; {calls}", "truth")
    tool = Tool(program=[sys.executable, "-c", under_own_filter, *command]).finish()
    same_counts(tool, calls_in(harness.here / "truth"))


@case
def program_under_ptrace():
    """A program after `--` may trace another one with ptrace."""
    if not shutil.which("strace"):
        raise Skip("no strace")
    command = workload(f"dlopen {own_driver('lib')}; {calls}", "truth")
    tool = Tool(program=["strace", "-f", "-e", "trace=mmap", "-o", harness.here / "strace", *command]).finish()
    same_counts(tool, calls_in(harness.here / "truth"))
    check("PROT_EXEC" in (harness.here / "strace").read_text(), "strace did not report the mapping")


def waits_at_gate(pid):
    return "seccomp" in pathlib.Path(f"/proc/{pid}/wchan").read_text()


def children_of(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def program_of(tool):
    def found():
        return next((int(pid) for pid in children_of(tool.pid)
                     if b"workload" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]), None)
    return wait_until(found, "the program has started")


@case
def tool_killed_while_the_program_waits():
    """The waiting program continues, and can map further libraries."""
    script = f"touch up; wait go; dlopen {own_driver('a')}; touch mapped; exec; dlopen {own_driver('b')}; touch again; end"
    tool = Tool(program=workload(script, "truth"), banner=False)
    wait_until((harness.here / "up").exists, "the program runs")
    pid = program_of(tool)
    tool.process.send_signal(signal.SIGSTOP)
    (harness.here / "go").touch()
    wait_until(lambda: waits_at_gate(pid), "the program waits")
    check(not (harness.here / "mapped").exists(), "the program mapped the library instead of waiting")
    tool.process.kill()
    tool.process.wait()
    for name in "mapped", "again":
        wait_until((harness.here / name).exists, name)


@case
def no_wait_after_tracing():
    """No program waits when it maps a library after the end of -d, even if it outlives the tool."""
    command = workload(f"touch up; wait go; dlopen {own_driver('lib')}; touch mapped", "truth")
    tool = Tool("-d", "0.2", program=["sh", "-c", f"{quoted(command)} &"])
    wait_until((harness.here / "up").exists, "the program runs")
    tool.finish()
    (harness.here / "go").touch()
    wait_until((harness.here / "mapped").exists, "the library is mapped")


@case
def library_that_cannot_be_read():
    """The file system of a library does not answer the tool: the program continues, with a warning."""
    folder = harness.here / "fuse"
    folder.mkdir()
    server = subprocess.Popen([sys.executable, harness.root / "tests/runtime/hanging_files.py", folder,
                               own_driver("lib")], stdout=subprocess.PIPE, text=True)
    kill_at_end(server)
    harness.at_end.append(lambda: libc.umount2(os.fsencode(folder), 2))
    equal(server.stdout.readline(), "up\n", "the server is up")
    server.send_signal(signal.SIGUSR2)
    tool = Tool(program=workload(f"dlopen {folder}/libcuda.so.1; launch vecadd 3", "truth"))
    tool.finish()
    check("cannot be read within 3 s" in tool.error, f"no warning: {tool.error}")
