# SPDX-License-Identifier: Apache-2.0
"""The stand-in driver, called through its exports."""
import ctypes as c
import re
import subprocess
import sys
import threading
import time

from harness import build, check, environment, equal, table

P, U, I = c.c_void_p, c.c_uint, c.c_int
cuda = c.CDLL(str(build / "libcuda.so.1"))
LAUNCH_CLASS, RECORDED, GRAPH, HOST, ALLOC, FREE, COPY, SYNC, GRAPH_CALL = range(9)


def call(name, *arguments, want=0):
    equal(getattr(cuda, name)(*arguments), want, name)


def out(name, *arguments, kind=P):
    value = kind()
    call(name, c.byref(value), *arguments)
    return value.value


def address(name):
    return c.cast(getattr(cuda, name), P).value


def counts():
    values = (c.c_uint64 * 9)()
    equal(cuda.standin_counts(values, 9), 9)
    return list(values)


def ready():
    call("cuInit", 0)
    call("cuCtxSetCurrent", P(out("cuDevicePrimaryCtxRetain", 0)))


def function(name=b"_Z1kv"):
    module = out("cuModuleLoadData", b"x")
    return module, out("cuModuleGetFunction", P(module), name)


def launch(f, block=(32, 1, 1), stream=None, want=0):
    call("cuLaunchKernel", P(f), U(1), U(1), U(1), *map(U, block), U(0), P(stream), None, None, want=want)


def proc(symbol, version, flags):
    value, status = P(), I(-1)
    result = cuda.cuGetProcAddress_v2(symbol.encode(), c.byref(value), version, c.c_uint64(flags), c.byref(status))
    return result, value.value, status.value


@check
def calls_before_cuInit_are_refused():
    script = f"""
import ctypes as c
cuda = c.CDLL({str(build / "libcuda.so.1")!r})
args = [c.c_void_p(1)] + [c.c_uint(1)] * 7 + [None] * 3
assert cuda.cuLaunchKernel(*args) == 3
assert cuda.cuInit(0) == 0 and cuda.cuLaunchKernel(*args) == 201
"""
    subprocess.run([sys.executable, "-c", script], check=True, env=environment())


@check
def devices_and_contexts():
    ready()
    equal(out("cuDriverGetVersion", kind=I), 13000)
    equal(out("cuDeviceGetCount", kind=I), 2)
    other = out("cuCtxCreate_v4", None, U(0), I(1))
    equal(out("cuCtxGetDevice", kind=I), 1)
    equal(out("cuCtxPopCurrent_v2"), other)
    equal(out("cuCtxGetDevice", kind=I), 0)
    call("cuDeviceGet", c.byref(I()), I(2), want=101)


@check
def function_handles_are_per_module_and_keep_their_name():
    ready()
    module, f = function(b"_Z1av")
    equal(out("cuModuleGetFunction", P(module), b"_Z1av"), f)
    assert out("cuModuleGetFunction", P(module), b"_Z1bv") != f
    assert function(b"_Z1av")[1] != f
    equal(c.cast(c.c_void_p.from_address(f + 8).value, c.c_char_p).value, b"_Z1av")
    equal(out("cuFuncGetName", P(f), kind=c.c_char_p), b"_Z1av")
    library = out("cuLibraryLoadData", b"x", None, None, 0, None, None, 0)
    kernel = out("cuLibraryGetKernel", P(library), b"_Z1cv")
    equal(out("cuKernelGetName", P(kernel), kind=c.c_char_p), b"_Z1cv")
    equal(out("cuFuncGetName", P(out("cuKernelGetFunction", P(kernel))), kind=c.c_char_p), b"_Z1cv")


@check
def launches_check_their_arguments_and_are_counted():
    ready()
    _, f = function()
    before = counts()[LAUNCH_CLASS]
    launch(f)
    launch(None, want=400)
    launch(f, block=(0, 1, 1), want=1)
    equal(counts()[LAUNCH_CLASS], before + 3)


@check
def tests_can_set_a_result_and_a_delay():
    ready()
    _, f = function()
    cuda.standin_next_result(719)
    launch(f, want=719)
    launch(f)
    cuda.standin_next_result(2)
    call("cuMemAlloc_v2", c.byref(P()), c.c_size_t(64), want=2)
    cuda.standin_next_delay_ns(c.c_uint64(100_000_000))
    start = time.monotonic()
    launch(f)
    delayed = time.monotonic()
    launch(f)
    assert delayed - start >= 0.1 > time.monotonic() - delayed


