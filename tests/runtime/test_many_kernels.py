# SPDX-License-Identifier: Apache-2.0
"""A program that registers 20,000 kernels with long names at once, as PyTorch does, and launches a few of them."""
import signal
import subprocess

import harness
from harness import case, equal
from programs import Tool, kill_at_end

source = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define KERNELS 20000
#define NAME_BYTES 600
typedef struct { unsigned x, y, z; } dim3;
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFunction(void** binary, const void* stub, char*, const char* name, int, void*, void*, void*, void*, int*);
int cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** args, size_t shared, void* stream);
static char stubs[KERNELS];
static const unsigned char fatbin[64] = {0x50, 0xed, 0x55, 0xba};
static struct { unsigned magic, version; const void* code; void* more; } wrapper = {0x466243b1, 1, fatbin, 0};
static void step(const char* status)
{
    puts(status);
    fflush(stdout);
    if (getchar() == EOF)
        exit(0);
}
int main(int argc, char** argv)
{
    char* names = mmap(0, KERNELS * NAME_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < KERNELS; i++) {
        char* name = names + i * NAME_BYTES;
        memset(name, 'x', NAME_BYTES - 1);
        name[snprintf(name, NAME_BYTES, "kernel_%d", i)] = '_';
    }
    void** binary = __cudaRegisterFatBinary(&wrapper);
    step("up");
    for (int i = 0; i < KERNELS; i++)
        __cudaRegisterFunction(binary, &stubs[i], 0, names + i * NAME_BYTES, -1, 0, 0, 0, 0, 0);
    if (!strcmp(argv[1], "unmapped"))
        munmap(names, KERNELS * NAME_BYTES);
    step("registered");
    for (int times = 0; times < 3; times++)
        for (int i = 2; i < argc; i++)
            cudaLaunchKernel(&stubs[atoi(argv[i])], (dim3){1, 1, 1}, (dim3){32, 1, 1}, 0, 0, 0);
    step("done");
    return 0;
}
"""


def traced(names, kernels):
    """Runs the tool and the program. The tool is stopped while the program registers kernels, so that their names
    overflow the ring buffer."""
    file, binary = harness.here / "many.c", harness.here / "many"
    file.write_text(source)
    libraries = ["-L", harness.standin, "-l:libcudart.so.12", f"-Wl,-rpath,{harness.standin}"]
    if subprocess.run(["cc", "-O1", "-o", binary, file, *libraries], capture_output=True).returncode:
        raise harness.Skip("no C compiler")
    process = subprocess.Popen([binary, names, *map(str, kernels)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    kill_at_end(process)

    def proceed(status):
        process.stdin.write("\n")
        process.stdin.flush()
        equal(process.stdout.readline(), f"{status}\n", "status of the program")

    equal(process.stdout.readline(), "up\n", "status of the program")
    tool = Tool("-p", process.pid, "--api", "runtime", "--names", "full", losses=True)
    tool.process.send_signal(signal.SIGSTOP)
    proceed("registered")
    tool.process.send_signal(signal.SIGCONT)
    proceed("done")
    return tool, process


def launches_by_number(rows):
    """{number in the kernel's name, or None: launches}"""
    return {row["kernel"].split("_")[1] if "kernel" in row else None: row["launches"] for row in rows}


@case(timeout=300)
def launched_kernels_have_names():
    """The first names are in the ring buffer, others are read from the process's memory: none is lost."""
    tool, _ = traced("mapped", [5, 10000, 19999])
    tool.stop()
    equal(launches_by_number(tool.rows), {"5": 3, "10000": 3, "19999": 3}, "launches by name")
    equal(tool.lost, {}, "losses")


@case(timeout=300)
def lost_names_are_reported():
    """Names that did not fit in the ring buffer are lost if the process unmaps them. Only those of launched kernels are
    reported as lost."""
    tool, _ = traced("unmapped", [5, 10000, 19999])
    tool.stop()
    equal(sorted(row["launches"] for row in tool.rows), [3, 3, 3], "launches")
    equal([name for name in launches_by_number(tool.rows) if name], ["5"], "names")
    equal(tool.lost, {"names_lost": 2}, "losses")
