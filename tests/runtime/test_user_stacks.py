# SPDX-License-Identifier: Apache-2.0
"""-U: every frame from the call to main, for deep stacks and for large frames."""
import json
import pathlib
import re
import shutil
import subprocess

import harness
from harness import case, check, equal, wait_until
from programs import Tool, kill_at_end
from test_top_screen import Screen

def functions_of(frames):
    return [frame.split("+")[0] for frame in frames]


def started(binary, go, *words, by=()):
    """Starts a program that was built from a source in this file, or one of tests/standin/stacks. It maps the driver,
    and waits for the file `go`."""
    process = subprocess.Popen([*by, binary, harness.standin / "libcuda.so.1", go, *map(str, words)], stdout=subprocess.PIPE)
    kill_at_end(process)
    wait_until(lambda: "libcuda" in pathlib.Path(f"/proc/{process.pid}/maps").read_text(), "the driver is mapped")
    return process


stacks = {"near": (5, 16), "up_to_the_windows_end": (30, 16), "beyond_the_window": (4, 4096), "one_far_frame": (1, 65536),
          "deep": (62, 16), "deeper_than_the_window": (64, 16), "deepest": (110, 16)}


@case(each=stacks)
def every_frame(stack):
    frames, room = stack
    go = harness.here / "go"
    process = started(harness.standin / "stacks/deep", go, frames, room)
    flames = harness.here / "flames.json"
    tool = Tool("-p", process.pid, "-U", "--speedscope", flames)
    go.touch()
    equal(process.stdout.readline(), b"done\n", "status of the program")
    tool.stop()
    process.kill()
    row, = tool.rows
    equal(row["launches"], 100, "launches")
    functions = functions_of(row["frames"])
    equal(functions[:frames + 2], ["leaf"] + ["down"] * frames + ["main"], "frames")
    drawn = json.loads(flames.read_text())
    profile, = drawn["profiles"]
    equal(profile["weights"], [100], "launches of the flame graph")
    names = [drawn["shared"]["frames"][frame]["name"].split(" ")[0] for frame in profile["samples"][0]]
    equal(names[0], f"deep-{process.pid}", "outermost frame of the flame graph")
    equal(names[1:-1], functions[::-1], "frames of the flame graph")


levels = ["level0(int)", "level5", "level4(int)", "level3", "level2(int)", "level1", "main"]


def through_five_libraries(kind, *words):
    """The started program, and the file that it waits for."""
    go = harness.here / "go"
    return started(harness.standin / "stacks" / kind / "levels", go, *words), go


def stack_by_program(process):
    """Callers by name and offset, as the program itself prints them before its last line, "done"."""
    lines = iter(process.stdout.readline, b"done\n")
    return [re.sub(r"^_Z\d([a-z0-9]+)i\+", r"\1(int)+", line.decode().rstrip()) for line in lines]


@case
def equals_the_programs_own_stack():
    """Names and offsets of all frames. Libraries have frame pointers, and every other one signs return addresses (or
    begins its functions with endbr64)."""
    process, go = through_five_libraries("framed", "print", 100)
    tool = Tool("-p", process.pid, "-U")
    go.touch()
    own_stack = stack_by_program(process)
    tool.stop()
    equal(functions_of(own_stack), levels[1:], "stack by the program")
    callers = {tuple(row["frames"][:len(levels)]): row["launches"] for row in tool.rows}
    equal({functions_of(frames)[0]: launches for frames, launches in callers.items()}, {"main": 1, levels[0]: 100}, "launches")
    equal([list(frames[1:]) for frames in callers if not frames[0].startswith("main")], [own_stack], "callers")


