# SPDX-License-Identifier: Apache-2.0
"""Failed calls: counted as errors, with names of results, and never as successes."""
from collections import Counter

from harness import case, check, equal
from programs import Tool, Workload, trace
from truth import same_counts

# CUresult and cudaError_t have the same numbers since CUDA 10.1, but different names. 12345 is not defined.
driver_names = {1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 3: "CUDA_ERROR_NOT_INITIALIZED",
                201: "CUDA_ERROR_INVALID_CONTEXT", 400: "CUDA_ERROR_INVALID_HANDLE", 600: "CUDA_ERROR_NOT_READY",
                700: "CUDA_ERROR_ILLEGAL_ADDRESS", 701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                719: "CUDA_ERROR_LAUNCH_FAILED", 720: "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
                900: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", 999: "CUDA_ERROR_UNKNOWN", 12345: "error 12345"}
runtime_names = {1: "cudaErrorInvalidValue", 2: "cudaErrorMemoryAllocation", 35: "cudaErrorInsufficientDriver",
                 98: "cudaErrorInvalidDeviceFunction", 600: "cudaErrorNotReady", 719: "cudaErrorLaunchFailure",
                 999: "cudaErrorUnknown", 12345: "error 12345"}


def results(tool):
    out = Counter()
    for row in tool.rows:
        out[row.get("layer", "driver"), row["result_code"], row["result"]] += row.get("launches", 0)
    return dict(out)


@case(asan=True)
def driver_results_have_names():
    counts = {code: 3 + i for i, code in enumerate(driver_names)}
    script = "launch vecadd 1009\n" + "\n".join(f"launch vecadd {n} result={code}" for code, n in counts.items())
    tool, truth = trace(script, "-x")
    equal(results(tool), {("driver", code, driver_names[code]): n for code, n in counts.items()}, "results")
    same_counts(tool, truth, by=("kernel", "result"), failed_only=True, errors=True)


@case
def runtime_results_have_their_own_names():
    """Errors of the driver pass through the runtime; runtime_result= makes only the runtime's function fail."""
    above = {code: 3 + i for i, code in enumerate(runtime_names)}
    script = "launch vecadd 1009\n" + "\n".join(f"launch vecadd {n} runtime_result={code}" for code, n in above.items())
    tool, truth = trace(script + "\nlaunch saxpy 50 fn=cuLaunchKernel result=719", "-x", "--api", "both")
    want = {("runtime", code, runtime_names[code]): n for code, n in above.items()}
    equal(results(tool), want | {("driver", 719, driver_names[719]): 50}, "results")
    same_counts(tool, truth, by=("kernel", "layer"), api="both", failed_only=True, errors=True)


@case
def negative_results():
    """A result has 32 bits; the upper half of the register is ignored."""
    tool, truth = trace("launch vecadd 5 result=0xffffffff; launch vecadd 4", "-x")
    equal(results(tool), {("driver", -1, "error -1"): 5}, "results")


@case(asan=True)
def errors_beside_successes():
    """-l counts failed and successful calls, and every call has a duration."""
    tool, truth = trace("launch vecadd 1009; launch vecadd 17 result=700; launch saxpy 5 result=600; launch reduce 3\n"
                        "launch vecadd 2 block=0; launch scale 2 fn=cuLaunchCooperativeKernelMultiDevice devices=3\n"
                        "launch scale 7 fn=cuLaunchCooperativeKernelMultiDevice devices=3 result=1", "-l")
    same_counts(tool, truth, errors=True)
    for row in tool.rows:
        check(0 < row["latency_p50_ns"] <= row["latency_p95_ns"] <= row["latency_p99_ns"] and
              row["latency_max_ns"] * row["launches"] >= row["latency_total_ns"] >= row["launches"], f"unexpected durations: {row}")


@case(gpu=True)
def nothing_fails():
    tool, _ = trace("launch vecadd 1009; build vecadd 2; graph 5; hostfunc 5", "-x")
    equal(tool.rows, [], "rows of a program without failures")


@case
def failed_graphs_and_host_functions():
    script = ("build vecadd 2; graph 5; graph 3 fn=cuGraphLaunch result=700; hostfunc 4\n"
              "hostfunc 2 fn=cuLaunchHostFunc result=999")
    tool, truth = trace(script, "-x")
    same_counts(tool, truth, by=("kernel", "result"), failed_only=True, errors=True)
    tool, truth = trace(script, "-l", "--by", "pid")
    same_counts(tool, truth, by=("pid",), errors=True)


@case
def a_failure_in_a_runtime_call_stays_there():
    """A call that fails in the runtime is not a launch of the driver."""
    workload = Workload("launch vecadd 10; launch vecadd 5 runtime_result=35; launch unregistered 3 fn=cudaLaunchKernel")
    tool = Tool("-p", workload.pid, "-l")
    workload.go()
    truth = workload.truth()
    same_counts(tool.finish(), truth, errors=True)
    equal([(row["launches"], row["errors"]) for row in tool.rows], [(10, 0)], "rows")
