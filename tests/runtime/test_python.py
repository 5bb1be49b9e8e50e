# SPDX-License-Identifier: Apache-2.0
"""Python stacks: every frame with its current line, compared with what the program records about itself
(python_caller.py), for each installed version of CPython."""
import collections
import glob
import json
import pathlib
import re
import shutil
import subprocess

import harness
from harness import Skip, case, check, equal, wait_until
from programs import Tool, kill_at_end

program = pathlib.Path(__file__).with_name("python_caller.py")
versions = [f"3.{minor}" for minor in range(8, 15)]
usual = ("3.8", "3.11", "3.13")  # run by make test
INNER, OUTER = 40, 24            # frames kept of a deep stack


def interpreters():
    """{version: path} of the interpreters in pyenv and /opt/python."""
    found = {}
    for path in sorted(glob.glob("/root/.pyenv/versions/*/bin/python3") + glob.glob("/opt/python/*/bin/python3")):
        if version := re.search(r"/(3\.\d+)\.[^/]*/bin/python3$", path):
            found[version[1]] = path
    return found


class Caller:
    """python_caller.py, started and ready to call."""

    def __init__(self, python, lock="released", scenarios="all", threads=1, times=20, env=None):
        words = [program, harness.standin / "libcuda.so.1", lock, scenarios, str(threads), str(times)]
        self.process = subprocess.Popen(self.command(python, words), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=env)
        kill_at_end(self.process)
        check(self.process.stdout.readline().startswith("(3, "), "the program did not start")
        self.pid = self.learn_pid()

    def command(self, python, words):
        return [python, *words]

    def learn_pid(self):
        return self.process.pid

    def go(self):
        """{frames, innermost first: launches}"""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return {tuple(frames): launches for frames, launches in json.loads(self.process.stdout.readline())}


class Script:
    """A Python program that prints "up", waits for a line, makes its calls, prints "done", and waits to be killed."""

    def __init__(self, *command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        kill_at_end(self.process)
        equal(self.process.stdout.readline(), "up\n", "status of the program")
        self.pid = self.process.pid

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        equal(self.process.stdout.readline(), "done\n", "status of the program")


def compiled(source, *options):
    """Builds a shared library from a C file, and returns its path."""
    built = harness.here / f"lib{source.stem}.so"
    if subprocess.run(["cc", *options, "-shared", "-fPIC", "-o", built, source, "-ldl"], capture_output=True).returncode:
        raise Skip("no C compiler")
    return built


def interpreter(version):
    path = interpreters().get(version)
    if not path:
        raise Skip(f"no CPython {version} in /root/.pyenv/versions")
    return path


def shortened(frames):
    if len(frames) <= INNER + OUTER:
        return frames
    return frames[:INNER] + (f"[{len(frames) - INNER - OUTER} frames]",) + frames[-OUTER:]


def python_frames(row):
    """Python frames of a row, and the line for omitted frames between them."""
    lines = [line for line in row["frames"] if line.startswith("[")]
    frames = [f"{frame['function']}:{frame.get('line')}" for frame in row["stack"] if frame["language"] == "python"]
    return tuple(frames[:INNER] + lines + frames[INNER:])


def added_up(rows, key, figure="launches"):
    sums = collections.Counter()
    for row in rows:
        sums[key(row)] += row[figure]
    return dict(sums)


def compare(caller):
    """Traces all launches of the caller, and compares them with the truth, stack by stack."""
    tool = Tool("-p", caller.pid, "-U")
    truth = caller.go()
    tool.stop()
    want = collections.Counter()
    for frames, launches in truth.items():
        want[shortened(frames)] += launches
    equal(added_up(tool.rows, python_frames), dict(want), "launches by stack")
    return tool


@case(each={f"{version},{lock}": (version, lock) for version in versions for lock in ("released", "held")},
      long=[f"{version},{lock}" for version in versions for lock in ("released", "held")
            if version not in usual or lock == "held"])
def every_frame(form):
    version, lock = form
    compare(Caller(interpreter(version), lock))


@case(each={path.name: path for path in sorted(pathlib.Path("/usr/bin").glob("python3.*")) if path.name[8:].isdigit()},
      asan=True)
def of_the_system(python):
    """Debian's interpreter is one file, without symbols."""
    # In an emulated machine, finding names takes too long for all scenarios.
    tool = compare(Caller(python, scenarios="all" if harness.patience == 1 else "plain,model", times=5))
    row = next(row for row in tool.rows if any("Model.layer" in frame for frame in row["frames"]))
    check(all("ffi" in frame for frame in row["frames"][:2]), f"the first frames are not native callers: {row['frames']}")
    kinds = [frame["language"] for frame in row["stack"]]
    equal(kinds, sorted(kinds), "native frames, then Python frames")
    check(not any("python3" in frame for frame in row["frames"] if ".py:" not in frame), "no frame of the interpreter")


embedding = r"""
#include <Python.h>
int main(int argc, char** argv)
{
    return Py_BytesMain(argc, argv);
}
"""


@case(each={"moved": ("-pie", "-pic.a"), "not_moved": ("-no-pie", ".a")}, long=["not_moved"])
def linked_by_lld(form):
    """lld does not pad segments: the interpreter's code begins in the last page of the segment before it."""
    pie, library = form
    source, binary = harness.here / "embedding.c", harness.here / "embedding"
    source.write_text(embedding)
    code = "import sysconfig; print(*sysconfig.get_config_vars('INCLUDEPY', 'LIBPL', 'LIBRARY', 'LIBS', 'MODLIBS'), sep=chr(10))"
    variables = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, check=True)
    headers, folder, name, libraries, module_libraries = variables.stdout.splitlines()
    archive = pathlib.Path(folder) / name.replace(".a", library)
    if not shutil.which("ld.lld") or not archive.exists():
        raise Skip(f"no lld, or no {archive}")
    subprocess.run(["cc", "-fuse-ld=lld", pie, "-fPIE", f"-I{headers}", "-o", binary, source, archive, "-Wl,-export-dynamic",
                    *libraries.split(), *module_libraries.split()], check=True)
    compare(Caller(binary, scenarios="plain,model"))


