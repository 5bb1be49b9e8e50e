# SPDX-License-Identifier: Apache-2.0
"""Interpreters in other places: a virtual environment, a container, a program that embeds Python, and several
interpreters in one process. Stacks must be as complete as in test_python.py."""
import collections
import json
import os
import pathlib
import signal
import subprocess

import containers
import harness
import system
from harness import Skip, case, check, equal, wait_until
from programs import Tool
from test_python import Caller, Script, added_up, compare, compiled, interpreter, program, python_frames

debian = "/usr/bin/python3"


@case(each={"3.11,linked": ("3.11", "--symlinks"), "3.11,copied": ("3.11", "--copies"), "debian,copied": (None, "--copies")},
      long=["3.11,copied"])
def in_a_virtual_environment(form):
    version, how = form
    folder = harness.here / "environment"
    python = interpreter(version) if version else debian
    done = subprocess.run([python, "-m", "venv", "--without-pip", how, folder], capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"no venv: {done.stderr.splitlines()[-1:]}")
    compare(Caller(folder / "bin/python3", scenarios="plain,model,made", times=5))


class ContainedCaller(Caller):
    """Runs as process 1 of its own root, with an interpreter whose path does not exist on this machine."""

    inside = "/srv/gpusnoop-python"
    libraries = [("/usr", "/usr"), ("/lib", "/lib"), ("/lib64", "/lib64")]

    def command(self, python, words):
        check(not os.path.exists(self.inside), f"{self.inside} exists on this machine")
        root = f"{harness.here}/root"
        binds = [*((outside, root + inside) for outside, inside in self.libraries),
                 (str(pathlib.Path(python).parent), root + self.inside), (str(harness.standin), root + "/srv/standin"),
                 (str(program.parent), root + "/srv/tests")]
        mounts = [["none", root, "tmpfs", 0, None],
                  *([source, target, None, system.MS_BIND, None] for source, target in binds), [root + "/proc"]]
        moved = [f"{self.inside}/{pathlib.Path(python).name}", f"/srv/tests/{program.name}", "/srv/standin/libcuda.so.1"]
        return containers.contain_command(mounts, root, [], moved + words[2:])

    def learn_pid(self):
        pid, = system.descendants(self.process.pid)
        return pid


def compare_in_a_container(contained, python):
    caller = contained(str(python), scenarios="plain,model,made", times=5)
    compare(caller)
    os.kill(caller.pid, signal.SIGKILL)
    caller.process.wait()


@case
def in_a_container():
    """Debian's interpreter, which is one file without symbols."""
    compare_in_a_container(ContainedCaller, pathlib.Path(debian).resolve())


# Interpreters of other releases (tests/kernels/other_root.py), by name.
elsewhere = {path.name: path for path in pathlib.Path("/elsewhere").glob("*/usr/bin/python3.*") if path.name[8:].isdigit()}


@case(each=elsewhere)
def of_another_release(python):
    usr = python.parents[1]

    class OtherRelease(ContainedCaller):
        libraries = [(str(usr), "/usr"), (str(usr / "lib"), "/lib")]

    compare_in_a_container(OtherRelease, python)


embedding = r"""
#include <dlfcn.h>
int main(int argc, char** argv)
{
    void* python = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    int (*run)(int, char**) = python ? (int (*)(int, char**))dlsym(python, "Py_BytesMain") : 0;
    return run ? run(argc - 1, argv + 1) : 127;
}
"""


@case
def in_a_program_that_embeds_python():
    """A C program that loads Debian's libpython."""
    library = next(iter(sorted(pathlib.Path("/usr/lib/x86_64-linux-gnu").glob("libpython3.*.so.1.0"))), None)
    if not library:
        raise Skip("no libpython3.*.so in /usr/lib/x86_64-linux-gnu")
    (harness.here / "server.c").write_text(embedding)
    server = harness.here / "server"
    if subprocess.run(["cc", "-O1", "-o", server, harness.here / "server.c", "-ldl"], capture_output=True).returncode:
        raise Skip("no C compiler")

    class Embedding(Caller):
        def command(self, python, words):
            return [server, library, *words]

    tool = compare(Embedding(debian, scenarios="plain,model,from_c", times=5))
    check(not any("libpython" in frame for row in tool.rows for frame in row["frames"]), "no frame of the interpreter")


@case(each={version: version for version in ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")}, long=["3.9", "3.10", "3.12"])
def in_a_second_interpreter(version):
    """Code of a sub-interpreter. Up to 3.11, a thread's TLS slot has the state of the main interpreter, so that calls
    appear at the line that runs the sub-interpreter."""
    caller = Caller(interpreter(version), scenarios="second", times=5, env=os.environ | {"RESULT": f"{harness.here}/second"})
    tool = Tool("-p", caller.pid, "-U")
    first = caller.go()
    tool.stop()
    inside = collections.Counter()
    for line in (harness.here / "second").read_text().splitlines():
        for frames, launches in json.loads(line):
            inside[tuple(frames)] += launches
    equal(sum(inside.values()), 25, "launches of the sub-interpreter")
    want = dict(first) | inside
    if tuple(map(int, version.split("."))) <= (3, 11):
        want = {frames: launches * (1 + 5) for frames, launches in first.items()}
    equal(added_up(tool.rows, python_frames), want, "launches by stack")


alike = r"""
typedef int (*launch_t)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*);
__attribute__((noinline)) int leaf(launch_t launch, int n) { return launch((void*)16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0) + n; }
__attribute__((noinline)) int left(launch_t launch, int n) { return leaf(launch, n + 1) + 2; }
__attribute__((noinline)) int right(launch_t launch, int n) { return leaf(launch, n + 3) + 4; }
int run(launch_t launch, int n) { return (n % 3 ? right(launch, n) : left(launch, n)) + 1; }
"""
calls_alike = """
import ctypes, os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
driver = ctypes.CDLL(sys.argv[1])
run = ctypes.CDLL(sys.argv[2]).run
launch = ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p)
print("up", flush=True)
sys.stdin.readline()
for i in range(6000):
    run(launch, i)
print("done", flush=True)
sys.stdin.readline()
"""


@case
def indistinguishable_callers():
    """Like user_stacks.indistinguishable_callers, below Python: different native code that leaves identical stacks."""
    (harness.here / "alike.c").write_text(alike)
    (harness.here / "alike.py").write_text(calls_alike)
    helper = compiled(harness.here / "alike.c", "-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls")
    script = Script(debian, harness.here / "alike.py", harness.standin / "libcuda.so.1", helper)
    tool = Tool("-p", script.pid, "-U", "-i", "500ms", losses=True)
    script.go()
    wait_until(lambda: b"stacks_differing" in tool.out_file.read_bytes(), "stacks_differing among the losses")
    tool.stop()
    equal(sum(row["launches"] for row in tool.rows), 6000, "launches")
    equal({tuple(frame.split("+")[0] for frame in row["frames"][:3]) for row in tool.rows}, {("leaf", "left", "run")}, "frames")
    equal(tool.lost.get("stacks_differing"), 4, "calls with other callers")
