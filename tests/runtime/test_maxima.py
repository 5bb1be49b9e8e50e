# SPDX-License-Identifier: Apache-2.0
"""Maximum latency of an interval: that of its own calls, even if an earlier call in the same bucket took longer."""
import harness
from harness import case, check, wait_until
from programs import Tool, Workload

longer, shorter = 65_500, 63_200  # us: both in the bucket from 62.9 to 67.1 ms

# Script, options, and the keys of a row for the number of calls, the longest call and the sum.
tools = {"cudalaunch": ("launch vecadd {n} block_us={us}", ["-l"], "launches", "latency_max_ns", "latency_total_ns"),
         "cudamemcpy": ("copy {n} fn=cuMemcpyHtoD_v2 block_us={us}", ["-l"], "copies", "latency_max_ns", "latency_total_ns"),
         "cudasync": ("sync {n} fn=cuStreamSynchronize block_us={us}", [], "calls", "duration_max_ns", "total_ns")}


def maximum_of_an_interval(name):
    call, options, count, longest, total = tools[name]
    workload = Workload(f"wait {{dir}}/first; {call.format(n=1, us=longer)}; touch {{dir}}/one\n"
                        f"wait {{dir}}/second; {call.format(n=2, us=shorter)}; touch {{dir}}/two; wait {{dir}}/over", "workload-driver")
    tool = Tool("-p", workload.pid, *options, "-i", "1")
    workload.go()
    rows = lambda: [row for row in tool.rows if row.get(longest, 0) >= 50e6]  # leaves out other calls of the workload
    before = 0
    for begin, end, calls in (("first", "one", 1), ("second", "two", 3)):
        before = len(rows())
        (harness.here / begin).touch()  # make the calls right after a report, so that the next report comes after them
        wait_until((harness.here / end).exists, f"{calls} calls")
        wait_until(lambda: sum(row[count] for row in rows()) == calls, f"reports of {calls} calls")
    (harness.here / "over").touch()
    workload.wait()
    tool.finish()
    check(max(row[longest] for row in rows()[:before]) >= longer * 1000, f"wrong maximum of the first interval: {rows()}")
    for row in rows()[before:]:
        others = (row[count] - 1) * shorter * 1000
        check(shorter * 1000 <= row[longest] <= row[total] - others, f"not the maximum of this interval's calls: {row}")


for tool in tools:
    def run():
        maximum_of_an_interval(harness.binary.name)
    run.__module__, run.__name__ = "test_maxima", f"of_an_interval_{tool}"
    case(run, tool=tool)