@case(each={version: version for version in versions}, long=[version for version in versions if version not in usual])
def threads(version):
    compare(Caller(interpreter(version), "released", "plain,model,deep,made", 32, 10))


@case(alone=True)
def system_wide():
    """A process that has loaded the driver before the tool starts: its first call has Python frames, too."""
    caller = Caller("/usr/bin/python3", scenarios="plain")
    tool = Tool("-U", "1")
    truth = caller.go()
    wait_until(lambda: any(row["pid"] == caller.pid for row in tool.rows), "a row with its launches")
    tool.stop()
    equal(added_up((row for row in tool.rows if row["pid"] == caller.pid), python_frames), truth, "launches by stack")


@case
def events():
    caller = Caller("/usr/bin/python3", scenarios="plain,lines", times=3)
    tool = Tool("-p", caller.pid, "-e", "-U")
    truth = caller.go()
    tool.stop()
    reported = collections.Counter(python_frames(event) for event in tool.events)
    equal(dict(reported), truth, "events by stack")


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
        own = [frame for frame in frames if not re.match(r"<module>:[1-7]$", frame)]  # code compiled as "<made>" has no file
        want[own[0]] += launches
    equal(added_up(tool.rows, line_of), dict(want), "launches by line")
    check(all(row["code_file"] == str(program) for row in tool.rows), "wrong file of a line")


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
def skipped_files(more):
    """Lines in site-packages are skipped. If --skip excludes the program's file, too, the innermost line is shown."""
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
    reported = added_up(ours, python_frames)
    for frames, launches in truth.items():
        check(reported.get(frames, 0) >= launches, f"{launches} launches of the child by {frames}: {reported}")


