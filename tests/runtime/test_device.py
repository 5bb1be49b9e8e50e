# SPDX-License-Identifier: Apache-2.0
"""Results of a real device: kernels that take time, cannot start, or break their context. The truth has the actual
results; the stand-in, which runs nothing, returns success."""
from harness import case, equal
from programs import trace
from truth import same_counts


@case(gpu=True)
def results_of_failing_kernels():
    """out_of_bounds breaks the context. The driver could then load no new kernel, so the script only launches one that
    is already loaded."""
    tool, truth = trace("launch vecadd 5; launch too_many_threads 3 block=64; launch out_of_bounds 1; sync 1\n"
                        "launch vecadd 2", "-l", form="workload-driver")
    same_counts(tool, [call for call in truth if call["kind"] == "kernel"], errors=True)


@case(gpu=True)
def kernels_take_time():
    tool, truth = trace("launch spin_us_2000 50; sync 1; launch vecadd 7", form="workload-driver")
    same_counts(tool, [call for call in truth if call["kind"] == "kernel"])
    equal(sum(call["count"] for call in truth if call["kind"] == "sync"), 1, "number of waits")


@case(gpu=True)
def on_its_device():
    """Launches count for the device of the current context, however it became current."""
    tool, truth = trace("threads 2; launch reduce 4; end; newcontext; newcontext; launch saxpy 3; destroycontext; launch vecadd 2",
                        "--by", "device,kernel", form="workload-driver")
    same_counts(tool, truth, by=("device", "kernel"))


@case(gpu=True)
def on_an_unknown_device():
    """A context from before tracing becomes current again: its device is unknown."""
    tool, _ = trace("newcontext; launch saxpy 3; destroycontext; launch vecadd 2", "--by", "device", form="workload-driver")
    equal({row.get("device"): row["launches"] for row in tool.rows}, {0: 3, None: 2}, "launches by device")
