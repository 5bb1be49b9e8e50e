# SPDX-License-Identifier: Apache-2.0
"""-H: counts per bucket are exact, and durations match the delays in the script."""
import math
from collections import Counter

from harness import case, check, equal
from programs import Tool, Workload, trace
from truth import bucket, product, weight

shapes = """
launch vecadd 1009; launch vecadd 503 grid=15 block=16; launch saxpy 251 grid=16,3 block=17
launch saxpy 127 grid=1000,1000 block=1024 fn=cuLaunchKernelEx; launch reduce 61 grid=2147483647,65535,65535 block=32,32
launch reduce 31 grid=100,7,3 block=8,8,2 fn=cudaLaunchKernelExC; launch apply 17 grid=129 block=129 result=719
launch scale 13 fn=cuLaunchCooperativeKernelMultiDevice devices=3 grid=63 block=100
build vecadd 3; graph 5; hostfunc 7; launch scale 3 fn=cuLaunchGrid grid=31,2 block=5
threads 2; launch vecadd 11 grid=33; end
"""


def buckets(record):
    return {(b["low"], b["high"]): b["count"] for b in record["buckets"]}


def wanted(truth, field):
    out = Counter()
    for call in truth:
        if call["kind"] == "kernel" and call["layer"] == "driver":
            # Every product in the script fits in 64 bits.
            out[bucket(product(call[field]))] += weight(call)
    return dict(out)


def percentile(counts, share):
    """Middle of the bucket that contains this percentile."""
    rest = math.ceil(share * sum(counts.values()))
    for (low, high), count in sorted(counts.items()):
        rest -= count
        if rest <= 0:
            return low + (high - low) // 2


@case(each={"grid": "grid", "block": "block"}, asan=True)
def sizes(field):
    tool, truth = trace(shapes, "-H", field)
    record, = tool.of_type("hist")
    counts = wanted(truth, field)
    equal(buckets(record), counts, f"{tool}")
    equal((record["measure"], record["unit"]), (field, {"grid": "blocks", "block": "threads"}[field]), "measure and unit")
    equal(record["total"], sum(counts.values()), "total")
    equal([record[f"p{p}"] for p in (50, 95, 99)], [percentile(counts, p / 100) for p in (50, 95, 99)], "percentiles")


@case
def per_process_and_per_thread():
    workloads = [Workload(f"launch vecadd {n} grid={n}; threads 3; launch saxpy {n + 1} grid=7; end") for n in (101, 53)]
    pids = ",".join(str(workload.pid) for workload in workloads)
    processes, threads = Tool("-p", pids, "-H", "grid", "-P"), Tool("-p", pids, "-H", "grid", "-L")
    for workload in workloads:
        workload.go()
    truth = [call for workload in workloads for call in workload.truth()]
    for tool, keys in (processes, ("pid",)), (threads, ("pid", "tid")):
        got = {tuple(record[key] for key in keys): buckets(record) for record in tool.finish().of_type("hist")}
        groups = {tuple(call[key] for key in keys) for call in truth}
        want = {group: wanted([c for c in truth if tuple(c[key] for key in keys) == group], "grid") for group in groups}
        equal(got, want, f"{tool}")
        equal({record["comm"] for record in tool.of_type("hist")}, {"workload"}, "names")


@case
def by_kernel():
    tool, truth = trace("launch vecadd 101 grid=7; launch saxpy 53 grid=9; sleep 100; launch vecadd 1", "-H", "grid",
                        "--by", "kernel")
    got = {record["kernel"]: buckets(record) for record in tool.of_type("hist")}
    names = {call["demangled"] for call in truth}
    equal(got, {name: wanted([c for c in truth if c["demangled"] == name], "grid") for name in names}, f"{tool}")


@case(each={"nanoseconds": ("-N", 1, "nsecs"), "microseconds": ("", 1000, "usecs"),
            "milliseconds": ("-m", 1_000_000, "msecs")})
def latency(unit):
    """Durations of calls that the driver delays by this time."""
    option, ns, text = unit
    delay_us = 3000 if option == "-m" else 300
    tool, truth = trace(f"launch vecadd 201 delay_us={delay_us}", "-H", "latency", *([option] if option else []),
                        timed=True)
    record, = tool.of_type("hist")
    equal((record["unit"], record["total"]), (text, 201), "unit and total")
    delay = delay_us * 1000 / ns
    check(delay <= record["p50"] <= 1.3 * delay, f"p50 is {record['p50']} {text}, the delay {delay}")
    check(min(high for _, high in buckets(record)) >= delay, f"a call took less than its delay: {record}")


@case(alone=True)
def latency_of_a_table():
    tool, truth = trace("launch vecadd 201 delay_us=300; launch saxpy 1000", "-l", timed=True)
    rows = {row["kernel"].split("(")[0]: row for row in tool.rows}
    slow, fast = rows["vecadd"], rows["saxpy"]
    check(300_000 <= slow["latency_p50_ns"] <= 390_000, f"p50 of 300 us: {slow}")
    check(slow["latency_total_ns"] >= 201 * 300_000 and slow["latency_max_ns"] >= 300_000, f"unexpected total and maximum: {slow}")
    check(fast["latency_p50_ns"] < 100_000, f"p50 of calls without delay is too high: {fast}")


@case
def gaps():
    """Time between launches of a thread: one gap fewer than launches, each at least as long as the thread slept."""
    tool, truth = trace("threads 2; launch vecadd 151 gap_us=1000; end", "-H", "gap", timed=True)
    record, = tool.of_type("hist")
    equal((record["unit"], record["total"]), ("usecs", 300), "unit and total")
    bucket = next(high for low, high in buckets(record) if low <= record["p50"] <= high)  # p50 is its middle: 991 for 960-1023
    check(bucket >= 1000 and record["p50"] <= 1300, f"p50 is {record['p50']} us, the threads slept 1000")
    check(min(high for _, high in buckets(record)) >= 1000, f"a gap is shorter than the sleep: {record}")


@case
def as_text():
    """The histogram has one line for each power of two, and the counts of all lines add up."""
    tool, truth = trace(shapes, "-H", "block", json=False)
    lines = [line for line in tool.text.splitlines() if "->" in line]
    equal(sum(int(line.split(":")[1].split("|")[0]) for line in lines), sum(wanted(truth, "block").values()), "sum")
    out = Counter()
    for line in lines:
        low, high = int(line.split("->")[0]), int(line.split("->")[1].split(":")[0])
        out[low, high] = int(line.split(":")[1].split("|")[0])
    want = Counter()
    for (low, _), count in wanted(truth, "block").items():
        power = 1 << low.bit_length() - 1
        want[power if power > 1 else 0, 2 * power - 1] += count
    equal({key: n for key, n in out.items() if n}, dict(want), "lines")
