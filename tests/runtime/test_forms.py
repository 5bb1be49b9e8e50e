# SPDX-License-Identifier: Apache-2.0
"""Forms of CUDA programs: shared or static runtime, stripped, loaded late, driver only."""
from harness import Failure, case, equal
from programs import Tool, Workload
from truth import Rows, expected, same_counts

with_runtime = ("workload", "workload13", "workload-nopie", "workload-static")
# A stripped static runtime has no symbols to probe: its launches are seen only at the driver.
driver_only = ("workload-static-stripped", "workload-driver", "workload-dlopen")

script = "launch vecadd 1009 grid=2; launch saxpy 503; launch vecadd 251 fn=cuLaunchKernel"


@case(alone=True)
def all_forms_at_once():
    """One system-wide tool. workload13 launches through __cudaLaunchKernel, which jumps to cudaLaunchKernel."""
    workloads = [Workload(script, form) for form in with_runtime + driver_only]
    tools = {api: Tool("--by", "pid,kernel", "--api", api) for api in ("driver", "both")}
    for workload in workloads:
        workload.go()
    truth = {workload: workload.truth() for workload in workloads}
    wrong = []
    for api, tool in tools.items():
        tool.stop()
        for form, calls in zip(with_runtime + driver_only, truth.values()):
            where = "driver" if form == "workload-static-stripped" else api
            try:
                equal(Rows(calls).count(tool.rows, ("pid", "kernel")), expected(calls, ("pid", "kernel"), where), form)
            except Failure as failure:
                wrong.append(str(failure))
    equal(wrong, [], "forms with wrong counts")
    stripped = workloads[(with_runtime + driver_only).index("workload-static-stripped")]
    equal({row["layer"] for row in tools["both"].rows if row["pid"] == stripped.pid}, {"driver"}, "layers of a stripped runtime")


@case
def runtime_alone():
    workload = Workload(script, "workload-static")
    tool = Tool("-p", workload.pid, "--api", "runtime", "-l")
    workload.go()
    truth = workload.truth()
    same_counts(tool.finish(), truth, api="runtime", errors=True)


@case
def the_runtime_of_a_stripped_program():
    """The runtime in a stripped program cannot be probed, so --api both counts its calls at the driver."""
    workload = Workload(script, "workload-static-stripped")
    tool = Tool("-p", workload.pid, "--api", "both")
    workload.go()
    truth = workload.truth()
    same_counts(tool.finish(), truth, by=("kernel",), api="driver")
    equal({row["layer"] for row in tool.rows}, {"driver"}, "layers")
