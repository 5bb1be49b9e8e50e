# SPDX-License-Identifier: Apache-2.0
"""-U: every frame from the call to main, however deep the stack is and however far apart its frames lie."""
import json
import pathlib
import subprocess

import harness
from harness import case, equal, wait_until
from programs import Tool, end_at_last

program = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*);
__attribute__((noinline)) int leaf(void)
{
    return launch((void*)16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0) + 1;
}
__attribute__((noinline)) int down(int frames, int bytes)
{
    volatile char room[bytes];
    room[0] = 1;
    return (frames > 1 ? down(frames - 1, bytes) : leaf()) + room[0];
}
int main(int argc, char** argv)
{
    int sum = 0;
    launch = (void*)dlsym(dlopen(argv[1], RTLD_NOW), "cuLaunchKernel");
    while (access(argv[2], F_OK))
        usleep(1000);
    for (int i = 0; i < 100; i++)
        sum += down(atoi(argv[3]), atoi(argv[4]));
    puts("done");
    fflush(stdout);
    pause(); /* its addresses have names as long as it lives */
    return sum;
}
"""

def started(binary, go, *words):
    """One of the programs here, which has the driver, and waits for `go`."""
    process = subprocess.Popen([binary, harness.standin / "libcuda.so.1", go, *map(str, words)], stdout=subprocess.PIPE)
    end_at_last(process)
    wait_until(lambda: "libcuda" in pathlib.Path(f"/proc/{process.pid}/maps").read_text(), "the driver is mapped")
    return process


stacks = {"near": (5, 16), "up_to_the_windows_end": (30, 16), "beyond_the_window": (4, 4096), "one_far_frame": (1, 65536),
          "deep": (62, 16), "deeper_than_the_window": (64, 16), "deepest": (110, 16)}


@case(each=stacks)
def every_frame(stack):
    frames, room = stack
    source, binary, go = (harness.here / file for file in ("deep.c", "deep", "go"))
    source.write_text(program)
    # The kernel follows frame pointers, which this program therefore has.
    if subprocess.run(["cc", "-O1", "-g0", "-fno-omit-frame-pointer", "-o", binary, source, "-ldl"], capture_output=True).returncode:
        raise harness.Skip("no C compiler")
    process = started(binary, go, frames, room)
    flames = harness.here / "flames.json"
    tool = Tool("-p", process.pid, "-U", "--speedscope", flames)
    go.touch()
    equal(process.stdout.readline(), b"done\n", "the program")
    tool.stop()
    process.kill()
    row, = tool.rows
    equal(row["launches"], 100, "launches")
    functions = [frame.split("+")[0] for frame in row["frames"]]
    equal(functions[:frames + 2], ["leaf"] + ["down"] * frames + ["main"], "frames")
    drawn = json.loads(flames.read_text())
    profile, = drawn["profiles"]
    equal(profile["weights"], [100], "launches of the flame graph")
    names = [drawn["shared"]["frames"][frame]["name"].split(" ")[0] for frame in profile["samples"][0]]
    equal(names[0], f"deep-{process.pid}", "its outermost frame")
    equal(names[1:-1], functions[::-1], "its frames")


library = r"""
int CALLED(int n);
__attribute__((noinline)) int NAME(int n)
{
    volatile char room[ROOM];
    room[n % ROOM] = (char)n;
    return CALLED(n + 1) + room[n % ROOM]; /* no tail call */
}
"""
calls = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
static int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*);
int level1(int n);
int level0(int n)
{
    return launch((void*)16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0) + n;
}
int main(int argc, char** argv)
{
    int sum = argc;
    launch = (void*)dlsym(dlopen(argv[1], RTLD_NOW), "cuLaunchKernel");
    while (access(argv[2], F_OK))
        usleep(1000);
    for (int i = 0; i < 100; i++)
        sum += level1(i);
    puts("done");
    fflush(stdout);
    pause();
    return sum;
}
"""


@case(each={"O1": "-O1", "O2": "-O2", "Os": "-Os"}, long=["O1", "Os"], asan=True)
def without_frame_pointers(optimized):
    """Five libraries, none with frame pointers: every one of their functions is there, by name, in its order."""
    folder, go = harness.here, harness.here / "go"
    folder.joinpath("library.c").write_text(library)
    folder.joinpath("calls.c").write_text(calls)
    compiler = ["cc", optimized, "-g0", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"]
    libraries = [folder / f"liblevel{n}.so" for n in range(1, 6)]
    for n, path in enumerate(libraries, 1):
        called = f"level{n + 1}" if n < 5 else "level0"
        names = [f"-DNAME=level{n}", f"-DCALLED={called}", f"-DROOM={n * 100}"]
        if subprocess.run([*compiler, "-shared", "-fPIC", *names, "-o", path, folder / "library.c"], capture_output=True).returncode:
            raise harness.Skip("no C compiler")
    binary = folder / "calls"
    subprocess.run([*compiler, "-rdynamic", "-o", binary, folder / "calls.c", *libraries, f"-Wl,-rpath,{folder}", "-ldl"], check=True)
    process = started(binary, go)
    tool = Tool("-p", process.pid, "-U")
    go.touch()
    equal(process.stdout.readline(), b"done\n", "the program")
    tool.stop()
    row, = tool.rows
    equal(row["launches"], 100, "launches")
    functions = [frame.split("+")[0] for frame in row["frames"]]
    equal(functions[:7], ["level0", "level5", "level4", "level3", "level2", "level1", "main"], "frames")


alike = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
static int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*);
__attribute__((noinline)) int leaf(int n)
{
    return launch((void*)16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0) + n;
}
__attribute__((noinline)) int left(int n)
{
    return leaf(n + 1) + 2;
}
__attribute__((noinline)) int right(int n)
{
    return leaf(n + 3) + 4;
}
int main(int argc, char** argv)
{
    int sum = argc;
    cpu_set_t one; /* counts of what is looked at again are a CPU's */
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    launch = (void*)dlsym(dlopen(argv[1], RTLD_NOW), "cuLaunchKernel");
    while (access(argv[2], F_OK))
        usleep(1000);
    for (int i = 0; i < 6000; i++)
        sum += i % 3 ? right(i) : left(i);
    puts("done");
    fflush(stdout);
    pause();
    return sum;
}
"""


@case
def two_that_are_alike():
    """Two functions without frame pointers, whose frames have the same size and call the same one: by its id, the stack is
    one. That it has other callers at times is told: of the calls 1024, 2048, ..., 5120 behind the first, one is from left."""
    source, binary, go = (harness.here / file for file in ("alike.c", "alike", "go"))
    source.write_text(alike)
    if subprocess.run(["cc", "-O1", "-g0", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-rdynamic", "-o", binary,
                       source, "-ldl"], capture_output=True).returncode:
        raise harness.Skip("no C compiler")
    process = started(binary, go)
    tool = Tool("-p", process.pid, "-U", "-i", "500ms", losses=True)
    go.touch()
    equal(process.stdout.readline(), b"done\n", "the program")
    wait_until(lambda: b"stacks_differing" in tool.out_file.read_bytes(), "that callers differ is told")
    tool.stop()
    equal(sum(row["launches"] for row in tool.rows), 6000, "launches")
    equal({tuple(frame.split("+")[0] for frame in row["frames"][:3]) for row in tool.rows}, {("leaf", "left", "main")}, "frames")
    equal(tool.lost.get("stacks_differing"), 4, "calls with other callers")