thread = r"""
#define _GNU_SOURCE
#include <pthread.h>
static int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*);
#define LEVEL(NAME, CALLED) __attribute__((noinline)) int NAME(int n) { volatile char room[64]; room[n & 63] = n; return CALLED + room[n & 63]; }
LEVEL(innermost, launch((void*)16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0))
LEVEL(inner, innermost(n + 1))
LEVEL(outer, inner(n + 1))
static void* run(void* unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "pt_autograd_0");
    for (int i = 0; i < 50; i++)
        outer(i);
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


@case(each={"frame_pointers": "-fno-omit-frame-pointer", "no_frame_pointers": "-fomit-frame-pointer"})
def a_thread_without_python(form):
    """The thread's stack has its native callers, no frames of other threads, and a line that marks it as not running
    Python."""
    (harness.here / "thread.c").write_text(thread)
    (harness.here / "starts.py").write_text(starts_thread)
    helper = compiled(harness.here / "thread.c", "-O1", form, "-fno-optimize-sibling-calls")
    script = Script("/usr/bin/python3", harness.here / "starts.py", harness.standin / "libcuda.so.1", helper)
    tool = Tool("-p", script.pid, "-U")
    script.go()
    tool.stop()
    row, = tool.rows
    equal(row["launches"], 50, "launches")
    equal([frame.split("+")[0] for frame in row["frames"][:4]], ["innermost", "inner", "outer", "run"], "native frames")
    equal(row["frames"][-1], "[thread pt_autograd_0 runs no Python]", "the last line")


@case(tool="cudagap")
def stacks_of_sleeps():
    caller = Caller("/usr/bin/python3", scenarios="waits", times=10)
    tool = Tool("-p", caller.pid, "-U")
    truth = caller.go()
    tool.stop()
    slept = [row for row in tool.rows if row["reason"] == "sleep"]
    equal(added_up(slept, python_frames, "blocks"), truth, "sleeps by stack")
    check(all(row["frames"][0].endswith("(kernel)") for row in slept), "the first frame is not the kernel's")


holds = """
import ctypes, sys
cuda = ctypes.CDLL(sys.argv[1])
context = ctypes.c_void_p()
cuda.cuInit(0); cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); cuda.cuCtxSetCurrent(context)
def keep():
    address = ctypes.c_uint64()
    cuda.cuMemAlloc_v2(ctypes.byref(address), 4096)
def wait():
    cuda.cuCtxSynchronize()
print("up", flush=True)
sys.stdin.readline()
for i in range(20):
    keep()
    wait()
print("done", flush=True)
sys.stdin.readline()
"""


def row_of_holder(*arguments):
    """The only row of a tool that groups calls by line, for a program that allocates and waits."""
    (harness.here / "holds.py").write_text(holds)
    script = Script("/usr/bin/python3", harness.here / "holds.py", harness.standin / "libcuda.so.1")
    tool = Tool("-p", script.pid, *arguments)
    script.go()
    tool.stop()
    row, = tool.rows
    return row


@case(tool="gpualloc")
def memory_by_line():
    row = row_of_holder("--by", "line")
    equal((line_of(row), row["allocs"], row["live_bytes"]), ("keep:8", 20, 20 * 4096), "held memory by line")


@case(tool="gpualloc")
def leaks():
    row = row_of_holder("--leaks")
    equal((row["allocations"], python_frames(row)), (20, ("keep:8", "<module>:14")), "leaks by stack")


@case(tool="cudasync")
def waits_by_line():
    row = row_of_holder("--by", "line")
    equal((line_of(row), row["calls"]), ("wait:10", 20), "waits")


allreduce = """
import ctypes, sys
nccl = ctypes.CDLL(sys.argv[1])
comm = ctypes.c_void_p()
nccl.ncclCommInitAll(ctypes.byref(comm), 1, None)
nccl.ncclAllReduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
def reduce(n):
    for _ in range(n):
        nccl.ncclAllReduce(None, None, 16, 7, 0, comm, None)
