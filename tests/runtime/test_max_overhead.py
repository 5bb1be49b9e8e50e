# SPDX-License-Identifier: Apache-2.0
"""--max-overhead: above the limit, calls are sampled, estimates are marked, and the process regains its speed."""
from containers import Cgroup, own
from harness import case, check, equal
from programs import Tool, Workload

# 2 us is the duration of a real launch. In the first loop the tool finds its sampling rate.
busy = ("loop {settling}; launch scale 500 fn=cuLaunchKernel delay_us=2; end\n"
        "loop {seconds}; launch vecadd 500 fn=cuLaunchKernel delay_us=2; end")
copies = "loop 5; copy 500 fn=cuMemcpyHtoDAsync_v2 bytes=4096 delay_us=2; end"
limit = ("--max-overhead", 5, "-i", 1)
attach_kinds = {"session": "session", "multi": "multi", "perf": "perf"}


def traced(script, *arguments, scope=lambda workload: ("-p", workload.pid), **options):
    workload = Workload(script, name="overhead")
    tool = Tool(*scope(workload), *limit, *arguments, losses=True, **options)
    truth = workload.go().truth()
    return tool.stop(), truth


def count(truth, bytes_each=1, **wanted):
    return sum(call["count"] * bytes_each for call in truth
               if call["layer"] == "driver" and all(call[key] == value for key, value in wanted.items()))


def check_estimate(tool, estimate, actual, few_windows=False):
    check("more than the 5% of --max-overhead" in tool.error, f"no warning: {tool.error}")
    sampled = [row for row in tool.rows if row.get("sampled_percent", 100) < 100]
    check(sampled, f"no row is marked as an estimate: {tool.rows}")
    check(few_windows or any("sampled_error_percent" in row for row in sampled), f"no error bound: {sampled}")
    check(abs(estimate - actual) <= 0.3 * actual, f"estimate {estimate}, actual {actual}: {sampled}")


@case(each=attach_kinds, timeout=300, alone=("perf",))
def busy_launches(attach):
    tool, truth = traced(busy.format(settling=3, seconds=4), "--attach", attach)
    # Perf events attach one by one, so there may be too few sampling windows for an error bound.
    check_estimate(tool, sum(row["launches"] for row in tool.rows), count(truth), few_windows=attach == "perf")


@case(tool="cudatop", timeout=300)
def cudatop():
    tool, truth = traced(busy.format(settling=3, seconds=4))
    check_estimate(tool, sum(row.get("launches", 0) for row in tool.rows if "pid" in row), count(truth))


@case(tool="cudatop", timeout=300)
def cudatop_suggests_the_option():
    workload = Workload(busy.format(settling=3, seconds=1))
    tool = Tool("-p", workload.pid, "-i", 1, losses=True)
    workload.go().wait()
    check("sample with --max-overhead 5" in tool.finish().error, f"no suggestion: {tool.error}")


@case(tool="cudamemcpy", timeout=300, alone=True)
def cudamemcpy():
    tool, truth = traced(copies, scope=lambda _: ("-n", "overhea"))
    check_estimate(tool, sum(row["bytes"] for row in tool.rows), count(truth, 4096, kind="copy"))


@case
def exact_below_the_limit():
    tool, truth = traced("repeat 40; launch vecadd 25 delay_us=100; sleep 20; end")
    check(not any("sampled_percent" in row for row in tool.rows), f"sampled below the limit: {tool.rows}")
    equal(sum(row["launches"] for row in tool.rows), count(truth), "launches")


@case(timeout=300)
def marked_in_text():
    group = Cgroup("v2", own + "overhead")
    def members(workload):
        group.add(workload.pid)
        return "-c", group.path
    text = traced(busy.format(settling=3, seconds=2), scope=members, json=False)[0].text
    check(any(word.startswith("~") for line in text.splitlines() if "vecadd" in line for word in line.split()),
          f"no estimate is marked: {text}")
