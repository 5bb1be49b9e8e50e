# SPDX-License-Identifier: Apache-2.0
"""Check that processes outside the scope of a tool are not slowed down."""
import os

import harness
import leftovers
import system
from harness import check, equal, wait_until
from programs import Tool, Workload
from truth import same_counts


def check_others_hit_no_probes(tier, select, end, **options):
    """Traces a workload with these options. Checks that another workload and its child hit no breakpoint and run no BPF
    program during that time. select(pid) returns the arguments that make the tool trace only that process; end(tool)
    ends the tool."""
    system.need_tier(tier)
    # With perf, probes are detached one by one, which takes long, so use fewer.
    form, mode = ("workload-driver", []) if tier == "perf" else ("workload", ["-l", "--api", "both"])
    target = Workload("launch vecadd 10", form, **options)
    other = Workload("launch vecadd 10000; fork; touch {dir}/child; wait {dir}/end; launch vecadd 10000; end", form)
    descriptor = leftovers.count_runs()
    tool = Tool(*select(target.pid), "--attach", tier, "--by", "pid,kernel", *mode)
    programs = leftovers.call_programs(tool.pid)
    check(programs, "the tool holds no BPF programs")
    for library in ("libcuda.so",) if form == "workload-driver" else ("libcuda.so", "libcudart.so"):
        check(leftovers.breakpoints(target.pid, library), f"no breakpoints in {library} of the target")
        leftovers.check_no_breakpoints(other.pid, library)
    before = leftovers.run_count(programs)
    other.go()
    wait_until((harness.here / "child").exists, "the child has started")
    child, = system.descendants(other.pid)
    leftovers.check_no_breakpoints(child, "libcuda")
    (harness.here / "end").touch()
    other.wait()
    equal(leftovers.run_count(programs) - before, 0, "runs of BPF programs for another process")
    target.go().wait()
    wait_until(lambda: tool.lines[2:] or leftovers.run_count(programs) >= before + 10, "the target's calls run the tool's programs")
    end(tool)
    equal({row["pid"] for row in tool.rows}, {target.pid}, f"processes of {tool}")
    same_counts(tool, target.truth(), by=("pid", "kernel"), api="both" if mode else "driver", errors=bool(mode))
    os.close(descriptor)