@case(each={optimized: optimized for optimized in ("O1", "O2", "Os")}, long=["O1", "Os"], asan=True)
def without_frame_pointers(optimized):
    """Five libraries: each of their functions appears, by name and in order."""
    process, go = through_five_libraries(optimized, "launch", 100)
    tool = Tool("-p", process.pid, "-U")
    go.touch()
    equal(process.stdout.readline(), b"done\n", "status of the program")
    tool.stop()
    rows = {tuple(functions_of(row["frames"])[:7]): row["launches"] for row in tool.rows}
    equal(rows.pop(tuple(levels), None), 100, f"launches through all levels; other rows: {rows}")
    equal([(frames[0], launches) for frames, launches in rows.items()], [("main", 1)], "launches by main itself")


def linked_by_lld(*options, program=()):
    """levels and its libraries, linked by lld, which does not pad segments: a page belongs to two segments."""
    objects = harness.build / "standin/obj/stacks/O2"
    if not shutil.which("ld.lld"):
        raise harness.Skip("no lld")
    if not objects.exists():
        raise harness.Skip(f"no {objects}")
    linker = ["c++", "-fuse-ld=lld", f"-Wl,-rpath,{harness.here}", *options]
    libraries = [harness.here / f"liblevel{level}.so" for level in range(1, 6)]
    for library in libraries:
        subprocess.run([*linker, "-shared", "-o", library, objects / f"{library.stem[3:]}.o"], check=True)
    subprocess.run([*linker, "-o", harness.here / "levels", objects / "levels.o", "-Wl,--no-as-needed", *libraries,
                    "-rdynamic", "-ldl", *program], check=True)
    return harness.here / "levels"


@case(each={"small_pages": ([], ["-pie"]), "large_pages": (["-Wl,-z,max-page-size=0x200000"], ["-pie"]),
            "not_moved": ([], ["-no-pie"])}, long=["large_pages"])
def files_linked_by_lld(linked):
    options, program = linked
    go = harness.here / "go"
    process = started(linked_by_lld(*options, program=program), go, "launch", 100)
    tool = Tool("-p", process.pid, "-U")
    go.touch()
    equal(process.stdout.readline(), b"done\n", "status of the program")
    tool.stop()
    rows = {tuple(functions_of(row["frames"])): row["launches"] for row in tool.rows}
    frames, = (frames for frames, launches in rows.items() if launches == 100)
    equal((list(frames[:7]), frames[-1]), (levels, "_start"), "frames")


@case(tool="cudagap")
def blocked_threads():
    process, go = through_five_libraries("O2", "sleep", 20)
    tool = Tool("-p", process.pid, "-U")
    go.touch()
    equal(process.stdout.readline(), b"done\n", "status of the program")
    tool.stop()
    row = max((row for row in tool.rows if row["reason"] == "sleep"), key=lambda row: row["blocks"])
    equal(row["blocks"], 20, "sleeps")
    frames = [frame for frame in functions_of(row["frames"]) if frame in levels]
    equal(frames, levels, f"frames: {row['frames']}")
    check(any("libc.so" in frame for frame in row["frames"]), f"no frames of libc: {row['frames']}")


@case(tool="ncclwait")
def collectives():
    process, go = through_five_libraries("O2", "reduce", 20, harness.standin / "libnccl.so.2")
    tool = Tool("-p", process.pid, "-e", "-U")
    go.touch()
    equal(process.stdout.readline(), b"done\n", "status of the program")
    tool.stop()
    equal(len(tool.events), 20, "calls")
    for event in tool.events:
        equal(functions_of(event["frames"])[:7], levels, "frames")


@case(tool="cudatop")
def calls_on_the_screen():
    process, go = through_five_libraries("O2", "launch", 2000000000)
    with Screen("-p", process.pid, interval=0.5, lines=100) as screen:
        screen.wait_for(f"{process.pid} levels")
        screen.keys("Enter")
        go.touch()
        in_order = r".*\n.*".join(rf" {re.escape(level)}\+0x" for level in levels)
        screen.wait_for(lambda text: re.search(in_order, text), "all frames in order")
        screen.keys("Escape")
        screen.wait_for(lambda _: screen.column("PID") == [str(process.pid)], "the list")
        screen.quit()


made = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char** argv)
{
    /* sub $8,%rsp; mov $16,%edi; mov $1,%esi; call *%rax; add $8,%rsp; ret */
    static const unsigned char code[] = {0x48, 0x83, 0xec, 8, 0xbf, 16, 0, 0, 0, 0xbe, 1, 0, 0, 0, 0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3};
    void* launch = dlsym(dlopen(argv[1], RTLD_NOW), "cuLaunchKernel");
    void* page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    while (access(argv[2], F_OK))
        usleep(1000);
    for (int i = 0; i < 100; i++) {
        int result;
        __asm__ volatile("call *%2" : "=a"(result) : "0"(launch), "r"(page) : "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11", "memory");
    }
    puts("done");
    fflush(stdout);
    pause();
    return argc;
}
"""


@case
def generated_code():
    """Generated code has no name, and is marked as JIT."""
    source, binary, go = (harness.here / file for file in ("made.c", "made", "go"))
    source.write_text(made)
    if subprocess.run(["cc", "-O1", "-mno-red-zone", "-o", binary, source, "-ldl"], capture_output=True).returncode:
        raise harness.Skip("no C compiler for x86-64")
    process = started(binary, go)
    tool = Tool("-p", process.pid, "-U")
    go.touch()
    equal(process.stdout.readline(), b"done\n", "status of the program")
    tool.stop()
    equal(sum(row["launches"] for row in tool.rows), 100, "launches")
    for row in tool.rows:
        check(re.fullmatch(r"0x[0-9a-f]+ \(JIT\)", row["frames"][0]), f"unexpected caller: {row['frames']}")


@case
def above_48_bits():
    """A thread's stack, a kernel's handle and generated code are above 48 bits, if the machine has such addresses."""
    go = harness.here / "go"
    process = started(harness.standin / "stacks/high", go)
    if process.stdout.readline() == b"low\n":
        raise harness.Skip("addresses have 48 bits here")
    tool = Tool("-p", process.pid, "-U")
    go.touch()
    equal(process.stdout.readline(), b"done\n", "status of the program")
    tool.stop()
    by_caller = {functions_of(row["frames"])[0]: row for row in tool.rows}
    equal(functions_of(by_caller["leaf"]["frames"])[:7], ["leaf", *["down"] * 5, "calls"], "frames")
    equal(by_caller.pop("leaf")["launches"], 100, "launches with these frames")
    made, = by_caller.values()
    equal(made["launches"], 100, "launches by generated code")
    check(re.fullmatch(r"0x4[0-9a-f]{12} \(JIT\)", made["frames"][0]), f"unexpected caller: {made['frames']}")


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
    cpu_set_t one; /* each CPU has its own counter for rechecks of known stacks */
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


@case(each={"far_from_its_end": (), "near_its_end": ("env", "-i", "setarch", "-R")})
def indistinguishable_callers(by):
    """Two functions without frame pointers have frames of the same size and call the same function, so their stacks
    have the same id. Calls 1024, 2048, ..., 5120 after the first one are rechecked: four of these five calls have a
    different caller than the first one, and are reported. Without environment and ASLR, the stack is shorter than the
    window that the BPF programs read."""
    source, binary, go = (harness.here / file for file in ("alike.c", "alike", "go"))
    source.write_text(alike)
    if subprocess.run(["cc", "-O1", "-g0", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-rdynamic", "-o", binary,
                       source, "-ldl"], capture_output=True).returncode:
        raise harness.Skip("no C compiler")
    process = started(binary, go, by=by)
    tool = Tool("-p", process.pid, "-U", "-i", "500ms", losses=True)
    go.touch()
    equal(process.stdout.readline(), b"done\n", "status of the program")
    wait_until(lambda: b"stacks_differing" in tool.out_file.read_bytes(), "stacks_differing in a record")
    tool.stop()
    equal(sum(row["launches"] for row in tool.rows), 6000, "launches")
    equal({tuple(functions_of(row["frames"][:3])) for row in tool.rows}, {("leaf", "left", "main")}, "frames")
    equal(tool.lost.get("stacks_differing"), 4, "calls with other callers")
