# SPDX-License-Identifier: Apache-2.0
"""However a program has got its CUDA: shared or static runtime, stripped, opened late, driver alone."""
from harness import Failure, case, equal
from programs import Tool, Workload
from truth import Rows, expected, same_counts

with_runtime = ("workload", "workload13", "workload-nopie", "workload-static")
# A stripped static runtime has no symbols that could be probed: its launches are seen at the driver.
driver_only = ("workload-static-stripped", "workload-driver", "workload-dlopen")

script = "launch vecadd 1009 grid=2; launch saxpy 503; launch vecadd 251 fn=cuLaunchKernel"


@case(alone=True)
def all_forms_at_once():
    """One tool for all processes. workload13 launches through __cudaLaunchKernel, which jumps to cudaLaunchKernel."""
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
    equal(wrong, [], "forms")


@case(each={form: form for form in with_runtime})
def runtime_alone(form):
    workload = Workload(script, form)
    tool = Tool("-p", workload.pid, "--api", "runtime", "-l")
    workload.go()
    truth = workload.truth()
    same_counts(tool.finish(), truth, api="runtime", errors=True)


@case
def the_runtime_of_a_stripped_program():
    """Nothing in it can be probed at the runtime; the driver can, and --api both counts there."""
    workload = Workload(script, "workload-static-stripped")
    tool = Tool("-p", workload.pid, "--api", "both")
    workload.go()
    truth = workload.truth()
    same_counts(tool.finish(), truth, by=("kernel",), api="driver")
    equal({row["layer"] for row in tool.rows}, {"driver"}, "layers")