print("up", flush=True)
sys.stdin.readline()
reduce(5)
print("done", flush=True)
sys.stdin.readline()
"""


@case(tool="ncclwait")
def stacks_of_collectives():
    (harness.here / "rank.py").write_text(allreduce)
    script = Script("/usr/bin/python3", harness.here / "rank.py", harness.standin / "libnccl.so.2")
    tool = Tool("-p", script.pid, "-e", "-U")
    script.go()
    tool.stop()
    equal(len(tool.events), 5, "calls")
    for event in tool.events:
        lines = [(frame["function"], frame["line"]) for frame in event["stack"] if frame["language"] == "python"]
        equal(lines, [("reduce", 9), ("<module>", 12)], f"Python frames: {event['frames']}")


forged_frames = r"""
#include <stdint.h>
#include <string.h>
typedef int (*launch_t)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*);
static struct { uint64_t head[2], length, hash, state, wide; char data[64]; } text; /* ASCII str, 3.11's layout */
static struct { uint64_t head[2], size, hash; char data[64]; } table; /* layout of a bytes object */
static uint64_t code[64], frame[64];
/* During the launch, the thread's innermost frame is a forged one. */
void forge(char* state, int which, launch_t launch)
{
    uint64_t* const innermost = (uint64_t*)*(uint64_t*)(state + 56) + 1;
    const uint64_t before = *innermost;
    text.length = 12;
    text.state = 1 << 2 | 1 << 5 | 1 << 6;
    memcpy(text.data, "\x1b[2J\n\x9b\x07\"\\,{x", 12);
    table.size = 3;
    memcpy(table.data, "\xd0\x09\x0a", 3);
    code[14] = code[15] = code[16] = (uint64_t)&text; /* 112, 120, 128 */
    code[17] = (uint64_t)&table;
    code[9] = 7;
    frame[4] = (uint64_t)code;
    frame[7] = (uint64_t)code + 184;
    frame[6] = 0;
    *innermost = (uint64_t)frame;
    switch (which) {
    case 1: frame[6] = (uint64_t)frame; break;                /* a frame that is its own caller */
    case 2: *innermost = 0x10; break;                         /* unmapped */
    case 3: *innermost = 0xffffffff81000000; break;           /* kernel memory */
    case 4: text.length = 1ull << 60; break;
    case 5: text.length = 5000; break;
    case 6: table.size = 1ull << 63; break;
    case 7: table.size = 60000; break;
    case 8: code[17] = 0xdeadbeef; code[16] = 1; break;
    case 9: frame[7] = ~0ull; frame[6] = (uint64_t)frame + 8; break;
    }
    launch((void*)16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
    *innermost = before;
}
"""
forging_program = """
import ctypes, sys
driver, forger = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[2])
ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
state = ctypes.pythonapi.PyThreadState_Get()
print("up", flush=True)
sys.stdin.readline()
for which in range(10):
    for _ in range(3):
        forger.forge(ctypes.c_void_p(state), which, ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p))
print("done", flush=True)
sys.stdin.readline()
"""


@case(asan=True)
def forged_interpreter_state():
    """Forged frames: circular, unmapped, in kernel memory, with names of any length and escape sequences. All calls are
    counted, and no control character is printed."""
    python = interpreter("3.11")
    (harness.here / "forged_frames.c").write_text(forged_frames)
    (harness.here / "forged_frames.py").write_text(forging_program)
    forger = compiled(harness.here / "forged_frames.c", "-O1")
    script = Script(python, harness.here / "forged_frames.py", harness.standin / "libcuda.so.1", forger)
    tools = Tool("-p", script.pid, "-U", losses=True), Tool("-p", script.pid, "-U", json=False, losses=True)
    script.go()
    for tool in tools:
        tool.stop()
    equal(sum(row["launches"] for row in tools[0].rows), 30, "launches")
    frames = [frame for row in tools[0].rows for frame in row["frames"]]
    for words in "[more than 1024 frames]", "[Python frames could not be read]":
        check(words in frames, f"no '{words}' in {frames}")
    check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", tools[1].text), f"control characters in {tools[1].text!r}")
    check("\\x1B[2J\\x0A" in tools[1].text, f"no escaped name in {tools[1].text}")


@case
def native_and_depth():
    caller = Caller("/usr/bin/python3", scenarios="deep", times=5)
    tool = Tool("-p", caller.pid, "-U", "--native", "--depth", 20)
    caller.go()
    tool.stop()
    row, = tool.rows
    equal(len(row["frames"]), 21, "lines")
    check(re.fullmatch(r"\[\d+ more\]", row["frames"][-1]), row["frames"][-1])
    check(any(".py:" not in frame and "(python3" in frame for frame in row["frames"]), "no frame of the interpreter")
