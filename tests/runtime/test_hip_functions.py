# SPDX-License-Identifier: Apache-2.0
"""Each function of HIP that copies, sets, allocates or frees, called by its own arguments: what it counts as, exactly."""
from collections import Counter

import harness
from harness import case, check, equal
from hip import Calls, library, versions
from programs import Tool
from test_hip import (array, copies, device, device_to_device, device_to_host, host, host_to_device, start, stream, times,
                      words)

symbol, event = 0x8000, 0x9000


def exported(version):
    lines = [line.split() for line in (harness.root / "tests/standin/hip/exports.txt").read_text().splitlines()]
    return {line[0] for line in lines if line and line[0] != "#" and line[1] <= version and line[2] != "null"}


def both(function, arguments, kind, size, *behind):
    """The same one that returns before it is done: Async, with a stream behind the other arguments."""
    return [(function, arguments, kind, size), (f"{function}Async", (*arguments, *behind, stream), kind, size)]


# Those that test_hip.copies() has not: as they are called; direction, and bytes.
def other_copies(version):
    types = {"5": (0, 1)}.get(version, (1, 2))
    flat = words(0, 0, types[1], 0, device, 0, 0, 0, 0, types[0], host, 0, 0, 0, 30, 4)
    if version == "5":
        deep = words(0, 0, types[1], 0, device, 0, 0, 0, 0, types[0], host, 0, 0, 0, 7 << 32 | 40, 3)
    else:
        deep = words(*[0] * 4, types[1], 0, device, 0, *[0] * 6, types[0], host, 0, 0, 0, 0, 40, 7, 3)
    parameters = words(0, 0, 0, 0, device, 100, 100, 1, 0, 0, 0, 0, host, 100, 100, 1, 10, 5, 2, device_to_host)
    peers = words(0, 0, 0, 0, device, 100, 100, 1, 0, 0, 0, 0, 0, device, 100, 100, 1, 1, 10, 5, 3)
    operand = (1, device, 0, 0, 0)
    pitched = (0, 0, 0, 0, 0, 0, device, 512, 100, 10, 20, 5, 2)  # of hipMemset3D: registers, then its structures
    made = [
        *both("hipMemcpyDtoD", (device, device, 101), "D2D", 101),
        ("hipMemcpyDtoH", (host, device, 102), "D2H", 102),
        ("hipMemcpyHtoDAsync", (device, host, 103, stream), "H2D", 103),
        *both("hipMemcpyHtoA", (array, 0, host, 104), "H2D", 104),
        *both("hipMemcpyAtoH", (host, array, 0, 105), "D2H", 105),
        ("hipMemcpyAtoD", (device, array, 0, 106), "D2D", 106),
        ("hipMemcpyAtoA", (array, 0, array, 0, 107), "D2D", 107),
        ("hipMemcpyPeer", (device, 1, device, 0, 108), "P2P", 108),
        ("hipMemcpyToSymbol", (symbol, host, 109, 0, host_to_device), "H2D", 109),
        ("hipMemcpyToSymbolAsync", (symbol, host, 110, 0, host_to_device, stream), "H2D", 110),
        ("hipMemcpyFromSymbol", (host, symbol, 111, 0, device_to_host), "D2H", 111),
        ("hipMemcpyToArray", (array, 0, 0, host, 112, host_to_device), "H2D", 112),
        ("hipMemcpyFromArray", (host, array, 0, 0, 113, device_to_host), "D2H", 113),
        ("hipMemcpy2DAsync", (host, 512, device, 512, 10, 11, device_to_host, stream), "D2H", 110),
        *both("hipMemcpy2DToArray", (array, 0, 0, host, 512, 10, 12, host_to_device), "H2D", 120),
        *both("hipMemcpy2DFromArray", (host, 512, array, 0, 0, 10, 13, device_to_host), "D2H", 130),
        ("hipMemcpy2DArrayToArray", (array, 0, 0, array, 0, 0, 10, 14, device_to_device), "D2D", 140),
        ("hipMemcpyParam2DAsync", (flat, stream), "D2H", 120),
        ("hipDrvMemcpy2DUnaligned", (flat,), "D2H", 120),
        ("hipMemcpy3DAsync", (parameters, stream), "D2H", 100),
        ("hipDrvMemcpy3DAsync", (deep, stream), "D2H", 840),
        *both("hipMemcpy3DPeer", (peers,), "P2P", 150),
        ("hipMemcpy3DBatchAsync", (2, words(*(*operand, *operand, 8, 2, 2, 0) * 2), 0, 0, stream), "unknown", [32, 32]),
        ("hipMemsetAsync", (device, 0, 114, stream), "set", 114),
        *both("hipMemset2D", (device, 512, 0, 10, 15), "set", 150),
        ("hipMemset3DAsync", (0, stream, *pitched[2:]), "set", 200),
        *both("hipMemsetD8", (device, 0, 115), "set", 115),
        *both("hipMemsetD16", (device, 0, 116), "set", 232),
        ("hipMemsetD32", (device, 0, 117), "set", 468),
        *both("hipMemsetD2D8", (device, 512, 0, 10, 2), "set", 20),
        *both("hipMemsetD2D16", (device, 512, 0, 10, 3), "set", 60),
        *both("hipMemsetD2D32", (device, 512, 0, 10, 4), "set", 160),
        ("hipMemPrefetchAsync_v2", (device, 118, 0, 0, stream), "prefetch", 118),
    ]
    known = exported(version)
    by_name = {row[0]: row for row in made + copies(version)}
    made += [(f"{name}_spt", *row[1:]) for name, row in by_name.items() if f"{name}_spt" in known - by_name.keys()]
    # In 5 this one calls another that counts (docs/limits.md).
    return [row for row in made if row[0] in known and not (version == "5" and row[0].startswith("hipMemcpyToSymbolAsync"))]


