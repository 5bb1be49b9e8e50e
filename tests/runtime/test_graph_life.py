# SPDX-License-Identifier: Apache-2.0
"""cudagraph: lifetimes of graphs: reused handles, forks, exec and exits of processes."""
import graphs
import harness
import system
from graphs import case, same_graphs, trace_graphs
from harness import equal, wait_until
from programs import Tool, Workload


@case(each={"threads": (8, []), "intervals": (2, ["-i", "0.05"])}, asan=True, timeout=180)
def reused_handles(how):
    """Thousands of graphs with a few handles are not confused with earlier graphs, whichever thread creates them."""
    threads, mode = how
    script = f"""
    threads {threads}; repeat 500; graph create .G; graph add .G kernel 2; graph instantiate .G .X; graph launch .X 3
    graph add .G memset 1; graph execdestroy .X; graph instantiate .G .X; graph launch .X; graph execdestroy .X; graph destroy .G; end; end
    """
    tool, workload = trace_graphs(script, *mode)
    equal(len(graphs.graph_rows(tool)), 1000 * threads, "graphs")


@case
def process_exits():
    """Graphs disappear with their process; their last launches are shown."""
    script = """graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 11; touch {dir}/there; wait {dir}/end
    background; graph launch X 1 block_us=300000000; end; sleep 100; touch {dir}/inside; wait {dir}/never"""
    workload = Workload(script, "workload-driver")
    other = Workload("graph create G; graph add G kernel 2; graph instantiate G X; graph launch X 2; wait {dir}/last", "workload-driver")
    pids = f"{workload.pid},{other.pid}"
    tool, summary = Tool("-p", pids, "-i", "0.2"), Tool("-p", pids, "--summary", "-i", "0.2")
    workload.go(), other.go()
    live = lambda pid: [(row["live_graphs"], row["live_execs"]) for row in summary.rows if row["pid"] == pid]
    wait_until(lambda: (harness.here / "there").exists() and live(workload.pid), "the process's row")
    (harness.here / "end").touch()
    wait_until(lambda: (harness.here / "inside").exists(), "a launch in flight")
    workload.process.kill()
    workload.process.wait()
    (harness.here / "last").touch()
    other.wait()
    for each in tool, summary:
        each.finish()
    equal(live(workload.pid)[0], (1, 1), "live graphs")
    rows = [row for row in tool.rows if row["pid"] == workload.pid]
    equal((sum(row["launches"] for row in rows), {row["nodes"] for row in rows}), (11, {3}), f"{rows}")
    equal(sum(row["launches"] for row in tool.rows if row["pid"] == other.pid), 2, "launches of the other process")


@case(alone=True)
def forked():
    """A forked child creates its own graphs, whose handles equal those of its parent's graphs."""
    script = """graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 2
    fork; graph create H; graph add H kernel 4; graph instantiate H Y; graph launch Y 5; graph execdestroy Y; end
    graph create K; graph add K memset 2; graph instantiate K Z; graph launch Z 7"""
    workload = Workload(script, "workload-driver")
    tool = Tool()
    workload.go().wait()
    tool.stop()
    pids = {row["pid"] for row in graphs.truth_lines(workload, "process")}
    equal(len(pids), 2, "number of processes")
    tool.all_records = [r for r in tool.records if r["type"] != "row" or r["pid"] in pids]
    same_graphs(tool, workload)


@case
def executed():
    """After exec, new graphs with the same handles are separate graphs."""
    script = """graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 2; capture begin stream=1; launch scale 4 stream=1
    sleep 100; exec; graph create H; graph add H kernel 4; graph add H memset 1; graph instantiate H Y; graph launch Y 5; launch scale 3 stream=1; sleep 100; end"""
    workload = Workload(script, "workload-driver")
    tool, summary = Tool("-p", workload.pid), Tool("-p", workload.pid, "--summary")
    workload.go().wait()
    rows = {(row["kernels"], row["nodes"], row["launches"], row["kernels_launched"]) for row in tool.finish().rows}
    equal(rows, {(3, 3, 2, 6), (4, 5, 5, 20)}, "rows")
    equal(sum(row["direct_launches"] for row in summary.finish().rows), 3, "launches outside of captures and graphs")


@case(each={tier: tier for tier in ("session", "multi", "tracefs", "perf")}, long=["perf"])
def tiers_are_equal(tier):
    system.need_tier(tier)
    script = """
    graph create G; graph add G kernel 3; graph add G memcpy 2; graph create H; graph add H kernel; graph add H child 2 of=G; graph instantiate H X
    graph launch X 100; graph launch X 3 result=700; graph update X H 2; graph update X G update_result=2; graph upload X 2; graph setparams X kernel
    threads 4; repeat 20; capture begin stream=own; launch scale 2 stream=own; capture end .G stream=own; graph instantiate .G .X
    graph launch .X 5 stream=own; graph execdestroy .X; graph destroy .G; end; end
    event record E stream=1; capture begin stream=1; event record E stream=1; event wait E stream=2; launch scale 3 stream=2
    event record F stream=2; event wait F stream=1; capture end K stream=1; graph instantiate K Z; graph launch Z 9
    """
    tool, _ = trace_graphs(script, "--attach", tier)
    equal({record["tier"] for record in tool.of_type("attached")}, {tier}, "tier")
