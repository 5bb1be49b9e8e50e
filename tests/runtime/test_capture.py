# SPDX-License-Identifier: Apache-2.0
"""Under stream capture launches are recorded, not run: counted apart. Graphs are launched as a whole."""
from harness import case, equal
from programs import trace
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
def recorded_and_run_are_apart(mode):
    """A call under capture is no launch; one that fails there is counted with those that were recorded, as without
    results nobody could tell."""
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
    """What any thread launches on the captured stream is recorded; what it launches elsewhere is not."""
    tool, truth = trace("capture begin stream=1; threads 4; repeat 10; launch vecadd 5 stream=1; launch saxpy 7 stream=2\n"
                        "launch saxpy 3; end; end; capture end stream=1; graph 2; threads 2; launch vecadd 9 stream=1; end",
                        "--by", "thread,stream,kernel")
    same_counts(tool, truth, by=("tid", "stream", "kernel"))


@case
def an_ended_capture_is_over():
    """Whoever captures twice on one stream, and launches between, has both apart."""
    tool, truth = trace("repeat 20; capture begin; launch vecadd 3 stream=1; capture end; launch vecadd 2 stream=1\n"
                        "graph 1; end")
    same_counts(tool, truth)
    equal(Rows(truth).count(tool.rows, ()), {("captured",): 60, ("launches",): 40, ("graph_launches",): 20}, "sums")


@case
def only_its_thread_ends_a_capture():
    """Where another tries, it goes on."""
    tool, truth = trace("capture begin; launch vecadd 3 stream=1; threads 1; capture end G; end; launch vecadd 5 stream=1\n"
                        "capture end; launch vecadd 2 stream=1")
    same_counts(tool, truth)
    equal(Rows(truth).count(tool.rows, ()), {("captured",): 8, ("launches",): 2}, "sums")
