# SPDX-License-Identifier: Apache-2.0
"""cudalaunch counts every launch once, by any function and in any mode."""
from harness import case, equal
from programs import Tool, Workload, trace
from truth import Rows, expected, same_counts, same_shapes

# -l and -x add return probes, which change the stack that code inside the call sees.
modes = {"entry": [], "latency": ["-l"], "failed": ["-x"]}

primes = [1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061, 1063, 1069, 1087, 1091, 1093, 1097, 1103, 1109]

driver_functions = ["cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz",
                    "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz", "cuLaunchGrid", "cuLaunchGridAsync",
                    "cuLaunch", "cuLaunchCooperativeKernelMultiDevice"]

runtime_functions = ["stub", "cudaLaunchKernel", "cudaLaunchKernel_ptsz", "__cudaLaunchKernel",
                     "__cudaLaunchKernel_ptsz", "cudaLaunchKernelExC", "cudaLaunchKernelExC_ptsz",
                     "cudaLaunchCooperativeKernel", "cudaLaunchCooperativeKernel_ptsz",
                     "cudaLaunchCooperativeKernelMultiDevice"]


def check_mode(tool, truth, mode, **how):
    """Compares what each mode counts: -x only failed calls."""
    if "-x" in mode:
        same_counts(tool, truth, errors=True, failed_only=True, **how)
    else:
        same_counts(tool, truth, errors="-l" in mode, **how)


@case(asan=True, gpu=True)
def one_thread():
    tool, truth = trace("launch vecadd 1009 grid=10,2,1 block=128; launch saxpy 503 grid=3 block=8,4,2 smem=512\n"
                        "launch reduce 251 grid=70000,3,2 block=1024; launch apply 2; launch scale 1 grid=2 block=7")
    same_counts(tool, truth)
    same_counts(tool, truth, by=("kernel", "pid", "comm"))
    same_shapes(tool, truth)


@case(gpu=True)
def eight_threads():
    tool, truth = trace("threads 8; repeat 3; launch vecadd 1000; end; end; launch vecadd 17; threads 3; name other\n"
                        "launch saxpy 100 stream=1; end", "--by", "thread,kernel")
    same_counts(tool, truth, by=("tid", "kernel", "pid"))
    equal(len({row["tid"] for row in tool.rows}), 12, "number of threads")


@case(gpu=True)
def a_million_and_three():
    tool, truth = trace("launch vecadd 1_000_003")
    same_counts(tool, truth)
    equal(tool.rows[0]["launches"], 1_000_003, "launches")


@case(each=modes, asan=True)
def every_driver_function(mode):
    """Each function launches its own kernel, so that each has its own row."""
    script = "\n".join(f"launch by_{function} {n} fn={function} grid={n % 7 + 1},{n % 5 + 1} block={n % 64 + 1},2 "
                       f"smem={n} stream=1 devices=3" for function, n in zip(driver_functions, primes))
    failing = "\n".join(f"launch bad_{function} {n % 11 + 1} fn={function} result=719 devices=3"
                        for function, n in zip(driver_functions, primes))
    tool, truth = trace(script + "\n" + failing, *mode, form="workload-driver")
    check_mode(tool, truth, mode)
    equal(len({call["function"] for call in truth}), len(driver_functions), "functions in the truth")
    if not mode:
        same_shapes(tool, truth)


@case(each=modes)
def every_runtime_function(mode):
    """The runtime can launch only five kernels, so two programs share the functions."""
    halves = runtime_functions[:5], runtime_functions[5:]
    kernels = ["vecadd", "saxpy", "reduce", "apply", "scale"]
    for functions in halves:
        script = "\n".join(f"launch {kernel} {n} fn={function} grid={n % 7 + 1},{n % 5 + 1},2 block={n % 64 + 1},2 "
                           f"smem={n} stream=1 devices=3" for function, kernel, n in zip(functions, kernels, primes))
        failing = "\n".join(f"launch {kernel} {n % 11 + 1} fn={function} result=719 grid={n % 7 + 1},{n % 5 + 1},2 "
                            f"block={n % 64 + 1},2 smem={n} devices=3"
                            for function, kernel, n in zip(functions, kernels, primes))
        workload = Workload(script + "\n" + failing)
        above = Tool("-p", workload.pid, "--api", "runtime", *mode)
        below = Tool("-p", workload.pid, *mode)
        workload.go()
        truth = workload.truth()
        check_mode(above.finish(), truth, mode, api="runtime")
        check_mode(below.finish(), truth, mode)
        if not mode:
            same_shapes(above, truth, api="runtime")


@case
def host_functions_and_graphs():
    """Launches of host functions and graphs by every function, at both layers."""
    graphs = [f"graph {n} fn={f}" for n, f in zip(primes, ("cuGraphLaunch", "cuGraphLaunch_ptsz", "cudaGraphLaunch",
                                                           "cudaGraphLaunch_ptsz"))]
    hosts = [f"hostfunc {n} fn={f}{suffix} stream=2" for n, (f, suffix) in zip(primes, (
        (f, suffix) for f in ("cuLaunchHostFunc", "cuStreamAddCallback", "cudaLaunchHostFunc", "cudaStreamAddCallback")
        for suffix in ("", "_ptsz")))]
    workload = Workload("\n".join(["build vecadd 3", *graphs, *hosts]))
    tools = {api: Tool("-p", workload.pid, "--by", "pid,stream", "--api", api) for api in ("driver", "runtime", "both")}
    workload.go()
    truth = workload.truth()
    for api, tool in tools.items():
        got = Rows(truth).count(tool.finish().rows, ("pid",))
        equal(got, expected(truth, ("pid",), api), f"{tool}")
