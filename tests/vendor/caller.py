# SPDX-License-Identifier: Apache-2.0
"""Calls functions of a CUDA library, with arguments that differ between calls, so that a tracer's output can be
matched. No handle is real: without a device, or before cuInit(), the libraries refuse each call. Reads commands from
stdin:

    open LIBRARY             opens the library
    calls COUNT              calls the first launching function COUNT times, the next one COUNT + 1 times, ...
    copies COUNT             the same for functions that copy, set or prefetch
    raw COUNT NAME...        the same for these functions; arguments: a pointer to zeros, then 0
    words COUNT NAME W...    calls this function COUNT times with these numbers as arguments
    hang NAME [spin]         calls this function in a thread, which then sleeps or spins inside it forever (hang.cpp)
    init                     calls cuInit()
    addresses NAME...        calls cuGetProcAddress() for these names, with many CUDA versions and all flags

Answers each command with JSON lines, ending with one of type "done". All arguments are 64-bit words, also structures
passed by value. The ABI leaves the upper half of a word with a 32-bit argument undefined: dirty() fills it with
garbage, because a tracer must not read it."""
import ctypes
import json
import mmap
import pathlib
import sys
from collections import Counter, namedtuple

Arguments = namedtuple("Arguments", "handle grid block smem stream")
Copy = namedtuple("Copy", "functions kind arguments bytes_per_unit copies", defaults=(1, 1))

area = mmap.mmap(-1, 0x4000 * 1000)
zeros = ctypes.addressof(ctypes.c_char.from_buffer(area))
driver_versions = (2000, 3000, 3020, 4000, 5050, 6050, 7000, 8000, 9000, 10000, 10010, 10020, 11000, 11010, 11030,
                   11040, 11060, 11080, 12000, 12020, 12040, 12080, 13000, 13020)
kept = []  # structures, whose addresses are arguments


def dirty(*values):
    return [0xDEADBEEF << 32 | value for value in values]


def pairs(*values):
    """32-bit values as 64-bit words."""
    return [values[i] | (values + (0,))[i + 1] << 32 for i in range(0, len(values), 2)]


def memory(*words):
    """Address of an array of words."""
    kept.append((ctypes.c_uint64 * len(words))(*words))
    return ctypes.addressof(kept[-1])


def text_at(text):
    kept.append(ctypes.create_string_buffer(text.encode()))
    return ctypes.addressof(kept[-1])


def sparse(size, words):
    return memory(*(words.get(i, 0) for i in range(size)))


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def has(self, name):
        return hasattr(self.library, name)

    def call(self, name, *words):
        function = self.library[name]
        function.argtypes = [ctypes.c_uint64] * len(words)
        return function(*words)

    def repeated(self, count, name, *words):
        """The result of each of `count` calls, which must be the same."""
        results = {self.call(name, *words) for _ in range(count)}
        assert len(results) == 1, f"{name} does not always return the same result: {results}"
        return results.pop()


# --- launches --------------------------------------------------------------------------------------------------------

def handle(number):
    """Handle of an object that does not exist. It points to zeros, an unknown stream, because drivers since 580 read
    the stream object before they check for a missing cuInit()."""
    return zeros + 0x4000 * number


def shape(a):
    return pairs(*a.grid, *a.block)


def by_value(a):
    return [a.grid[0] | a.grid[1] << 32, *dirty(a.grid[2]), a.block[0] | a.block[1] << 32, *dirty(a.block[2])]


def launch(a):
    return [a.handle, *dirty(*a.grid, *a.block, a.smem), a.stream, 0, 0]


def launch_ex(a):  # CUlaunchConfig and cudaLaunchConfig_t: they differ only in the width of smem
    return [memory(*shape(a), a.smem, a.stream, 0, 0), a.handle, 0, 0]


def runtime_launch(a):
    return [a.handle, *by_value(a), 0, a.smem, a.stream]


def graph(a):
    return [a.handle, a.stream]


def host_function(a):
    return [a.stream, a.handle, 0, *dirty(0)]


