# SPDX-License-Identifier: Apache-2.0
"""Another user's program that fills the tool's tables, which all processes share. Its fake libraries let it create any
number of kernels, communicators, allocations, captures or graphs."""
import os
import subprocess

import harness
from harness import equal
from programs import kill_at_end

unprivileged_user = 65534

libraries = {
    "libcuda.so.1": r"""
static unsigned long made = 0x700000000000;
int cuLaunchKernel(void* f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared, void* stream,
                   void** arguments, void** extra) { return 0; }
int cuMemAlloc_v2(unsigned long* address, unsigned long bytes) { *address = made += 4096; return 0; }
int cuStreamBeginCapture_v2(void* stream, int mode) { return 0; }
int cuGraphCreate(void** graph, unsigned flags) { *graph = (void*)(made += 64); return 0; }
int cuInit(unsigned flags) { return 0; }
""",
    "libnccl.so.2": r"""
int ncclAllReduce(const void* send, void* receive, unsigned long count, int type, int reduction, void* comm, void* stream) { return 0; }
int ncclCommDestroy(void* comm) { return 0; }
""",
}

program = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
int cuMemAlloc_v2(unsigned long*, unsigned long);
int cuStreamBeginCapture_v2(void*, int);
int cuGraphCreate(void**, unsigned);
int ncclAllReduce(const void*, void*, unsigned long, int, int, void*, void*);
static void call(const char* what, unsigned long number)
{
    unsigned long address;
    void* handle = (void*)(0x10000000 + 64 * number);
    if (!strcmp(what, "launches"))
        cuLaunchKernel(handle, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0);
    else if (!strcmp(what, "allocations"))
        cuMemAlloc_v2(&address, 4096);
    else if (!strcmp(what, "captures"))
        cuStreamBeginCapture_v2(handle, 0);
    else if (!strcmp(what, "graphs"))
        cuGraphCreate(&handle, 0);
    else
        ncclAllReduce(0, 0, 1, 0, 0, handle, 0);
}
int main(int argc, char** argv)
{
    unsigned long count = strtoul(argv[2], 0, 0), per_ms = strtoul(argv[3], 0, 0), done = 0;
    struct timespec pause = {0, 1000000};
    puts("up");
    fflush(stdout);
    if (getchar() == EOF)
        return 0;
    while (done < count) {
        for (unsigned long i = 0; i < per_ms && done < count; i++)
            call(argv[1], done++);
        nanosleep(&pause, 0);
    }
    puts("done");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
"""


def compile(*words, source):
    command = ["cc", "-O1", "-w", "-x", "c", "-", *map(str, words)]
    if subprocess.run(command, input=source, text=True, capture_output=True).returncode:
        raise harness.Skip("no C compiler")


class Neighbour:
    """After go(), creates `count` objects of one kind, `per_ms` of them per millisecond. Its libraries are mapped
    before go()."""

    def __init__(self, what, count, per_ms=1000):
        folder = harness.here / "neighbour"
        if not folder.exists():
            folder.mkdir()
            os.chmod(folder, 0o755)
            for name, source in libraries.items():
                compile("-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", folder / name, source=source)
            compile("-x", "none", *(folder / name for name in libraries), f"-Wl,-rpath,{folder}", "-o", folder / "fill",
                    source=program)
        self.process = subprocess.Popen([folder / "fill", what, str(count), str(per_ms)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, user=unprivileged_user, group=unprivileged_user, extra_groups=[])
        self.pid = self.process.pid
        kill_at_end(self.process)
        equal(self.process.stdout.readline(), "up\n", "first line of the neighbour")

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self

    def done(self):
        equal(self.process.stdout.readline(), "done\n", "next line of the neighbour")
        return self

    def end(self):
        self.process.stdin.close()
        self.process.wait()
