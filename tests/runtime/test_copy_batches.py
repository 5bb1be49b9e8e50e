# SPDX-License-Identifier: Apache-2.0
"""Each element of a batch counts as a copy, and the whole batch as one call. Elements that cannot be
read count as unknown."""
from copies import case, count, modes, same, trace
from harness import check, equal
from programs import Tool, Workload

batches = ("cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2", "cuMemcpyBatchAsync_ptsz", "cuMemcpyBatchAsync_v2_ptsz")
volumes = ("cuMemcpy3DBatchAsync", "cuMemcpy3DBatchAsync_v2", "cuMemcpy3DBatchAsync_ptsz")
prefetches = ("cuMemPrefetchBatchAsync", "cuMemPrefetchBatchAsync_ptsz")

memory = "alloc d 6000000; alloc e 1000000; alloc h 6000000 fn=host; alloc p 1000000 fn=cuMemHostAlloc\n"

structures = ("cuMemcpy2D_v2", "cuMemcpy2DAsync_v2", "cuMemcpy2DUnaligned_v2_ptds", "cuMemcpy3D_v2",
              "cuMemcpy3DAsync_v2_ptsz", "cuMemcpy3DPeer", "cuMemcpy3DPeerAsync")


@case(each=modes, asan=True)
def each_element_is_a_copy(mode):
    script = memory + "\n".join(
        f"copy {n + 1} fn={f} sizes=1,{65535 + n},65536,0,77 src=h dst=d; copy {n} fn={f} sizes=5,7 result=1 src=h dst=d"
        for n, f in enumerate(batches + prefetches, 3)) + "\n" + "\n".join(
        f"copy {n} fn={f} sizes=100,2000,30000 height=3 depth=2 src=h dst=d; copy 2 fn={f} sizes=9 result=700"
        for n, f in enumerate(volumes, 20))
    tool, truth = trace(script, "--by", "api,kind", *mode, form="workload-driver")
    same(tool, truth)


@case
def directions_of_a_batch():
    sides = {"h": "host", "p": "pinned", "d": "device", "e": "device"}
    steps = [f"copy {3 * i + 1} fn={f} src={a}+{i} dst={b}+{2 * i} sizes={10 + i},20,30 height=2"
             for i, (f, a, b) in enumerate((f, a, b) for f in batches[:2] + volumes[:2] for a in sides for b in sides)]
    tool, truth = trace(memory + "\n".join(steps), "--by", "api,kind,memory", form="workload-driver")
    same(tool, truth, ("function", "kind", "source", "destination"))


@case
def elements_of_several_directions():
    """A call with elements that cross from one allocation into the next."""
    script = ("alloc d 1048576 fn=cuMemMap; alloc a 512; alloc b 512; alloc c 512 fn=cuMemAllocManaged; alloc h 4096 fn=host\n"
              "copy 3 fn=cuMemcpyBatchAsync src=h dst=a sizes=512,512,512,512")
    # The stand-in places a and b next to each other, and nothing after them.
    tool, _ = trace(script, "--by", "kind", form="workload-driver")
    got = count(tool, ("kind",))
    equal(got, {("H2D", "copies"): 6, ("H2D", "calls"): 3, ("H2D", "bytes"): 3072, ("H2D", "small"): 6,
                ("unknown", "copies"): 6, ("unknown", "bytes"): 3072, ("unknown", "small"): 6}, f"{tool}")


@case(each=modes)
def batches_of_thousands(mode):
    """The first 4096 elements are read one by one; later ones count without size and direction."""
    def sizes(n):
        return ",".join(str(1000 + i % 7) for i in range(n))
    tool, truth = trace(memory + "\n".join(f"copy {n % 5 + 1} fn=cuMemcpyBatchAsync src=h dst=d sizes={sizes(n)}"
                                            for n in (4095, 4096, 4097, 5000)), "--by", "pid", *mode)
    same(tool, truth, ("pid",))
    if mode == ["-l"]:
        split, truth = trace(memory + f"copy 3 fn=cuMemcpyBatchAsync src=h dst=d sizes={sizes(5000)}", "--by", "kind",
                             *mode)
        rows = {row["kind"]: (row["copies"], row["calls"], row["unsized"]) for row in split.rows}
        equal(rows, {"H2D": (3 * 4096, 3, 0), "unknown": (3 * 904, 0, 3 * 904)}, "rows")


@case(each=modes)
def empty_batches(mode):
    """A batch without elements, or one that cannot be read, counts as a call, whether it succeeds or fails."""
    workload = Workload("copy 7 fn=cuMemcpyBatchAsync sizes=none; copy 5 fn=cuMemcpyBatchAsync sizes=none result=1\n"
                        "copy 3 fn=cuMemcpyBatchAsync sizes=1,2,3 params=unreadable",
                        "workload-driver")
    tool = Tool("-p", workload.pid, "--by", "pid", *mode, losses=True)
    workload.go()
    truth = workload.truth()
    same(tool.finish(), truth, ("pid",))