# (function, kind, arguments, streams): streams in addition to one of its own. 0, 1 and 2 are the default stream,
# CU_STREAM_LEGACY and CU_STREAM_PER_THREAD.
launches = (
    ("cuLaunchKernel", "kernel", launch, (0, 1, 2)), ("cuLaunchCooperativeKernel", "kernel", launch, ()),
    ("cuLaunchKernelEx", "kernel", launch_ex, (0, 1, 2)), ("cuGraphLaunch", "graph", graph, ()),
    ("cuLaunchHostFunc", "host", host_function, ()), ("cuLaunchHostFunc_v2", "host", host_function, ()),
    ("cuStreamAddCallback", "host", host_function, ()),
    ("cudaLaunchKernel", "kernel", runtime_launch, (0, 1, 2)),
    ("__cudaLaunchKernel", "kernel", runtime_launch, ()),  # calls cudaLaunchKernel; still one launch
    ("cudaLaunchCooperativeKernel", "kernel", runtime_launch, ()), ("cudaLaunchKernelExC", "kernel", launch_ex, ()),
    ("cudaGraphLaunch", "graph", graph, ()), ("cudaLaunchHostFunc", "host", host_function, ()),
    ("cudaStreamAddCallback", "host", host_function, ()))

# Functions of CUDA before 4.0: (function, fields that are arguments, not defaults). Separate calls set the function's
# block shape and shared memory.
legacy_launches = ("cuLaunch", ()), ("cuLaunchGrid", ("grid",)), ("cuLaunchGridAsync", ("grid", "stream"))

# Functions that launch on several devices: (function, words of the structure for each device).
multi_launches = (("cuLaunchCooperativeKernelMultiDevice", lambda a: [a.handle, *shape(a), a.smem, a.stream, 0]),
                  ("cudaLaunchCooperativeKernelMultiDevice", lambda a: [a.handle, *shape(a), 0, a.smem, a.stream]))


class Launches:
    def __init__(self, library, count):
        self.library, self.count, self.number = library, count, 0

    def distinct(self):
        """Arguments that differ from those of all other calls."""
        self.number += 1
        n = self.number
        return Arguments(handle(2 * n), (1000 + n, 200 + n, 3 + n), (8 + n, 4, 2), 1024 + 16 * n, handle(2 * n + 1))

    def made(self, name, kind, words, *all_arguments):
        """Calls the function. Yields a line per kernel: a launch on several devices launches each once per call."""
        result = self.library.repeated(self.count, name, *words)
        for a in all_arguments:
            geometry = {"grid": a.grid, "block": a.block, "smem": a.smem} if kind == "kernel" else {}
            yield {"type": "call", "function": name, "kind": kind, "count": self.count, "result": result,
                   "handle": hex(a.handle), "stream": hex(a.stream)} | geometry
        self.count += 1

    def all(self):
        suffixed = ((name + suffix, *row) for suffix in ("", "_ptsz") for name, *row in launches)
        for name, kind, words, streams in suffixed:
            for stream in (None, *streams) if self.library.has(name) else ():
                a = self.distinct()
                a = a if stream is None else a._replace(stream=stream)
                yield from self.made(name, kind, words(a), a)
        for name, fields in legacy_launches:
            if self.library.has(name):
                a = self.distinct()
                grid = (*a.grid[:2], 1) if "grid" in fields else (1, 1, 1)
                a = a._replace(grid=grid, stream=a.stream if "stream" in fields else 0)
                self.library.call("cuFuncSetBlockShape", a.handle, *dirty(*a.block))
                self.library.call("cuFuncSetSharedSize", a.handle, *dirty(a.smem))
                yield from self.made(name, "kernel", [a.handle, *dirty(*a.grid[:2]), a.stream], a)
        for name, words in multi_launches:
            if self.library.has(name):
                some = [self.distinct() for _ in range(3)]
                structures = memory(*(word for a in some for word in words(a)))
                yield from self.made(name, "kernel", [structures, *dirty(len(some), 0)], *some)


# --- copies ----------------------------------------------------------------------------------------------------------

dst, src, stream = zeros + 0x10000, zeros + 0x40000, zeros + 0x80000
height, depth, elements = 3, 2, 3  # elements: number of copies in a batch
host, device = 1, 2                # CUmemorytype
unused = zeros                     # attributes, indices, and results that are not read


def linear(n):
    return dst, src, n, stream


def to_array(n):
    return dst, 0, src, n, stream


def from_array(n):
    return dst, src, 0, n, stream


def peer(n):
    return dst, 0, src, 0, n, stream


