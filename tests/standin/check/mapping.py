# SPDX-License-Identifier: Apache-2.0
"""Physical memory is there as long as it has references or is mapped."""
import ctypes as c

from driver import P, call, counts, cuda, out, ready, ALLOC, FREE
from harness import check, equal
from scripts import run

Z, MIB = c.c_size_t, 1 << 20
SIZE = 2 * MIB


class Properties(c.Structure):
    _fields_ = [("type", c.c_uint), ("handles", c.c_uint), ("location", c.c_int), ("device", c.c_int), ("security", P),
                ("flags", c.c_uint64)]


class Tally(c.Structure):
    _fields_ = [("bytes", c.c_uint64), ("count", c.c_uint64)]


def create(size=SIZE, device=0, want=0):
    if want:
        return call("cuMemCreate", c.byref(P()), Z(size), c.byref(Properties(1, 0, 1, device)), 0, want=want)
    return out("cuMemCreate", Z(size), c.byref(Properties(1, 0, 1, device)), 0)


def held(holding):
    tallies, released = (Tally * 13)(), (Tally * 13)()
    cuda.standin_holdings(tallies, released)
    return tallies[holding].bytes, tallies[holding].count


VMM, MAPPED = 3, 9


@check
def references_and_mappings_keep_memory():
    ready()
    before = held(VMM)
    handle, place = create(), out("cuMemAddressReserve", Z(4 * SIZE), Z(0), None, 0)
    call("cuMemMap", P(place), Z(SIZE), Z(0), P(handle), 0)
    call("cuMemMap", P(place + SIZE), Z(SIZE), Z(0), P(handle), 0)
    call("cuMemMap", P(place + SIZE), Z(SIZE), Z(0), P(handle), 0, want=1)
    call("cuMemMap", P(place + 4 * SIZE), Z(SIZE), Z(0), P(handle), 0, want=1)
    call("cuMemMap", P(place + 2 * SIZE), Z(2 * SIZE), Z(0), P(handle), 0, want=1)
    equal(out("cuMemRetainAllocationHandle", P(place + 5)), handle)
    counted = counts()
    call("cuMemRelease", P(handle))
    call("cuMemRelease", P(handle))
    call("cuMemRelease", P(handle), want=1)
    equal(counts()[FREE] - counted[FREE], 1)  # those that free nothing are none
    equal(held(VMM), (before[0] + SIZE, before[1] + 1))

    other = create()
    equal(other, handle)  # the value is used again
    again = out("cuMemRetainAllocationHandle", P(place + SIZE))
    assert again != handle
    call("cuMemRelease", P(again))
    call("cuMemUnmap", P(place), Z(SIZE))
    equal(held(VMM), (before[0] + 2 * SIZE, before[1] + 2))
    call("cuMemUnmap", P(place + SIZE), Z(SIZE))
    equal(held(VMM), (before[0] + SIZE, before[1] + 1))
    equal(cuda.standin_freed(None, 0), 1)
    call("cuMemRelease", P(other))
    equal(held(VMM), before)
    call("cuMemAddressFree", P(place), Z(SIZE), want=1)
    call("cuMemAddressFree", P(place), Z(4 * SIZE))


