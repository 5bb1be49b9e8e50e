# SPDX-License-Identifier: Apache-2.0
"""Physical memory exists while it has references or is mapped."""
import ctypes as c
import random

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
    equal(counts()[FREE] - counted[FREE], 1)  # releases that free nothing are not counted
    equal(held(VMM), (before[0] + SIZE, before[1] + 1))

    other = create()
    equal(other, handle)  # the value is reused
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
def unmap_takes_whole_adjacent_mappings():
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
def memory_counts_for_its_device():
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
def freed_addresses_are_reused():
    ready()
    a, b = (out("cuMemAlloc_v2", Z(10_000)) for _ in range(2))
    call("cuMemFree_v2", P(a))
    call("cuMemFree_v2", P(b))
    equal([out("cuMemAlloc_v2", Z(size)) for size in (9_800, 10_100)], [b, a])
    array = out("cuArrayCreate_v2", (c.c_uint64 * 3)(100, 10, 1 << 32 | 1))
    call("cuArrayDestroy", P(array))
    call("cuArrayDestroy", P(array), want=400)
    pool = out("cuMemPoolCreate", (c.c_uint64 * 11)())
    equal(pool, array)  # objects of different types share addresses
    call("cuMipmappedArrayDestroy", P(pool), want=400)
    call("cuMemPoolDestroy", P(pool))
    for address in (a, b):
        call("cuMemFree_v2", P(address))


class Model:
    """Independent model of physical memory: references by handle, and mapped pages."""

    def __init__(self, pages=32):
        self.random, self.pages = random.Random(5), pages
        self.place = out("cuMemAddressReserve", Z(pages * SIZE), Z(0), None, 0)
        self.handles, self.mapped = {}, {}  # value: [memory, references]; page: memory
        self.made = 0

    def alive(self):
        return {memory for memory, _ in self.handles.values()} | set(self.mapped.values())

    def create(self):
        value = create()
        assert value not in self.handles
        self.made += 1
        self.handles[value] = [self.made, 1]

    def release(self):
        value = self.random.choice(list(self.handles) or [1])
        call("cuMemRelease", P(value), want=0 if value in self.handles else 1)
        if value in self.handles:
            self.handles[value][1] -= 1
            if not self.handles[value][1]:
                del self.handles[value]

    def map(self):
        page, value = self.random.randrange(self.pages), self.random.choice(list(self.handles) or [1])
        fits = value in self.handles and page not in self.mapped
        call("cuMemMap", P(self.place + page * SIZE), Z(SIZE), Z(0), P(value), 0, want=0 if fits else 1)
        if fits:
            self.mapped[page] = self.handles[value][0]

    def retain(self):
        page, value = self.random.randrange(self.pages), P()
        call("cuMemRetainAllocationHandle", c.byref(value), P(self.place + page * SIZE + 77),
             want=0 if page in self.mapped else 1)
        if page in self.mapped:
            known = [v for v, (memory, _) in self.handles.items() if memory == self.mapped[page]]
            equal(value.value in known, bool(known))
            self.handles.setdefault(value.value, [self.mapped[page], 0])[1] += 1

    def unmap(self):
        pages = range(page := self.random.randrange(self.pages), page + self.random.choice((1, 1, 1, 2, 3)))
        there = all(p in self.mapped for p in pages)
        call("cuMemUnmap", P(self.place + page * SIZE), Z(len(pages) * SIZE), want=0 if there else 1)
        for p in pages if there else ():
            del self.mapped[p]


@check
def random_calls_agree_with_a_model():
    ready()
    before, mapped = held(VMM), held(MAPPED)
    model = Model()
    for _ in range(4000):
        alive = model.alive()
        step = model.random.choice((model.create, model.release, model.release, model.map, model.map, model.retain,
                                    model.unmap))
        step()
        equal((held(VMM)[1] - before[1], held(MAPPED)[1] - mapped[1]), (len(model.alive()), len(model.mapped)))
        if step in (model.release, model.unmap):
            equal(cuda.standin_freed(None, 0), len(alive - model.alive()))
    while model.handles:
        model.release()
    for page in list(model.mapped):
        call("cuMemUnmap", P(model.place + page * SIZE), Z(SIZE))
    equal((held(VMM), held(MAPPED)), (before, mapped))
    call("cuMemAddressFree", P(model.place), Z(model.pages * SIZE))


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
    assert "no memory named M" in run("workload", f"reserve R {SIZE}; alloc H {SIZE} fn=cuMemCreate\n"
                                                    "map M handle=H at=R; unmap at=R; copy 1 dst=M", code=2)