@check
def allocations_are_tracked():
    ready()
    free_before = c.c_size_t()
    call("cuMemGetInfo_v2", c.byref(free_before), c.byref(c.c_size_t()))
    a = out("cuMemAlloc_v2", c.c_size_t(1000))
    b = out("cuMemAllocAsync", c.c_size_t(1000), None)
    assert abs(a - b) >= 1000
    free_now = c.c_size_t()
    call("cuMemGetInfo_v2", c.byref(free_now), c.byref(c.c_size_t()))
    equal(free_before.value - free_now.value, 2000)
    call("cuMemcpyHtoD_v2", P(a), b"x" * 1000, c.c_size_t(1000))
    call("cuMemFree_v2", P(a))
    call("cuMemFree_v2", P(a), want=1)
    call("cuMemFreeAsync", P(b), None)
    call("cuMemAlloc_v2", c.byref(P()), c.c_size_t(1 << 50), want=2)
    host = out("cuMemHostAlloc", c.c_size_t(4096), 0)
    c.memset(host, 7, 4096)
    call("cuMemFreeHost", P(host))


@check
def capture_records_instead_of_running():
    ready()
    _, f = function()
    stream = out("cuStreamCreate", 0)
    call("cuStreamBeginCapture_v2", P(stream), 0)
    call("cuStreamBeginCapture_v2", P(stream), 0, want=401)
    before = counts()
    launch(f, stream=stream)
    launch(f, stream=stream)
    equal(counts()[RECORDED] - before[RECORDED], 2)
    equal(out_last("cuStreamIsCapturing", P(stream), kind=I), 1)
    graph = out_last("cuStreamEndCapture", P(stream))
    call("cuStreamEndCapture", P(stream), c.byref(P()), want=401)
    n = c.c_size_t()
    call("cuGraphGetNodes", P(graph), None, c.byref(n))
    equal(n.value, 2)
    executable = out("cuGraphInstantiateWithFlags", P(graph), c.c_uint64(0))
    call("cuGraphLaunch", P(executable), P(stream))
    call("cuGraphLaunch", None, P(stream), want=1)
    result = I()
    call("cuGraphExecUpdate", P(executable), P(graph), None, c.byref(result))
    other = out("cuGraphCreate", 0)
    call("cuGraphExecUpdate", P(executable), P(other), None, c.byref(result), want=910)
    equal(result.value, 2)


def out_last(name, *arguments, kind=P):
    value = kind()
    call(name, *arguments, c.byref(value))
    return value.value


@check
def host_functions_run_on_the_calling_thread():
    ready()
    seen = []
    host = c.CFUNCTYPE(None, P)(lambda argument: seen.append((argument, threading.get_ident())))
    call("cuLaunchHostFunc", None, host, P(7))
    equal(seen, [(7, threading.get_ident())])


@check
def proc_address_knows_every_version():
    """cuGetProcAddress finds each export by its base name, its version, and the flag for its default stream."""
    for name, version in table("driver_exports.txt"):
        base, _, suffix = re.fullmatch(r"(.*?)(_v\d+)?(_ptsz|_ptds)?", name).groups()
        if version == "0":
            equal(proc(base, 13000, 0), (0, None, 1), name)
        else:
            equal(proc(base, int(version), 2 if suffix else 0), (0, address(name), 0), name)


@check
def proc_address_rules():
    def resolves(symbol, version, flags, name):
        equal(proc(symbol, version, flags), (0, address(name), 0), f"{symbol} {version} {flags}")

    for symbol in ("cuMemAlloc_v2", "cuLaunchKernel_ptsz", "cuNoSuchFunction"):
        equal(proc(symbol, 13000, 0), (0, None, 1), symbol)
    resolves("cuMemAlloc", 2000, 0, "cuMemAlloc")
    resolves("cuMemAlloc", 3020, 0, "cuMemAlloc_v2")
    resolves("cuMemAlloc", 13000, 2, "cuMemAlloc_v2")
    resolves("cuGraphExecUpdate", 10020, 0, "cuGraphExecUpdate")
    resolves("cuGraphExecUpdate", 12000, 0, "cuGraphExecUpdate_v2")
    resolves("cuCtxCreate", 3020, 0, "cuCtxCreate_v2")
    resolves("cuCtxCreate", 11040, 0, "cuCtxCreate_v3")
    resolves("cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture")
    resolves("cuStreamBeginCapture", 10010, 2, "cuStreamBeginCapture_v2_ptsz")
    for flags in (0, 1):
        resolves("cuLaunchKernel", 13000, flags, "cuLaunchKernel")
    resolves("cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz")
    resolves("cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds")
    equal(proc("cuLaunchKernel", 6000, 2), (0, None, 2))
    equal(proc("cuLaunchKernelEx", 11000, 0), (0, None, 2))
    equal(proc("cuInit", 14000, 0)[0], 1)