def plane(n):
    return sparse(40, {2: host, 3: src, 6: n, 9: device, 11: dst, 13: n, 14: n, 15: height}), stream


def volume(n):  # also for peer copies
    return sparse(40, {4: host, 5: src, 9: n, 10: height, 15: device, 17: dst, 20: n, 21: height, 22: n, 23: height,
                       24: depth}), stream


def runtime_volume(n):
    to_device = 1
    return sparse(40, {4: src, 5: n, 6: n, 7: height, 12: dst, 13: n, 14: n, 15: height, 16: n, 17: height, 18: depth,
                       19: to_device}), stream


def lists(n):
    """Addresses of a batch's destinations, sources and sizes."""
    return [memory(*(start + step * i for i in range(elements))) for start, step in ((dst, 4096), (src, 4096), (n, 1))]


def operations(n):
    """A batch of 3D copies; both operands are pointers."""
    return memory(*(word for i in range(elements) for word in
                    (1, src + 4096 * i, 0, 0, 0, 1, dst + 4096 * i, 0, 0, 0, n + i, height, depth, 0)))


def prefetched(n):
    to, _, sizes = lists(n)
    return to, sizes, elements, unused, unused, 1, 0, stream


def filled(n):
    return dst, *dirty(0), n, stream


def filled_plane(n):
    return dst, 4 * n, *dirty(0), n, height, stream


# Arguments for a size of n. bytes_per_unit: bytes copied per unit of n. copies: copies per call, of n, n + 1, ...
copies = (
    Copy("cuMemcpy cuMemcpyAsync", "H2H", linear),
    Copy("cuMemcpyHtoD_v2 cuMemcpyHtoDAsync_v2", "H2D", linear),
    Copy("cuMemcpyDtoH_v2 cuMemcpyDtoHAsync_v2", "D2H", linear),
    Copy("cuMemcpyDtoD_v2 cuMemcpyDtoDAsync_v2", "D2D", linear),
    Copy("cuMemcpyHtoA_v2 cuMemcpyHtoAAsync_v2", "H2D", to_array),
    Copy("cuMemcpyAtoH_v2 cuMemcpyAtoHAsync_v2", "D2H", from_array),
    Copy("cuMemcpyDtoA_v2", "D2D", to_array), Copy("cuMemcpyAtoD_v2", "D2D", from_array),
    Copy("cuMemcpyAtoA_v2", "D2D", peer),
    Copy("cuMemcpyPeer cuMemcpyPeerAsync cudaMemcpyPeer cudaMemcpyPeerAsync", "P2P", peer),
    Copy("cuMemcpy2D_v2 cuMemcpy2DUnaligned_v2 cuMemcpy2DAsync_v2", "H2D", plane, height),
    Copy("cuMemcpy3D_v2 cuMemcpy3DAsync_v2", "H2D", volume, height * depth),
    Copy("cuMemcpy3DPeer cuMemcpy3DPeerAsync", "P2P", volume, height * depth),
    Copy("cuMemcpyBatchAsync", "H2H", lambda n: (*lists(n), elements, unused, unused, 1, unused, stream), 1, elements),
    Copy("cuMemcpyBatchAsync_v2", "H2H", lambda n: (*lists(n), elements, unused, unused, 1, stream), 1, elements),
    Copy("cuMemcpy3DBatchAsync", "H2H", lambda n: (elements, operations(n), unused, 0, stream), height * depth,
         elements),
    Copy("cuMemcpy3DBatchAsync_v2", "H2H", lambda n: (elements, operations(n), 0, stream), height * depth, elements),
    Copy("cuMemcpyWithAttributesAsync", "H2H", lambda n: (dst, src, n, unused, stream)),
    Copy("cuMemcpy3DWithAttributesAsync", "H2H", lambda n: (operations(n), 0, stream), height * depth),
    Copy("cuMemsetD8_v2 cuMemsetD8Async cudaMemset cudaMemsetAsync", "set", filled),
    Copy("cuMemsetD16_v2 cuMemsetD16Async", "set", filled, 2),
    Copy("cuMemsetD32_v2 cuMemsetD32Async", "set", filled, 4),
    Copy("cuMemsetD2D8_v2 cuMemsetD2D8Async cudaMemset2D cudaMemset2DAsync", "set", filled_plane, height),
    Copy("cuMemsetD2D16_v2 cuMemsetD2D16Async", "set", filled_plane, 2 * height),
    Copy("cuMemsetD2D32_v2 cuMemsetD2D32Async", "set", filled_plane, 4 * height),
    Copy("cuMemPrefetchAsync", "prefetch", lambda n: (dst, n, *dirty(0), stream)),
    Copy("cuMemPrefetchAsync_v2", "prefetch", lambda n: (dst, n, 1, *dirty(0), stream)),
    Copy("cuMemPrefetchBatchAsync cuMemDiscardAndPrefetchBatchAsync", "prefetch", prefetched, 1, elements),
    Copy("cudaMemcpy cudaMemcpyAsync", "H2D", lambda n: (*linear(n)[:3], *dirty(1), stream)),
    Copy("cudaMemcpy2D cudaMemcpy2DAsync", "H2D", lambda n: (dst, n, src, n, n, height, *dirty(1), stream), height),
    Copy("cudaMemcpy3D cudaMemcpy3DAsync", "H2D", runtime_volume, height * depth),
)


