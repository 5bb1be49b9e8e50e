# SPDX-License-Identifier: Apache-2.0
"""cudagraph: lifetimes of graphs: reused handles, exits of processes, and graphs from before tracing."""
import graphs
import harness
import system
from graphs import case, same_graphs, trace_graphs
from harness import check, equal, wait_until
from programs import Tool, Workload


@case
def refused_updates():
    """A refused update leaves the graph unchanged, and the tool shows the reason; then the graph is instantiated
    again."""
    steps = "\n".join(f"graph instantiate G X{i}; graph update X{i} G update_result={i}; graph launch X{i} {i}" for i in range(1, 9))
    script = f"""
    graph create G; graph add G kernel 3; graph create H; graph add H kernel 4; graph create M; graph add M memset 3; {steps}
    graph instantiate G X; graph launch X 5; graph update X H 3; graph launch X 7; graph update X M; graph update X G 2 result=1
    graph execdestroy X; graph instantiate H X; graph launch X 11
    """
    tool, _ = trace_graphs(script)
    equal({row["update_reason"] for row in tool.rows if "update_reason" in row} >= {*graphs.reasons[2:]}, True, "whether all reasons were seen")


@case(each={"one": (1, []), "threads": (8, []), "intervals": (2, ["-i", "0.05"])}, asan=True, timeout=180)
def reused_handles(how):
    """Thousands of graphs with a few handles are not confused with earlier graphs, whichever thread creates them."""
    threads, mode = how
    script = f"""
    threads {threads}; repeat 500; graph create .G; graph add .G kernel 2; graph instantiate .G .X; graph launch .X 3
    graph add .G memset 1; graph execdestroy .X; graph instantiate .G .X; graph launch .X; graph execdestroy .X; graph destroy .G; end; end
    """
    tool, workload = trace_graphs(script, *mode)
    equal(len(graphs.graph_rows(tool)), 1000 * threads, "graphs")


@case(each={"lasting": [], "intervals": ["-i", "0.1"]}, timeout=180)
def a_hundred_thousand_launches(mode):
    """8 threads launch shared and separate graphs; some launches fail."""
    script = """
    graph create G; graph add G kernel 3; graph instantiate G X
    threads 8; graph create .H; graph add .H kernel 5; graph instantiate .H .Y
    repeat 50; graph launch X 100; graph launch .Y 150; graph launch X 2 result=700; graph upload .Y; end; end
    """
    tool, workload = trace_graphs(script, *mode)
    equal(sum(row["launches"] for row in tool.rows), 100_000, "launches")


uses = {"launch": "graph launch X 1 block_us=700000", "upload": "graph upload X 1 block_us=700000"}


@case(each={name + more: (use, mode) for name, use in uses.items() for more, mode in (("", []), ("_intervals", ["-i", "0.1"]))})
def destroyed_while_in_use(how):
    """A launch that is in flight while its graph is destroyed counts for that graph, not for a new one with its
    handle."""
    inside, mode = how
    script = f"""
    graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 2; graph create H; graph add H kernel 5
    background; {inside}; end; sleep 200; graph execdestroy X; graph instantiate H Y; graph launch Y 7; join
    """
    tool, _ = trace_graphs(script, *mode)
    equal(len({row["exec"] for row in tool.rows}), 1, "number of handles")


before = """graph create G; graph add G kernel 3; graph instantiate G X; graph launch X; touch {dir}/made; wait {go}
graph launch X 17; graph upload X 2; graph create H; graph add H kernel 2; graph add H child of=G; graph instantiate H Y; graph launch Y 5
graph launch X 4 result=700"""


@case
def created_before_tracing():
    """Graphs from before tracing, and graphs that contain them, have unknown nodes; launches are counted."""
    workload = Workload(before, "workload-driver", warm=False)
    wait_until(lambda: (harness.here / "made").exists(), "the graph is created")
    tool, text = Tool("-p", workload.pid), Tool("-p", workload.pid, json=False)
    workload.go().wait()
    rows = sorted(tool.finish().rows, key=lambda row: row["launches"])
    equal([(row["launches"], row["errors"], row["uploads"]) for row in rows], [(5, 0, 0), (17, 4, 2)], "calls")
    for row in rows:
        unknown = {"nodes", "kernels", "copies", "memsets", "host_functions", "other_nodes"} & set(row)
        equal((unknown, row["kernels_launched"]), (set(), 0) if row["launches"] == 17 else (set(), row["kernels_launched"]), f"{row}")
    equal(("instantiate_ns" in rows[0], "instantiate_ns" in rows[1], "age_ns" in rows[1]), (True, False, False), "which values are known")
    head, *lines = [line.split() for line in text.finish().lines if line.strip()]
    equal([line[head.index("NODES")] for line in lines], ["?", "?"], "NODES")