@case(each=versions, tool="cudamemcpy", timeout=120)
def every_copy(version):
    """And no copy is left out of the lists."""
    calls = Calls(library(version))
    tool, sums = Tool("-p", calls.pid, "-e"), start("cudatop", "-p", calls.pid, 100)
    want, made = Counter(), other_copies(version)
    for number, (function, arguments, kind, size) in enumerate(made):
        calls.call(function, times(number % 7), *arguments)
        for each in size if isinstance(size, list) else [size]:
            want[function, kind, each] += times(number % 7)
    calls.end()
    equal(Counter((line["function"], line["kind"], line["bytes"]) for line in tool.finish().events), want, "copies")
    row, = [row for row in sums.finish().rows if row.get("pid") == calls.pid]
    sets = sum(count for (_, kind, _), count in want.items() if kind == "set")
    equal(row["copies"] + (row.get("sets") or 0), sum(want.values()), f"{row} with {sets} sets")
    of_copies = {name for name in exported(version) if name.startswith(("hipMemcpy", "hipMemset", "hipDrvMemcpy", "hipMemPrefetch"))}
    inside = {"hipMemcpyFromSymbolAsync", "hipMemcpyFromSymbolAsync_spt", "hipMemcpyToSymbolAsync", "hipMemcpyToSymbolAsync_spt",
              "hipMemPrefetchBatchAsync"}
    equal(of_copies - {row[0] for row in made + copies(version)} - inside, set(), "copies that nothing tries")


# As memory is allocated, and what frees it; its kind, and bytes. The last handle is called &p.
def allocations(version):
    descriptor, deep = words(10, 4, 2 << 32 | 0x20), words(10, 4, 3, 2 << 32 | 0x20, 0)  # two floats an element
    bits, extent = words(32 << 32 | 32, 0), (10, 4, 3)
    # Behind the six registers, a structure that is passed by value.
    return [
        ("hipMalloc", ("&p", 1000), "hipFree", ("p",), "device", 1000),
        ("hipExtMallocWithFlags", ("&p", 1001, 0), "hipFree", ("p",), "device", 1001),
        ("hipMallocPitch", ("&p", "&pitch", 100, 3), "hipFree", ("p",), "device", 512 * 3),
        ("hipMallocManaged", ("&p", 1002, 1), "hipFree", ("p",), "managed", 1002),
        ("hipMallocAsync", ("&p", 1003, stream), "hipFreeAsync", ("p", stream), "pool", 1003),
        ("hipMallocFromPoolAsync", ("&p", 1004, 0x77, stream), "hipFreeAsync", ("p", stream), "pool", 1004),
        ("hipHostMalloc", ("&p", 1005, 0), "hipHostFree", ("p",), "pinned", 1005),
        ("hipHostAlloc", ("&p", 1006, 0), "hipFreeHost", ("p",), "pinned", 1006),
        ("hipMallocHost", ("&p", 1007), "hipFreeHost", ("p",), "pinned", 1007),
        ("hipHostRegister", (host, 1008, 0), "hipHostUnregister", (host,), "registered", 1008),
        ("hipMallocArray", ("&p", bits, 10, 4, 0), "hipFreeArray", ("p",), "array", 320),
        ("hipMalloc3DArray", ("&p", bits, 0, 0, 0, 0, *extent), "hipFreeArray", ("p",), "array", 960),
        ("hipArrayCreate", ("&p", descriptor), "hipArrayDestroy", ("p",), "array", 320),
        ("hipArray3DCreate", ("&p", deep), "hipArrayDestroy", ("p",), "array", 960),
        ("hipMemCreate", ("&p", 1 << 21, words(0, 1 << 32 if version == "5.2" else 0, 1, 0), 0), "hipMemRelease", ("p",), "vmm",
         1 << 21),
        ("hipMemAddressReserve", ("&p", 1 << 22, 0, 0, 0), "hipMemAddressFree", ("p", 1 << 22), "reserved", 1 << 22),
        ("hipIpcOpenMemHandle", ("&p",), "hipIpcCloseMemHandle", ("p",), "imported", 0),
        ("hipImportExternalMemory", ("&p", words(0, 0, 0, 1009)), "hipDestroyExternalMemory", ("p",), "external", 1009),
    ]


@case(each=versions, tool="gpualloc", timeout=120)
def every_allocation(version):
    """What each allocates is held, and freed by what frees it, but for one more of each."""
    calls = Calls(library(version))
    tool = Tool("-p", calls.pid, "--by", "pid,kind", 100)
    want = {}
    for number, (allocate, how, free, freed, kind, size) in enumerate(allocations(version)):
        for _ in range(times(number % 3)):
            calls.call(allocate, 1, *how)
            calls.call(free, 1, *freed)
        calls.call(allocate, 1, *how)
        before = want.get(kind, (0, 0, 0))
        n = times(number % 3)
        want[kind] = before[0] + n + 1, before[1] + n, before[2] + size
    calls.end()
    rows = {row["kind"]: (row["allocs"], row["frees"], row["live_bytes"]) for row in tool.finish().rows}
    equal(rows, want, "by kind")
