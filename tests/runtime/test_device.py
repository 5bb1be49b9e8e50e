# SPDX-License-Identifier: Apache-2.0
"""What a device answers by itself: kernels that take their time, that cannot start, and that break their context. What
comes back is in the truth, whatever it is; where nothing is done, all of them succeed."""
from harness import case, equal
from programs import trace
from truth import same_counts


@case(gpu=True)
def results_are_the_drivers():
    """Its context is dead then: what is launched at the end must have been loaded before."""
    tool, truth = trace("launch vecadd 5; launch too_many_threads 3 block=64; launch out_of_bounds 1; sync 1\n"
                        "launch vecadd 2", "-l", form="workload-driver")
    same_counts(tool, [call for call in truth if call["kind"] == "kernel"], errors=True)


@case(gpu=True)
def kernels_take_time():
    tool, truth = trace("launch spin_us_2000 50; sync 1; launch vecadd 7", form="workload-driver")
    same_counts(tool, [call for call in truth if call["kind"] == "kernel"])
    equal(sum(call["count"] for call in truth if call["kind"] == "sync"), 1, "waits")


@case(gpu=True)
def on_its_device():
    """As the context has it, however the program came to it."""
    tool, truth = trace("threads 2; launch reduce 4; end; newcontext; newcontext; launch saxpy 3; destroycontext; launch vecadd 2",
                        "--by", "device,kernel", form="workload-driver")
    same_counts(tool, truth, by=("device", "kernel"))


@case(gpu=True)
def on_an_unknown_device():
    """A context that was current before tracing began is current again: the tool does not guess its device."""
    tool, _ = trace("newcontext; launch saxpy 3; destroycontext; launch vecadd 2", "--by", "device", form="workload-driver")
    equal({row.get("device"): row["launches"] for row in tool.rows}, {0: 3, None: 2}, "launches by device")
