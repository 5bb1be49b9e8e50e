# SPDX-License-Identifier: Apache-2.0
"""Stream capture: captured launches are recorded instead of run, and counted separately. A graph is launched as a
whole. tests/bpf/launch_test.cpp tests each function and mode."""
import harness
from harness import case, equal, wait_until
from programs import Tool, Workload, trace
from truth import Rows, same_counts


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
