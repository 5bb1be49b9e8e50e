# SPDX-License-Identifier: Apache-2.0
"""Names of threads with --by thread, also of threads that have exited before the report."""
import re
import subprocess

import harness
from harness import case, check, equal
from programs import Tool, kill_at_end

source = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*);
static void step(void)
{
    fflush(stdout);
    if (getchar() == EOF)
        _exit(0);
}
static void* run(void* name)
{
    pthread_setname_np(pthread_self(), name);
    printf("%ld\n", syscall(SYS_gettid));
    for (int i = 0; i < 50; i++)
        launch((void*)16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
    return 0;
}
int main(int argc, char** argv)
{
    (void)argc;
    pthread_t thread;
    pthread_setname_np(pthread_self(), "python3");
    launch = (void*)dlsym(dlopen(argv[1], RTLD_NOW), "cuLaunchKernel");
    puts("up");
    step();
    pthread_create(&thread, 0, run, "pt_autograd_0");
    pthread_join(thread, 0);
    pthread_create(&thread, 0, run, "a\033[31m\n\"b");
    pthread_join(thread, 0);
    run("python3");
    puts("done");
    step();
    return 0;
}
"""


class Threads:
    """A program whose main thread has the name of the process. Its two other threads have exited when go() returns."""

    def __init__(self):
        file, binary = harness.here / "threads.c", harness.here / "threads"
        file.write_text(source)
        if subprocess.run(["cc", "-O1", "-o", binary, file, "-ldl", "-lpthread"], capture_output=True).returncode:
            raise harness.Skip("no C compiler")
        self.process = subprocess.Popen([binary, harness.standin / "libcuda.so.1"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        kill_at_end(self.process)
        self.pid = self.process.pid
        equal(self.process.stdout.readline(), "up\n", "status of the program")

    def go(self):
        """{tid: name}"""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        tids = [int(self.process.stdout.readline()) for _ in range(3)]
        equal(self.process.stdout.readline(), "done\n", "status of the program")
        return dict(zip(tids, ["pt_autograd_0", "a\033[31m\n\"b", "python3"]))


@case(each={"cudalaunch": ("cudalaunch", ["-r", 0], "launches"), "cudagap": ("cudagap", [], "wall_ns"),
            "cudagap --cheap": ("cudagap", ["--cheap"], "wall_ns")})
def threads_have_their_own_names(run):
    """JSON has the names of both thread and process; text has the thread's name, without control characters."""
    name, words, figure = run
    harness.binary = harness.build / name
    threads = Threads()
    tool, text = (Tool("-p", threads.pid, "--by", "thread", *words, json=json) for json in (True, False))
    names = threads.go()
    tool.stop(), text.stop()
    rows = [row for row in tool.rows if row[figure]]
    equal({row["tid"]: row["thread_comm"] for row in rows}, names, "names of threads")
    equal({row["comm"] for row in rows}, {"python3"}, "name of the process")
    check("\033" not in text.text, f"control characters: {text.text!r}")
    for tid, comm in names.items():
        shown = re.escape(comm.split("\033")[0])
        check(re.search(rf"^ *{threads.pid} +{tid} +{shown}", text.text, re.M), f"{comm!r} in: {text.text}")


@case
def names_in_recordings():
    """In a replay by thread, COMM is the thread's name; in a replay by process, it is the name of the process."""
    threads, file = Threads(), harness.here / "threads.json"
    tool = Tool("-p", threads.pid, "--by", "thread", "--record", file)
    threads.go()
    tool.stop()
    for words, name in (["--by", "thread"], "pt_autograd_0"), ([], "pt_autograd_0"), (["--by", "pid"], "python3"):
        shown = subprocess.run([harness.binary, "--replay", file, *words], capture_output=True, text=True, check=True).stdout
        check(re.search(rf"\b{threads.pid}\b.* {name} ", shown), f"{name} in: {shown}")


@case(each={"cudalaunch": "cudalaunch", "cudatop": "cudatop"})
def names_in_histograms_and_cudatop(name):
    harness.binary = harness.build / name
    threads = Threads()
    words = ["--by", "thread"] if name == "cudatop" else ["-H", "grid", "-L"]
    tool = Tool("-p", threads.pid, *words)
    names = threads.go()
    tool.stop()
    records = tool.rows if name == "cudatop" else [r for r in tool.records if r["type"] == "hist"]
    reported = {record["tid"]: record["thread_comm"] for record in records if "thread_comm" in record}
    equal({tid: reported.get(tid) for tid in names}, names, "names of threads")
