# SPDX-License-Identifier: Apache-2.0
"""Arguments that the runtime passes to the driver. The tests overwrite the slots of the driver's thunks with Python
functions."""
import ctypes as c

from driver import cuda, ready
from harness import build, check, equal

P, Z, I = c.c_void_p, c.c_size_t, c.c_int


class Caught:
    """Context manager that intercepts one driver export. `args` are those of the last call."""

    def __init__(self, name, words, reads=0):
        self.args, self.struct = None, None
        thunk = c.cast(getattr(cuda, name), P).value
        self.slot = P.from_address(thunk + 18 + c.c_int32.from_address(thunk + 14).value)
        self.reads = reads
        self.callback = c.CFUNCTYPE(I, *[c.c_uint64] * words)(self.catch)

    def catch(self, *args):
        self.args = args
        if self.reads:
            self.struct = c.string_at(args[0], self.reads)
        return 0

    def u64(self, *offsets):
        return [int.from_bytes(self.struct[o:o + 8], "little") for o in offsets]

    def u32(self, *offsets):
        return [int.from_bytes(self.struct[o:o + 4], "little") for o in offsets]

    def __enter__(self):
        self.before = self.slot.value
        self.slot.value = c.cast(self.callback, P).value
        return self

    def __exit__(self, *_):
        self.slot.value = self.before


class Described(Caught):
    """Like Caught, and also reads the structure that argument number `at` points to."""

    def __init__(self, name, words=2, at=1, size=40):
        super().__init__(name, words)
        self.at, self.size = at, size

    def catch(self, *args):
        self.struct = c.string_at(args[self.at], self.size)
        return super().catch(*args)


class Handle(c.Structure):
    _fields_ = [(f"word{i}", c.c_uint64) for i in range(8)]


class Extent(c.Structure):
    _fields_ = [("width", Z), ("height", Z), ("depth", Z)]


class Pitched(c.Structure):
    _fields_ = [("pointer", P), ("pitch", Z), ("x", Z), ("y", Z)]


class Location(c.Structure):
    _fields_ = [("type", I), ("id", I)]


class Side(c.Structure):
    _fields_ = [("array", P), ("position", Extent), ("pointer", Pitched)]


class Copy3D(c.Structure):
    _fields_ = [("source", Side), ("destination", Side), ("extent", Extent), ("kind", I)]


def runtimes():
    ready()
    for major in (12, 13):
        yield major, c.CDLL(str(build / f"libcudart.so.{major}"))


@check
def copies_2d_become_driver_structures():
    for _, runtime in runtimes():
        for kind, types in ((0, (1, 1)), (1, (1, 2)), (2, (2, 1)), (3, (2, 2)), (4, (4, 4))):
            with Caught("cuMemcpy2DAsync_v2_ptsz", 2, 128) as caught:
                equal(runtime.cudaMemcpy2DAsync_ptsz(P(0x1000), Z(512), P(0x2000), Z(256), Z(100), Z(50), I(kind),
                                                     P(0x77)), 0)
            equal(caught.args[1], 0x77)
            equal(tuple(caught.u32(16, 72)), types)
            equal(caught.u64(24 if types[0] == 1 else 32, 80 if types[1] == 1 else 88), [0x2000, 0x1000])
            equal(caught.u64(48, 104, 112, 120), [256, 512, 100, 50])
        with Caught("cuMemcpy2DUnaligned_v2", 1, 128) as caught:
            runtime.cudaMemcpy2DToArray(P(0xa000), Z(3), Z(4), P(0x2000), Z(256), Z(100), Z(50), I(1))
        equal((caught.u32(16, 72), caught.u64(24, 96, 56, 64, 112, 120)), ([1, 3], [0x2000, 0xa000, 3, 4, 100, 50]))


@check
def copies_3d_become_driver_structures():
    for _, runtime in runtimes():
        copy = Copy3D(Side(0xa000, Extent(7, 8, 9), Pitched()), Side(None, Extent(1, 2, 3), Pitched(0x3000, 64, 64, 5)),
                      Extent(60, 5, 2), 2)
        with Caught("cuMemcpy3D_v2", 1, 200) as caught:
            runtime.cudaMemcpy3D(c.byref(copy))
        equal((caught.u32(32, 120), caught.u64(0, 8, 16, 56, 128)), ([3, 1], [7, 8, 9, 0xa000, 0x3000]))
        equal(caught.u64(88, 96, 104, 160, 176, 184, 192), [1, 2, 3, 64, 60, 5, 2])


