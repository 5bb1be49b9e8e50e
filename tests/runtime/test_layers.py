# SPDX-License-Identifier: Apache-2.0
"""Layers (runtime and driver): the runtime calls the driver, but each launch must be counted exactly once."""
import pathlib

import harness
from harness import case, check, wait_until
from programs import Tool, Workload
from truth import same_counts

# Runtime and driver launches, with everything that could confuse the two: runtime calls that fail before they reach the
# driver, followed by driver calls from deeper in the stack.
mixed = """
launch vecadd 1009 grid=3; launch reduce 499 fn=cuLaunchKernel; launch saxpy 251 fn=cudaLaunchKernelExC stream=1
launch apply 11 runtime_result=35; launch apply 127 fn=cuLaunchKernel
launch vecadd 5 runtime_result=98
deeper; launch saxpy 61 fn=cuLaunchKernelEx; end
launch vecadd 1 runtime_result=98
deeper 200; launch vecadd 31 fn=cuLaunchKernel; end
launch unregistered 7 fn=cudaLaunchKernel
deeper 100000; launch reduce 13 fn=cuLaunchKernel; end
launch vecadd 17 result=719; launch vecadd 19 fn=cuLaunchKernel result=700
launch scale 23 fn=cudaLaunchCooperativeKernelMultiDevice devices=4
launch scale 29 fn=cuLaunchCooperativeKernelMultiDevice devices=3
build vecadd 2; graph 37; graph 41 fn=cuGraphLaunch; hostfunc 43; hostfunc 47 fn=cuLaunchHostFunc
threads 4; repeat 50; launch vecadd 3; launch vecadd 2 fn=cuLaunchKernel; launch apply 1 runtime_result=2
deeper 300; launch saxpy 2 fn=cuLaunchKernel; end; end; end
"""

apis = ("driver", "runtime", "both")
modes = {"entry": [], "latency": ["-l"]}


def compare(tool, truth, api, mode):
    by = ("kernel", "layer") if api == "both" else ("kernel",)
    same_counts(tool, truth, by=by, api=api, errors=bool(mode), failed_only="-x" in mode)


@case(each=modes, asan=True)
def each_api(mode):
    """Three tools at once: their return probes are on the same stack."""
    workload = Workload(mixed)
    tools = {api: Tool("-p", workload.pid, "--api", api, *mode) for api in apis}
    workload.go()
    truth = workload.truth()
    for api, tool in tools.items():
        compare(tool.finish(), truth, api, mode)


@case
def through_a_protected_runtime():
    """The runtime's functions sign their return addresses, or begin with endbr64."""
    libraries = f"{harness.standin}/signed:{harness.standin}"
    workload = Workload(mixed, env={"LD_LIBRARY_PATH": libraries})
    check("/signed/libcudart" in pathlib.Path(f"/proc/{workload.pid}/maps").read_text(), "the workload does not map this runtime")
    tool = Tool("-p", workload.pid, "--api", "both")
    workload.go()
    compare(tool.finish(), workload.truth(), "both", [])


@case
def beside_a_foreign_return_probe():
    """Another tracer's return probe replaces the runtime call's return address by a trampoline."""
    workload = Workload(mixed + "touch {dir}/half; wait {dir}/left\n" + mixed)
    foreign = Tool("-p", workload.pid, "--api", "runtime", "-l")
    tool = Tool("-p", workload.pid, "--api", "both")
    foreign_later = Tool("-p", workload.pid, "--api", "runtime", "-x")
    workload.go()
    wait_until((harness.here / "half").exists, "the first half is done")
    foreign_later.stop()  # removes its return probes halfway
    (harness.here / "left").touch()
    truth = workload.truth()
    compare(tool.finish(), truth, "both", [])
    compare(foreign.finish(), truth, "runtime", ["-l"])
