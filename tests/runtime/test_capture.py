# SPDX-License-Identifier: Apache-2.0
"""Stream capture: captured launches are recorded instead of run, and counted separately. A graph is launched as a
whole."""
import harness
from harness import case, equal, wait_until
from programs import Tool, Workload, trace
from truth import Rows, same_counts

begins = ("cuStreamBeginCapture", "cuStreamBeginCapture_v2", "cuStreamBeginCapture_v2_ptsz", "cudaStreamBeginCapture",
          "cudaStreamBeginCapture_ptsz")

script = """
capture begin; launch vecadd 3 stream=1; launch saxpy 2 stream=1; launch saxpy 9; launch reduce 7 stream=2
launch vecadd 1 stream=1 result=719; capture end; graph 10 stream=1; launch vecadd 4 stream=1; hostfunc 6
build reduce 7 grid=3; graph 2; graph 1 fn=cuGraphLaunch result=700
capture begin stream=2; launch vecadd 100 stream=2; launch vecadd 50 stream=1; capture end stream=2; graph 5 stream=2
"""


@case(each={"entry": [], "latency": ["-l"], "failed": ["-x"]}, asan=True)
def captured_calls_are_no_launches(mode):
    """A captured call does not count as a launch. A call that fails during capture counts as captured, since only some
    modes see results."""
    tool, truth = trace(script, *mode)
    for call in truth:
        call["recorded"] |= call["result"] == 719
    same_counts(tool, truth, errors=bool(mode), failed_only="-x" in mode)
    total = Rows(truth).count(tool.rows, ())
    equal((total.get(("graph_launches",)), total[("captured",)]), (1, 1) if "-x" in mode else (18, 106), "sums")


@case
def by_every_function():
    steps = "\n".join(f"capture begin fn={begin} stream=1; launch vecadd {10 + i} stream=1; launch saxpy {20 + i}\n"
                      f"capture end stream=1; graph {30 + i}" for i, begin in enumerate(begins))
    for form, api in (("workload", "both"), ("workload13", "driver")):
        tool, truth = trace(steps, "--by", "stream,kernel", "--api", api, form=form)
        same_counts(tool, truth, by=("kernel", "stream"), api=api)


@case
def threads_record_together():
    """Launches of any thread on the captured stream are recorded; those on other streams are not."""
    tool, truth = trace("capture begin stream=1; threads 4; repeat 10; launch vecadd 5 stream=1; launch saxpy 7 stream=2\n"
                        "launch saxpy 3; end; end; capture end stream=1; graph 2; threads 2; launch vecadd 9 stream=1; end",
                        "--by", "thread,stream,kernel")
    same_counts(tool, truth, by=("tid", "stream", "kernel"))


@case(gpu=True)
def launches_between_captures():
    """Launches between two captures of the same stream count as launches."""
    tool, truth = trace("repeat 20; capture begin; launch vecadd 3 stream=1; capture end; launch vecadd 2 stream=1\n"
                        "graph 1; end")
    same_counts(tool, truth)
    equal(Rows(truth).count(tool.rows, ()), {("captured",): 60, ("launches",): 40, ("graph_launches",): 20}, "sums")


@case(gpu=True)
def only_its_thread_ends_a_capture():
    """If another thread tries to end a capture, the capture continues."""
    tool, truth = trace("capture begin; launch vecadd 3 stream=1; threads 1; capture end G; end; launch vecadd 5 stream=1\n"
                        "capture end; launch vecadd 2 stream=1")
    same_counts(tool, truth)
    equal(Rows(truth).count(tool.rows, ()), {("captured",): 8, ("launches",): 2}, "sums")


graphs = """
capture begin stream=1; launch vecadd 5 stream=1; event record E stream=1; event wait E stream=2; launch reduce 3 stream=2
event record F stream=2; event wait F stream=1; capture end G stream=1; graph instantiate G X; graph launch X 100
graph create H; graph add H kernel 4; graph add H memset 3; graph add H child of=G; graph instantiate H Y; graph launch Y 7
graph launch X 9 result=700; launch apply 11; graph execdestroy X; graph instantiate H X; graph launch X 2
"""


@case(each={"entry": [], "latency": ["-l"]}, asan=True)
def kernels_of_graphs(mode):
    """Kernels that a graph launch starts: those captured on any stream, and those in child graphs."""
    tool, truth = trace(graphs, "--by", "pid", *mode, form="workload-driver")
    expanded, _ = trace(graphs, "--by", "pid", "--graphs", "expand", "-l", form="workload-driver")
    counted, _ = trace(graphs, "--by", "pid", "--graphs", "count", form="workload-driver")
    behind = sum(call["count"] * call["kernels"] for call in truth if call["kind"] == "graph" and not call["result"])
    failed = sum(call["count"] * call["kernels"] for call in truth if call["kind"] == "graph" and call["result"])
    row, = tool.rows
    equal((row["graph_kernels"], row["graph_launches_unknown"], row["launches"], row["captured"]),
          (behind + (0 if mode else failed), 0, 11, 8), f"{row}")
    equal(expanded.rows[0]["launches"], behind + 11, "launches including kernels of graphs")
    equal("graph_kernels" in counted.rows[0], False, "whether graph_kernels exists without its option")


@case(gpu=True)
def graphs_from_before_tracing():
    """The kernels of a graph that was created before tracing are unknown; the row counts its launches as unknown."""
    workload = Workload("capture begin stream=1; launch vecadd 5 stream=1; capture end G stream=1; graph instantiate G X\n"
                        "touch {dir}/made; wait {go}; graph launch X 13", "workload-driver", warm=False)
    wait_until(lambda: (harness.here / "made").exists(), "the graph is created")
    tool = Tool("-p", workload.pid, "--by", "pid")
    workload.go().wait()
    row, = tool.finish().rows
    equal((row["graph_launches"], row["graph_launches_unknown"], row["graph_kernels"]), (13, 13, 0), f"{row}")
