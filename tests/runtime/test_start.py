# SPDX-License-Identifier: Apache-2.0
"""A tool that starts while hundreds of processes run detects all of them, and counts their calls."""
import re
import subprocess
import sys

import harness
from driver_calls import Calls, same_calls
from harness import case, equal
from programs import Tool, kill_at_end

crowd_size = 300

# A process that maps the driver, and its children. When a line arrives, child N makes N % 7 + 1 rounds of calls.
crowd = """
import os, sys
from ctypes import *
cuda, size = CDLL(sys.argv[1]), int(sys.argv[2])
waits, go = os.pipe()

def call(times):
    context, memory, kernel = c_void_p(), c_uint64(), create_string_buffer(64)
    assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(byref(context), 0, 0) == 0
    for _ in range(times):
        assert cuda.cuMemAlloc_v2(byref(memory), c_size_t(4096)) == 0
        assert cuda.cuMemcpyHtoD_v2(memory, kernel, c_size_t(64)) == 0
        assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
        assert cuda.cuCtxSynchronize() == 0

def child(number):
    os.close(go)
    os.read(waits, 1)
    call(1 + number % 7)
    os._exit(0)

pids = [os.fork() or child(number) for number in range(size)]
os.close(waits)
print(*pids, flush=True)
sys.stdin.readline()
os.close(go)
print(*[os.waitpid(pid, 0)[1] for pid in pids], flush=True)
"""


class Crowd:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", crowd, harness.standin / "libcuda.so.1", str(crowd_size)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        kill_at_end(self.process)
        self.pids = [int(pid) for pid in self.process.stdout.readline().split()]
        self.calls = {pid: 1 + number % 7 for number, pid in enumerate(self.pids)}

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        equal(set(self.process.stdout.readline().split()), {"0"}, "exit status of the crowd")


def counted(tool, key, wanted=lambda row: True):
    """Sums by process, over all reports."""
    sums = {}
    for row in filter(wanted, tool.rows):
        if row.get("pid") and row[key]:
            sums[row["pid"]] = sums.get(row["pid"], 0) + row[key]
    return sums


def beside_many(*arguments):
    """Runs the tool beside a crowd, all of which it must detect when it starts."""
    many = Crowd()
    tool = Tool("-v", *arguments)
    detected = {int(pid) for pid in re.findall(r"process (\d+) \(.*\) maps CUDA", tool.error)}
    equal(set(many.pids) - detected, set(), "processes that the tool has not detected")
    many.go()
    return many, tool.stop()


tools = {
    "cudalaunch": (("--by", "pid"), "launches", lambda row: True),
    "cudamemcpy": (("--by", "pid"), "copies", lambda row: True),
    "cudasync": (("--by", "pid,wait"), "calls", lambda row: row["wait"] == "context"),
    "gpualloc": (("--by", "pid"), "allocs", lambda row: True),
    "cudagraph": (("--summary",), "direct_launches", lambda row: True),
    "cudatop": (("-b", "1"), "launches", lambda row: row["by"] == "pid"),
}

for name, (arguments, key, wanted) in tools.items():
    def run(arguments=arguments, key=key, wanted=wanted):
        many, tool = beside_many(*arguments)
        equal(counted(tool, key, wanted), many.calls, key)
    run.__module__, run.__name__ = "test_start", name
    case(run, tool=name, alone=True)


@case(tool="cudagap", alone=True)
def cudagap():
    many, tool = beside_many("--by", "pid")
    equal(set(counted(tool, "launch_ns")), set(many.pids), "processes with time in launches")


@case(tool="nvioctl", alone=True)
def nvioctl():
    """Driver calls are made by a program outside the crowd."""
    many, calls = Crowd(), Calls("call RM_FREE 11")
    tool = Tool("--attach", "tracepoint", "-r", 0)
    many.go()
    calls.go().wait()
    same_calls(tool.stop(), calls)