@check
def arguments_by_value_are_forwarded():
    for major, runtime in runtimes():
        with Caught("cuMemsetD2D8Async", 6) as caught:
            runtime.cudaMemset3DAsync(Pitched(0x3000, 64, 0, 0), I(0x1ff), Extent(60, 5, 2), P(0x77))
        equal((caught.args[0], caught.args[1], caught.args[2] & 0xff, *caught.args[3:]), (0x3000, 64, 0xff, 60, 10, 0x77))
        with Caught("cuMemPrefetchAsync_v2" if major == 13 else "cuMemPrefetchAsync", 5) as caught:
            if major == 13:
                runtime.cudaMemPrefetchAsync(P(0x3000), Z(64), Location(1, 3), 0, P(0x77))
                equal((caught.args[:3], caught.args[4]), ((0x3000, 64, 3 << 32 | 1), 0x77))
            else:
                runtime.cudaMemPrefetchAsync(P(0x3000), Z(64), I(3), P(0x77))
                equal((caught.args[:2], caught.args[2] & 0xffffffff, caught.args[3]), ((0x3000, 64), 3, 0x77))


@check
def batches_are_forwarded_unchanged():
    args = [P(0x1000), P(0x2000), P(0x3000), Z(5), P(0x4000), P(0x5000), Z(1)]
    for major, runtime in runtimes():
        words = tuple(a.value for a in args) + ((0x6000,) if major == 12 else ()) + (0x77,)
        with Caught("cuMemcpyBatchAsync" + ("_v2" if major == 13 else ""), len(words)) as caught:
            runtime.cudaMemcpyBatchAsync(*args, *([P(0x6000)] if major == 12 else []), P(0x77))
        equal(caught.args, words)


@check
def kinds_select_the_driver_function():
    for _, runtime in runtimes():
        for kind, name in enumerate(("cuMemcpy", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuMemcpy")):
            with Caught(name, 3) as caught:
                runtime.cudaMemcpyToSymbol(P(0x1000), P(0x2000), Z(16), Z(8), I(kind))
            equal(caught.args, (0x1008, 0x2000, 16))


@check
def arrays_become_driver_descriptors():
    for _, runtime in runtimes():
        formats = {(8, 0): 8, (16, 0): 9, (32, 0): 10, (8, 1): 1, (16, 1): 2, (32, 1): 3, (16, 2): 16, (32, 2): 32}
        for (bits, kind), number in formats.items():
            for channels in (1, 2, 4):
                format = (I * 5)(*[bits] * channels, *[0] * (4 - channels), kind)
                with Described("cuArray3DCreate_v2") as caught:
                    runtime.cudaMallocArray(P(0x1000), format, Z(7), Z(8), 0)
                equal((caught.u64(0, 8, 16), caught.u32(24, 28)), ([7, 8, 0], [number, channels]))
        with Described("cuArray3DCreate_v2") as caught:
            runtime.cudaMalloc3DArray(P(0x1000), format, Extent(7, 8, 9), 5)
        equal((caught.args[0], caught.u64(0, 8, 16), caught.u32(32)), (0x1000, [7, 8, 9], [5]))
        with Described("cuMipmappedArrayCreate", 3) as caught:
            runtime.cudaMallocMipmappedArray(P(0x1000), format, Extent(7, 8, 0), 4, 0)
        equal((caught.u64(0, 8, 16), caught.args[2] & 0xffffffff), ([7, 8, 0], 4))
        with Caught("cuMemAllocPitch_v2", 5) as caught:
            runtime.cudaMalloc3D(c.byref(Pitched()), Extent(100, 8, 9))
        equal(caught.args[2:4], (100, 72))


@check
def imported_memory_is_forwarded():
    """The runtime's structures of CUDA 12 are shorter than the driver's."""
    for _, runtime in runtimes():
        memory = (c.c_uint64 * 5)(1, 0x77, 0x78, 12345, 1)
        with Described("cuImportExternalMemory", size=104) as caught:
            runtime.cudaImportExternalMemory(P(0x1000), memory)
        equal((caught.u64(0, 8, 16, 24, 32), set(caught.struct[40:])), ([1, 0x77, 0x78, 12345, 1], {0}))
        part = (c.c_uint64 * 3)(100, 200, 0)
        with Described("cuExternalMemoryGetMappedBuffer", 3, at=2, size=88) as caught:
            runtime.cudaExternalMemoryGetMappedBuffer(P(0x1000), P(0x2000), part)
        equal((caught.args[:2], caught.u64(0, 8), set(caught.struct[16:])), ((0x1000, 0x2000), [100, 200], {0}))

        handle = Handle(*range(8))
        with Caught("cuIpcOpenMemHandle_v2", 14) as caught:  # six registers, then the handle on the stack
            runtime.cudaIpcOpenMemHandle(P(0x1000), handle, 1)
        equal((caught.args[0], caught.args[1] & 0xffffffff, caught.args[6:]), (0x1000, 1, tuple(range(8))))
