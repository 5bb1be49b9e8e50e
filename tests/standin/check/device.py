# SPDX-License-Identifier: Apache-2.0
"""The workload with a driver that has no control functions: the stand-in poses as NVIDIA's (WORKLOAD_DEVICE)."""
import glob
import json
import shutil
import subprocess
import tempfile

from harness import Skip, build, check, environment, equal


def pose(script, truth="/dev/null"):
    return subprocess.run([build / "workload-dlopen", "--truth", truth, script], text=True, capture_output=True,
                          env=environment(WORKLOAD_DEVICE="1"))


def calls(script):
    with tempfile.NamedTemporaryFile() as truth:
        done = pose(script, truth.name)
        equal((done.returncode, done.stderr), (0, ""), script)
        lines = [json.loads(line) for line in truth]
    equal([line["driver_counts"] for line in lines if line["type"] == "process"], [None], "stand-in counters")
    return [line for line in lines if line["type"] == "call"]


@check
def one_module_per_kernel():
    count = {line["function"]: line["count"] for line in calls("launch vecadd 3; launch any 2; launch vecadd 1; reload")}
    equal((count["cuModuleLoadData"], count["cuModuleUnload"]), (2, 2), "modules")
    count = {line["function"]: line["count"] for line in calls("launch vecadd 3 handle=kernel; launch any 2 handle=kernel")}
    equal(count["cuLibraryLoadData"], 2, "libraries")


@check
def capture_status_comes_from_the_api():
    recorded = {line["kernel"]: line["recorded"] for line in calls(
        "launch before 1; capture begin; launch within 2 stream=1; launch beside 1; capture end") if line["kind"] == "kernel"}
    equal(recorded, {"before": False, "within": True, "beside": False}, "recorded")


@check
def spin_kernels_take_time():
    """Synchronizing the context or a stream waits until the kernel ends. A captured kernel does not run."""
    for wait, launches, runs in (("cuCtxSynchronize", 2, 2), ("cuStreamSynchronize", 1, 1), ("cuCtxSynchronize", 0, 0)):
        launch = f"launch spin_us_200000 {launches}" if launches else "capture begin; launch spin_us_200000 1 stream=1; capture end"
        line, = (line for line in calls(f"{launch}; sync 1 fn={wait}") if line["kind"] == "sync")
        assert 0.19 * runs < line["duration_ns"] / 1e9 and (runs or line["duration_ns"] < 1e8), (wait, line)


@check
def standin_only_steps_are_skipped():
    for script, why in (("launch vecadd 1 result=719", "only the stand-in has standin_next_result"),
                        ("launch a-b 1", "PTX cannot name a kernel a-b"),
                        ("dlopen /nowhere/libcuda.so.1", "/nowhere/libcuda.so.1")):
        done = pose(script)
        equal((done.returncode, done.stderr.startswith(f"workload: skipped: {why}")), (77, True), done.stderr)


@check
def ptx_compiles():
    ptxas = shutil.which("ptxas") or next(iter(sorted(glob.glob("/usr/local/cuda*/bin/ptxas"))), None)
    if not ptxas:
        raise Skip("no ptxas")
    for kernel in ("_Z6vecaddPKfS0_Pfi", "spin_us_1000000", "out_of_bounds", "too_many_threads"):
        text = subprocess.run([build / "workload-dlopen", "--ptx", kernel], capture_output=True, check=True).stdout
        with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([ptxas, "-arch", "sm_90", "-o", "/dev/null", file.name], capture_output=True, text=True)
        equal(done.returncode, 0, f"{kernel}: {done.stderr}")
