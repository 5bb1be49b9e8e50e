# SPDX-License-Identifier: Apache-2.0
"""Stacks of Python: every frame with the line that runs, by what the program says of itself (python_caller.py), on each
version of CPython that this machine has."""
import collections
import glob
import json
import pathlib
import re
import subprocess

import harness
from harness import Skip, case, check, equal, wait_until
from programs import Tool, end_at_last

program = pathlib.Path(__file__).with_name("python_caller.py")
versions = [f"3.{minor}" for minor in range(8, 15)]
usual = ("3.8", "3.11", "3.13")  # in make test
INNER, OUTER = 40, 24            # frames that are kept of a deep stack


def interpreters():
    """{version: path}, of pyenv's and of the system's."""
    found = {}
    for path in sorted(glob.glob("/root/.pyenv/versions/*/bin/python3") + glob.glob("/opt/python/*/bin/python3")):
        if version := re.search(r"/(3\.\d+)\.[^/]*/bin/python3$", path):
            found[version[1]] = path
    return found


class Caller:
    """python_caller.py, as far as go()."""

    def __init__(self, python, lock="released", scenarios="all", threads=1, times=20, env=None):
        self.process = subprocess.Popen(
            [python, program, harness.standin / "libcuda.so.1", lock, scenarios, str(threads), str(times)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        end_at_last(self.process)
        check(self.process.stdout.readline().startswith("(3, "), "the program has begun")
        self.pid = self.process.pid

    def go(self):
        """{frames, innermost first: launches}"""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return {tuple(frames): launches for frames, launches in json.loads(self.process.stdout.readline())}


def interpreter(version):
    path = interpreters().get(version)
    if not path:
        raise Skip(f"there is no CPython {version} in /root/.pyenv/versions")
    return path


def as_kept(frames):
    if len(frames) <= INNER + OUTER:
        return frames
    return frames[:INNER] + (f"[{len(frames) - INNER - OUTER} frames]",) + frames[-OUTER:]


def python_frames(row):
    """Those that have been taken apart, and what is left out between them."""
    lines = [line for line in row["frames"] if line.startswith("[")]
    frames = [f"{frame['function']}:{frame.get('line')}" for frame in row["stack"] if frame["language"] == "python"]
    return tuple(frames[:INNER] + lines + frames[INNER:])


def added_up(rows, key, what="launches"):
    sums = collections.Counter()
    for row in rows:
        sums[key(row)] += row[what]
    return dict(sums)


def compare(truth, tool):
    want = collections.Counter()
    for frames, launches in truth.items():
        want[as_kept(frames)] += launches
    equal(added_up(tool.rows, python_frames), dict(want), "launches by stack")


@case(each={f"{version},{lock}": (version, lock) for version in versions for lock in ("released", "held")},
      long=[f"{version},{lock}" for version in versions for lock in ("released", "held")
            if version not in usual or lock == "held"])
def every_frame(form):
    version, lock = form
    caller = Caller(interpreter(version), lock)
    tool = Tool("-p", caller.pid, "-U")
    truth = caller.go()
    tool.stop()
    compare(truth, tool)


@case(asan=True)
def of_the_system():
    """Debian's is one file, without symbols of its own."""
    caller = Caller("/usr/bin/python3", times=5)
    tool = Tool("-p", caller.pid, "-U")
    truth = caller.go()
    tool.stop()
    compare(truth, tool)
    row = next(row for row in tool.rows if any("Model.layer" in frame for frame in row["frames"]))
    check("ffi_call" in row["frames"][2], f"native callers stand in front, without frame pointers: {row['frames']}")
    kinds = [frame["language"] for frame in row["stack"]]
    equal(kinds, sorted(kinds), "native frames, then those of Python")
    check(not any("python3" in frame for frame in row["frames"] if ".py:" not in frame), "no frame of the interpreter")


@case(each={version: version for version in versions}, long=[version for version in versions if version not in usual])
def threads(version):
    caller = Caller(interpreter(version), "released", "plain,model,deep,made", 32, 10)
    tool = Tool("-p", caller.pid, "-U")
    truth = caller.go()
    tool.stop()
    compare(truth, tool)


@case(alone=True)
def everybody():
    """Nobody has named the process: it is looked at once it has called."""
    caller = Caller("/usr/bin/python3", scenarios="plain")
    tool = Tool("-U", "1")
    caller.go()
    wait_until(lambda: any(row["pid"] == caller.pid for row in tool.rows), "its launches are seen")
    tool.stop()
    equal(sum(row["launches"] for row in tool.rows if row["pid"] == caller.pid), 20, "launches")


@case
def lines_of_events():
    caller = Caller("/usr/bin/python3", scenarios="plain,lines", times=3)
    tool = Tool("-p", caller.pid, "-e", "-U")
    truth = caller.go()
    tool.stop()
    seen = collections.Counter(python_frames(event) for event in tool.events)
    equal(dict(seen), truth, "lines by stack")


def line_of(row):
    return f"{row['code_function']}:{row['code_line']}"


@case
def by_line():
    caller = Caller("/usr/bin/python3", scenarios="plain,lines,coroutine,made", times=10)
    tool = Tool("-p", caller.pid, "--by", "line")
    truth = caller.go()
    tool.stop()
    want = collections.Counter()
    for frames, launches in truth.items():
        own = [frame for frame in frames if not re.match(r"<module>:[1-7]$", frame)]  # code of "<made>" is of no file
        want[own[0]] += launches
    equal(added_up(tool.rows, line_of), dict(want), "launches by line")
    check(all(row["code_file"] == str(program) for row in tool.rows), "of the program's file")


@case
def by_function():
    caller = Caller("/usr/bin/python3", scenarios="plain,lines,coroutine", times=10)
    tool = Tool("-p", caller.pid, "--by", "function")
    truth = caller.go()
    tool.stop()
    want = collections.Counter()
    for frames, launches in truth.items():
        want[frames[0].rsplit(":", 1)[0]] += launches
    equal(added_up(tool.rows, lambda row: row["code_function"]), dict(want), "launches by function")


library = "import sys\n\ndef launch(note, cu_launch, grid):\n    note(sys._getframe()); cu_launch(*grid)\n"


@case(each={"own": (), "none": ("--skip", "*/python_caller.py")})
def of_libraries(more):
    """A line of site-packages is not the program's own; with --skip, its own file is not, either: the innermost is shown."""
    folder = harness.here / "site-packages"
    folder.mkdir()
    (folder / "a_library.py").write_text(library)
    caller = Caller("/usr/bin/python3", scenarios="library", times=5, env={"PYTHONPATH": str(folder)})
    tool = Tool("-p", caller.pid, "--by", "line", *more)
    truth = caller.go()
    tool.stop()
    want = collections.Counter()
    for frames, launches in truth.items():
        want[frames[0] if more else frames[1]] += launches
    equal(len(want), 1 if more else 2, "lines")
    equal(added_up(tool.rows, line_of), dict(want), "launches by line")


@case(alone=True)
def forked():
    caller = Caller("/usr/bin/python3", scenarios="forked", times=1)
    tool = Tool("-U")
    truth = caller.go()
    tool.stop()
    ours = [row for row in tool.rows if row["comm"].startswith("python3") and "stack" in row]
    seen = added_up(ours, python_frames)
    for frames, launches in truth.items():
        check(seen.get(frames, 0) >= launches, f"{launches} launches of the child by {frames}: {seen}")


thread = r"""
#include <pthread.h>
static int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*);
static void* run(void* unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "pt_autograd_0");
    for (int i = 0; i < 50; i++)
        launch((void*)16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
    return 0;
}
void launch_by_thread(void* function)
{
    pthread_t thread;
    launch = function;
    pthread_create(&thread, 0, run, 0);
    pthread_join(thread, 0);
}
"""
starts_thread = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
helper = ctypes.CDLL(sys.argv[2])
print("up", flush=True)
sys.stdin.readline()
helper.launch_by_thread(ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p))
print("done", flush=True)
sys.stdin.readline()
"""


@case
def a_thread_without_python():
    """It has none of another thread's frames, and says so."""
    (harness.here / "thread.c").write_text(thread)
    (harness.here / "starts.py").write_text(starts_thread)
    helper = harness.here / "libthread.so"
    if subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", helper, harness.here / "thread.c"], capture_output=True).returncode:
        raise Skip("no C compiler")
    process = subprocess.Popen(["/usr/bin/python3", harness.here / "starts.py", harness.standin / "libcuda.so.1", helper],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    end_at_last(process)
    equal(process.stdout.readline(), "up\n", "the program")
    tool = Tool("-p", process.pid, "-U")
    process.stdin.write("\n")
    process.stdin.flush()
    equal(process.stdout.readline(), "done\n", "the program")
    tool.stop()
    row, = tool.rows
    equal(row["launches"], 50, "launches")
    check(row["frames"][0].startswith("run+0x"), f"its native frames: {row['frames']}")
    equal(row["frames"][-1], "[thread pt_autograd_0 runs no Python]", "the last line")


@case
def native_and_depth():
    caller = Caller("/usr/bin/python3", scenarios="deep", times=5)
    tool = Tool("-p", caller.pid, "-U", "--native", "--depth", 20)
    caller.go()
    tool.stop()
    row, = tool.rows
    equal(len(row["frames"]), 21, "lines")
    check(re.fullmatch(r"\[\d+ more\]", row["frames"][-1]), row["frames"][-1])
    check(any(".py:" not in frame and "(python3" in frame for frame in row["frames"]), "frames of the interpreter")
