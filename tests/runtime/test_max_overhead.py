# SPDX-License-Identifier: Apache-2.0
"""--max-overhead: beyond the ceiling calls are sampled, what is told of them says so, and the process is fast again."""
from containers import Cgroup, own
from harness import case, check, equal
from programs import Tool, Workload

# As long as a real launch takes; what of it is measured comes when the tool has found its way.
busy = ("loop {settling}; launch scale 500 fn=cuLaunchKernel delay_us=2; end\n"
        "loop {seconds}; launch vecadd 500 fn=cuLaunchKernel delay_us=2; end")
copies = "loop 5; copy 500 fn=cuMemcpyHtoDAsync_v2 bytes=4096 delay_us=2; end"
ceiling = ("--max-overhead", 5, "-i", 1)
attach_kinds = {"session": "session", "multi": "multi", "perf": "perf"}


def traced(script, *arguments, whose=lambda workload: ("-p", workload.pid), **options):
    workload = Workload(script, name="overhead")
    tool = Tool(*whose(workload), *ceiling, *arguments, losses=True, **options)
    truth = workload.go().truth()
    return tool.stop(), truth


def count(truth, bytes_each=1, **wanted):
    return sum(call["count"] * bytes_each for call in truth
               if call["layer"] == "driver" and all(call[key] == value for key, value in wanted.items()))


def said_and_near(tool, told, made, few_windows=False):
    check("more than the 5% of --max-overhead" in tool.error, f"it says so: {tool.error}")
    sampled = [row for row in tool.rows if row.get("sampled_percent", 100) < 100]
    check(sampled, f"rows say that they are estimates: {tool.rows}")
    check(few_windows or any("sampled_error_percent" in row for row in sampled), f"and how good: {sampled}")
    check(abs(told - made) <= 0.3 * made, f"{told} told of {made}: {sampled}")


@case(each=attach_kinds, timeout=300, alone=("perf",))
def a_thread_that_does_nothing_but_launch(attach):
    tool, truth = traced(busy.format(settling=3, seconds=4), "--attach", attach)
    # Perf events go one by one, so that there may be too few windows to tell the error from.
    said_and_near(tool, sum(row["launches"] for row in tool.rows), count(truth), few_windows=attach == "perf")


@case(tool="cudatop", timeout=300)
def cudatop():
    tool, truth = traced(busy.format(settling=3, seconds=4))
    said_and_near(tool, sum(row.get("launches", 0) for row in tool.rows if "pid" in row), count(truth))


@case(tool="cudatop", timeout=300)
def cudatop_says_when_it_is_not_asked_for():
    workload = Workload(busy.format(settling=3, seconds=1))
    tool = Tool("-p", workload.pid, "-i", 1, losses=True)
    workload.go().wait()
    check("sample with --max-overhead 5" in tool.finish().error, f"it says what would help: {tool.error}")


@case(tool="cudamemcpy", timeout=300, alone=True)
def cudamemcpy():
    tool, truth = traced(copies, whose=lambda _: ("-n", "overhea"))
    said_and_near(tool, sum(row["bytes"] for row in tool.rows), count(truth, 4096, kind="copy"))


@case
def below_the_ceiling_all_is_exact():
    tool, truth = traced("repeat 40; launch vecadd 25 delay_us=100; sleep 20; end")
    check(not any("sampled_percent" in row for row in tool.rows), f"nothing is sampled: {tool.rows}")
    equal(sum(row["launches"] for row in tool.rows), count(truth), "launches")


@case(timeout=300)
def marked_in_text():
    group = Cgroup("v2", own + "overhead")
    def members(workload):
        group.add(workload.pid)
        return "-c", group.path
    text = traced(busy.format(settling=3, seconds=2), whose=members, json=False)[0].text
    check(any(word.startswith("~") for line in text.splitlines() if "vecadd" in line for word in line.split()),
          f"estimates are marked: {text}")


@case(each={"lines": ["-e"], "latency": ["-l"], "failed": ["-x"], "runtime": ["--api", "both"], "gap": ["-H", "gap"]})
def what_cannot_be_sampled(options):
    tool = Tool("--max-overhead", 5, *options, attaches=False, banner=False).finish(2)
    check("--max-overhead" in tool.error, f"says why: {tool.error}")