@case
def nodes_added_to_a_graph_from_before():
    """Captures into a graph from before tracing: its node count stays unknown, and so do those of its clones."""
    workload = Workload("""graph create G; graph add G kernel 3; touch {dir}/made; wait {go}; capture begin stream=1 to=G
    launch scale 2 stream=1; capture end G2 stream=1; graph instantiate G X; graph launch X 5; graph add G memset; graph clone G H
    graph add H kernel; graph instantiate H Y; graph launch Y 7""", "workload-driver", warm=False)
    wait_until(lambda: (harness.here / "made").exists(), "the graph is created")
    tool = Tool("-p", workload.pid)
    workload.go().wait()
    equal(sorted((row["launches"], row.get("nodes")) for row in tool.finish().rows), [(5, None), (7, None)], "rows")


@case
def updated_to_a_known_graph():
    """An executable graph from before tracing has known nodes after an update from a known graph."""
    workload = Workload("graph create G; graph add G kernel 3; graph instantiate G X; touch {dir}/made; wait {go}; graph launch X 2\n"
                        "graph create H; graph add H kernel 3; graph update X H; graph launch X 5", "workload-driver", warm=False)
    wait_until(lambda: (harness.here / "made").exists(), "the graph is created")
    tool = Tool("-p", workload.pid)
    workload.go().wait()
    row, = tool.finish().rows
    equal((row["launches"], row.get("nodes"), row["updates"], row["kernels_launched"]), (7, 3, 1, 15), f"{row}")


@case
def failed_destroy():
    """A graph that could not be destroyed remains, with its handle."""
    script = """repeat 50; graph create .G; graph add .G kernel 2; graph instantiate .G .X; graph execdestroy .X result=1; graph launch .X 2
    graph destroy .G result=1; graph execdestroy .X; graph instantiate .G .Y; graph launch .Y; graph execdestroy .Y; graph destroy .G; end"""
    trace_graphs(script)


@case(each={"exit": False, "killed": True})
def process_exits(killed):
    """Graphs disappear with their process; their last launches are shown."""
    script = """graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 11; touch {dir}/there; wait {dir}/end
    background; graph launch X 1 block_us=300000000; end; sleep 100; touch {dir}/inside; wait {dir}/never"""
    workload = Workload(script if killed else script.split("background")[0], "workload-driver")
    other = Workload("graph create G; graph add G kernel 2; graph instantiate G X; graph launch X 2; wait {dir}/last", "workload-driver")
    pids = f"{workload.pid},{other.pid}"
    tool, summary = Tool("-p", pids, "-i", "0.2"), Tool("-p", pids, "--summary", "-i", "0.2")
    workload.go(), other.go()
    live = lambda pid: [(row["live_graphs"], row["live_execs"]) for row in summary.rows if row["pid"] == pid]
    wait_until(lambda: (harness.here / "there").exists() and live(workload.pid), "the process's row")
    (harness.here / "end").touch()
    if killed:
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
    graph create G; graph add G kernel 3; graph add G memcpy 2; graph create H; graph add H child 2 of=G; graph instantiate H X
    graph launch X 100; graph launch X 3 result=700; graph update X H 2; graph update X G update_result=2; graph upload X 2; graph setparams X child of=G
    threads 4; repeat 20; capture begin stream=own; launch scale 2 stream=own; capture end .G stream=own; graph instantiate .G .X
    graph launch .X 5 stream=own; graph execdestroy .X; graph destroy .G; end; end
    event record E stream=1; capture begin stream=1; event record E stream=1; event wait E stream=2; launch scale 3 stream=2
    event record F stream=2; event wait F stream=1; capture end K stream=1; graph instantiate K Z; graph launch Z 9
    """
    tool, _ = trace_graphs(script, "--attach", tier)
    equal({record["tier"] for record in tool.of_type("attached")}, {tier}, "tier")