@check
def one_unmapping_takes_neighbours_but_cuts_none():
    ready()
    before, mapped = held(VMM), held(MAPPED)
    place = out("cuMemAddressReserve", Z(8 * SIZE), Z(0), None, 0)
    for i in (0, 1, 2, 4):
        handle = create()
        call("cuMemMap", P(place + i * SIZE), Z(SIZE), Z(0), P(handle), 0)
        call("cuMemRelease", P(handle))
    access = (c.c_int * 3)(1, 0, 3)
    call("cuMemSetAccess", P(place), Z(3 * SIZE), access, Z(1))
    call("cuMemSetAccess", P(place), Z(4 * SIZE), access, Z(1), want=1)
    for start, size in ((0, SIZE // 2), (SIZE // 2, SIZE), (0, SIZE + 1), (3 * SIZE, SIZE), (2 * SIZE, 3 * SIZE),
                        (0, 0)):
        call("cuMemUnmap", P(place + start), Z(size), want=1)
    call("cuMemAddressFree", P(place), Z(8 * SIZE), want=1)
    equal(held(MAPPED), (mapped[0] + 4 * SIZE, mapped[1] + 4))
    call("cuMemUnmap", P(place), Z(3 * SIZE))
    equal(cuda.standin_freed(None, 0), 3)
    equal(held(VMM), (before[0] + SIZE, before[1] + 1))
    call("cuMemUnmap", P(place + 4 * SIZE), Z(SIZE))
    call("cuMemAddressFree", P(place), Z(8 * SIZE))
    equal((held(VMM), held(MAPPED)), (before, mapped))


@check
def memory_is_the_devices_that_it_is_made_on():
    ready()
    before = held(VMM)
    create(17 << 30, want=2)
    big = [create(15 << 30, device) for device in (0, 1)]
    create(2 << 30, want=2)
    call("cuMemAlloc_v2", c.byref(P()), Z(2 << 30), want=2)
    for handle in big:
        call("cuMemRelease", P(handle))
    equal(held(VMM), before)
    counted = counts()
    create(0, want=1)
    equal(counts()[ALLOC] - counted[ALLOC], 1)


@check
def freed_addresses_come_back_at_once():
    ready()
    a, b = (out("cuMemAlloc_v2", Z(10_000)) for _ in range(2))
    call("cuMemFree_v2", P(a))
    call("cuMemFree_v2", P(b))
    equal([out("cuMemAlloc_v2", Z(size)) for size in (9_800, 10_100)], [b, a])
    array = out("cuArrayCreate_v2", (c.c_uint64 * 3)(100, 10, 1 << 32 | 1))
    call("cuArrayDestroy", P(array))
    call("cuArrayDestroy", P(array), want=400)
    pool = out("cuMemPoolCreate", (c.c_uint64 * 11)())
    equal(pool, array)  # objects of different types meet at one address
    call("cuMipmappedArrayDestroy", P(pool), want=400)
    call("cuMemPoolDestroy", P(pool))
    for address in (a, b):
        call("cuMemFree_v2", P(address))


EXPANDABLE = f"""
reserve R {16 * MIB}
alloc A {SIZE} fn=cuMemCreate; map a handle=A at=R; alloc B {SIZE} fn=cuMemCreate; map b handle=B at=R+{SIZE}
alloc C {SIZE} fn=cuMemCreate; free C result=1; map c handle=C at=R+{2 * SIZE}; map d handle=C at=R result=1
unmap at=R+{SIZE} bytes={2 * SIZE}; free B; free C; alloc B {SIZE} fn=cuMemCreate; map b handle=B at=R+{SIZE}
unmap a; unmap b; free A; free B; unreserve R
"""
AT_ONCE = f"""
reserve R {16 * MIB}
repeat 3; alloc H {SIZE} fn=cuMemCreate; map M handle=H at=R; free H; retain H at=M+100; retain G at=M; free G; unmap M
free H; end
alloc H {SIZE} fn=cuMemCreate; map x handle=H at=R; free H; alloc H {4 * MIB} fn=cuMemCreate; map y handle=H at=R+{SIZE}
free H; unmap at=R bytes={6 * MIB}; unreserve R
"""


@check
def scripts_map_as_allocators_do():
    for form in ("workload-driver", "workload"):
        truth = run(form, EXPANDABLE)
        equal((truth.memory, list(truth.peaks.values())), ({}, [3 * SIZE]), form)
        equal(truth.count(kind="free", holding="vmm", result=0), 4)
        equal(truth.count(kind="free", holding="mapped"), 3)
        equal(truth.one(function="cuMemUnmap", bytes=2 * SIZE)["holding"], "mapped")
        equal(truth.find(implied=True), [])

        truth = run(form, AT_ONCE)
        equal((truth.memory, list(truth.peaks.values())), ({}, [3 * SIZE]), form)
        equal({(r["function"], r["bytes"], r["implied"]): r["count"] for r in truth.find(kind="free", holding="vmm")},
              {("cuMemRelease", SIZE, False): 3, ("cuMemUnmap", SIZE, True): 1, ("cuMemUnmap", 2 * SIZE, True): 1})
        equal(truth.count(function="cuMemRelease", kind="setup", holding="vmm"), 3 + 3 + 2)
        equal(truth.one(function="cuMemRetainAllocationHandle")["count"], 6)
        truth = run(form, f"alloc H {SIZE} fn=cuMulticastCreate; reserve R {SIZE}; map M handle=H at=R; free H\n"
                          "unmap M")
        equal(truth.one(kind="free", implied=True)["holding"], "multicast")
        truth = run(form, f"alloc v {SIZE} fn=cuMemMap; reserve R {SIZE}; reset; free v; unreserve R; newcontext\n"
                          f"alloc H {SIZE} fn=cuMemCreate; destroycontext; free H")
        equal((truth.memory, truth.released), ({}, {}))
    assert "nothing is called M" in run("workload", f"reserve R {SIZE}; alloc H {SIZE} fn=cuMemCreate\n"
                                                    "map M handle=H at=R; unmap at=R; copy 1 dst=M", code=2)