@case(each=modes)
def unreadable_arguments(mode):
    """A call with unreadable arguments counts as a copy of unknown size, and of unknown direction unless the function's
    name implies it; it is reported as a loss."""
    functions = structures + batches + volumes + prefetches
    script = "\n".join(f"copy {n} fn={f} params=unreadable; copy 2 fn={f} params=unreadable result=1"
                       for n, f in enumerate(functions, 3))
    tool, truth = trace(script, "--by", "api,kind,memory", *mode, form="workload-driver", losses=True)
    for call in truth:
        if "Peer" in call["function"]:
            call["direction"] = "p2p"
        elif "Prefetch" in call["function"]:
            call["direction"] = "prefetch"
    same(tool, truth)
    calls = sum(call["count"] for call in truth if call["kind"] in ("copy", "prefetch"))
    failed = sum(call["count"] for call in truth if call["result"])
    batch = sum(call["count"] for call in truth if "Batch" in call["function"] and not call["result"])
    # With -x, the lists of a batch are read when the call returns, and only if it failed.
    equal(tool.lost, {"arguments_unreadable": calls - (batch if "-x" in mode else 0)}, "losses")
    check(failed, "no call failed")
    # Memory kinds are unknown unless the function's name implies them.
    for row in tool.rows:
        if row["kind"] == "unknown":
            equal((row["source"], row["destination"]), ("unknown", "unknown"), f"memory of {row['function']}")


@case
def impossible_sizes():
    """A size that exceeds the address space is unknown."""
    huge = 1 << 40
    script = "\n".join(f"copy {n} fn={f} width={huge} height={huge} depth={huge}" if "3D" in f else
                       f"copy {n} fn={f} width={huge} height={huge}"
                       for n, f in enumerate(("cuMemcpy2D_v2", "cuMemcpy2DAsync_v2", "cuMemcpy3D_v2", "cuMemsetD2D32_v2",
                                              "cuMemsetD2D8Async", "cuMemcpy3DPeer"), 3))
    script += f"\ncopy 5 fn=cuMemcpyHtoD_v2 bytes={(1 << 64) - 1}; copy 7 fn=cuMemsetD8_v2 bytes={1 << 48}\n"
    script += f"copy 11 fn=cuMemcpyBatchAsync sizes=10,{1 << 63},20 src=h dst=d"
    tool, truth = trace(memory + script, "--by", "api", form="workload-driver")
    got = {row["function"]: (row["copies"], row["unsized"], row["bytes"]) for row in tool.rows}
    want = {call["function"]: (call["count"],) * 2 + (0,) for call in truth if call["kind"] in ("copy", "set")}
    want["cuMemcpyBatchAsync"] = (33, 11, 11 * 30)
    equal(got, want, f"{tool}")


@case
def widths_in_elements():
    """If a 3D copy of the runtime, or of a batch, reads or writes an array, its width counts elements of that array."""
    script = ("alloc a 65536 fn=array; alloc h 65536 fn=host; alloc d 65536\n"
              "copy 3 fn=cudaMemcpy3D src=h dst=a width=64 height=2 depth=2; copy 5 fn=cudaMemcpy3DAsync src=a dst=d width=64\n"
              "copy 7 fn=cudaMemcpy3D src=h dst=d width=64 height=2 depth=2; copy 11 fn=cudaMemcpy3DPeer src=d dst=a\n"
              "copy 13 fn=cuMemcpy3DBatchAsync src=h dst=a sizes=64,32; copy 2 fn=cuMemcpy3D_v2 src=a dst=h width=10\n"
              "copy 17 fn=cudaMemcpy2DToArray src=h dst=a width=100 height=3")
    workload = Workload(script)
    tools = {api: Tool("-p", workload.pid, "--by", "api,kind", "--api", api) for api in ("runtime", "driver")}
    workload.go()
    truth = workload.truth()
    for api, tool in tools.items():
        same(tool.finish(), truth, api=api)
    check(sum(row["unsized"] for row in tools["runtime"].rows) == 3 + 5 + 11, "unexpected number of copies without a size")


@case(alone=True)
def latency_of_a_batch():
    """A batch has one duration for all its elements."""
    tool, truth = trace(memory + "copy 101 fn=cuMemcpyBatchAsync src=h dst=d sizes=1,2,3,4,5 delay_us=300", "-H", "latency")
    record, = tool.of_type("hist")
    equal(record["total"], 101, "durations")
    check(min(bucket["high"] for bucket in record["buckets"]) >= 300, f"calls shorter than 300 us: {record}")
    tool, truth = trace(memory + "copy 101 fn=cuMemcpyBatchAsync src=h dst=d sizes=1,2,3,4,5 delay_us=300", "-l", timed=True)
    row, = tool.rows
    equal((row["copies"], row["calls"]), (505, 101), "copies and calls")
    check(101 * 300_000 <= row["latency_total_ns"] < 505 * 300_000, f"the total is not that of 101 calls of 300 us: {row}")
