# SPDX-License-Identifier: Apache-2.0
"""All ways of attaching yield the same counts."""
import leftovers
import system
from harness import case, equal
from programs import Tool, Workload
from truth import same_counts

tiers = {tier: tier for tier in ("session", "multi", "tracefs", "perf")}

script = """
launch vecadd 1009 grid=3,2; launch saxpy 17 result=700; threads 4; launch vecadd 101; launch saxpy 11 fn=cuLaunchKernelEx; end
launch apply 5 runtime_result=35; capture begin; launch reduce 3 stream=1; capture end; graph 7; hostfunc 9
launch scale 13 fn=cuLaunchCooperativeKernelMultiDevice devices=3; fork; launch vecadd 10007; end
"""


def run(tier, scope, api):
    """Runs two tools concurrently, with and without return probes. The scope -p excludes the child. With the tier
    `perf`, only one tool runs, because detaching takes six seconds."""
    system.need_tier(tier)
    workload, watch = Workload(script), Workload("launch vecadd 1", "workload-driver")
    arguments = ["--attach", tier, "--by", "pid,kernel", "--api", api, *(["-p", workload.pid] if scope == "-p" else [])]
    modes = [True, False] if tier != "perf" else [scope == "-p"]
    tools = {returns: Tool(*arguments, *(["-l"] if returns else [])) for returns in modes}
    for tool in tools.values():
        equal({record["tier"] for record in tool.of_type("attached")}, {tier}, "tier")
    workload.go()
    truth = [call for call in workload.truth() if scope != "-p" or call["pid"] == workload.pid]
    for returns, tool in tools.items():
        tool.finish() if scope == "-p" else tool.stop()
        same_counts(tool, truth, by=("pid", "kernel"), api=api, errors=returns)
        equal({row["pid"] for row in tool.rows if scope == "-p"} - {workload.pid}, set(), "other processes")
    leftovers.check_no_breakpoints(watch.pid, "libcuda")  # after the tools have exited
    equal(watch.process.poll(), None, "exit status of a process that was traced")


@case(each=tiers, alone=True)
def one_process(tier):
    run(tier, "-p", "driver")


@case(each=tiers, long=["perf"], alone=True)
def system_wide(tier):
    run(tier, "", "both")


@case(each={tier: tier for tier in ("session", "multi", "tracefs")})
def while_memory_is_mapped(tier):
    """Threads start and exit all the time, so the lock of the address space is often held when a probe is hit."""
    system.need_tier(tier)
    workload = Workload("repeat 400; threads 4; launch vecadd 5; end; end")
    tool = Tool("-p", workload.pid, "--attach", tier)
    workload.go()
    same_counts(tool.finish(), workload.truth())