def make_copies(library, count):
    size = 1009
    for row in copies:
        for name in (base + suffix for base in row.functions.split() for suffix in ("", "_ptds", "_ptsz")):
            if library.has(name):
                result = library.repeated(count, name, *row.arguments(size))
                total = sum(size + i for i in range(row.copies)) * row.bytes_per_unit
                yield {"type": "copy", "function": name, "kind": row.kind, "count": count, "copies": row.copies,
                       "bytes": total, "result": result}
                count, size = count + 1, size + 10


# --- other calls -----------------------------------------------------------------------------------------------------

def make_raw_calls(library, count, names):
    words = (ctypes.c_uint64 * 4096)()  # some functions read or write through the pointer first
    for count, name in enumerate(names, count):
        results = Counter()
        for _ in range(count):
            ctypes.memset(words, 0, ctypes.sizeof(words))
            results[library.call(name, ctypes.addressof(words), *[0] * 9)] += 1
        for result, times in results.items():
            yield {"type": "call", "function": name, "count": times, "result": result}


def make_calls_with(library, count, name, *words):
    for _ in range(int(count)):
        yield {"type": "call", "function": name, "result": library.call(name, *map(int, words))}


def addresses(library, names):
    """The number of addresses returned, and functions for which an address is not that of one of the functions."""
    known = {ctypes.cast(library.library[name], ctypes.c_void_p).value for name in names}
    # cuGetProcAddress (11.3) has no status parameter; the additional argument is harmless.
    lookup = "cuGetProcAddress_v2" if library.has("cuGetProcAddress_v2") else "cuGetProcAddress"
    found, status, given, foreign = ctypes.c_uint64(), ctypes.c_int(), 0, set()
    for name in names if library.has(lookup) else ():
        text = text_at(name)
        for version in driver_versions:
            for flags in 0, 1, 2:  # default, legacy, per-thread default stream
                found.value = 0
                if not library.call(lookup, text, ctypes.addressof(found), version, flags, ctypes.addressof(status)):
                    given += found.value != 0
                    foreign |= {name} if found.value and found.value not in known else set()
    return {"type": "addresses", "given": given, "foreign": sorted(foreign)}


def hang(library, name, how=""):
    native = ctypes.CDLL(str(pathlib.Path(sys.argv[1], "hang.so")))
    function = ctypes.cast(library.library[name], ctypes.c_void_p)
    assert native.hang_in(function, how == "spin") == 0, f"cannot hang in {name}"
    return []


# {command: function that makes the calls, and yields the lines that answer it}.
commands = {
    "calls": lambda library, count: Launches(library, int(count)).all(),
    "copies": lambda library, count: make_copies(library, int(count)),
    "raw": lambda library, count, *names: make_raw_calls(library, int(count), names),
    "words": make_calls_with,
    "init": lambda library: [{"type": "init", "result": library.call("cuInit", 0)}],
    "addresses": lambda library, *names: [addresses(library, names)],
    "hang": hang,
}

library = None
for line in iter(sys.stdin.readline, ""):
    command, *words = line.split()
    if command == "open":
        library = Library(line.removeprefix("open").strip())  # a path may contain spaces
    for answer in commands[command](library, *words) if command != "open" else ():
        print(json.dumps(answer))
    print('{"type": "done"}', flush=True)
