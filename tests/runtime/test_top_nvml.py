# SPDX-License-Identifier: Apache-2.0
"""cudatop and NVML: the GPU's own counters are shown next to traced values, and are missing if NVML is unavailable."""
import contextlib
import os
import signal
import time
from pathlib import Path

import harness
from containers import Cgroup, HostRoot, Name, kubepods
from harness import check, equal, wait_until
from programs import Tool
from test_alloc_nvml import Nvml, end, holder, mib
from test_helpers import helpers
from tops import case, rows

keys = ("nvml_bytes", "sm_percent", "gpu_percent", "gpu_watts", "mig_instance")
gpu_keys = ("gpu_index", "gpu_name", "gpu_percent", "gpu_used_bytes", "gpu_total_bytes", "gpu_watts")


@case(asan=True)
def figures_of_processes_and_devices():
    """The values are exactly NVML's. A sample counts in the interval in which it was taken, so each report needs a
    newer sample."""
    workload = holder()

    def update(seconds):
        nvml.answer("device 0", "name Card", "utilization 71", "power 250000", f"memory {80 * mib} {30 * mib} 0",
                 f"process {workload.pid} {25 * mib} gi=7 ci=0", f"sample {workload.pid} {seconds * 10**6} 42",
                 "device 1", "utilization 3")
    nvml = Nvml("device 0")
    update(1)
    tool = nvml.tool("-p", workload.pid, "-i", "0.2")
    workload.go()
    times = iter(range(2, 100000))

    def found():
        update(next(times))
        figures = [tuple(row.get(key) for key in keys) for row in rows(tool, "pid")]
        return (25 * mib, 42, 71, 250, "gi 7 ci 0") in figures
    wait_until(found, "all figures of the process")
    end(workload)
    tool.finish()
    gpus = {tuple(row.get(key) for key in gpu_keys) for row in rows(tool, "gpu")}
    equal(gpus, {(0, "Card", 71, 30 * mib, 80 * mib, 250), (1, None, 3, None, None, None)}, "devices")


@case
def nvml_off():
    """JSON has neither NVML's keys nor rows of GPUs; text has n/a in requested columns."""
    workload = holder()
    tools = [Tool("-p", workload.pid, "--nvml", "off", "--columns", "+SM%,+POWER", json=json)
             for json in (True, False)]
    workload.go()
    end(workload)
    for tool in tools:
        tool.finish()
    equal([row for row in tools[0].rows if row["by"] == "gpu" or set(keys) & set(row)], [], "figures")
    head, row = [line for line in tools[1].text.splitlines() if line][-2:]
    equal((head.split()[-2:], row.split()[-2:]), (["SM%", "POWER"], ["n/a", "n/a"]), tools[1].text)


@case
def nvml_hangs():
    """NVML hangs, as on a failing GPU: reports continue without its figures until it answers again; Ctrl-C ends the
    tool."""
    workload = holder()
    answers = ["device 0", "name Card", f"process {workload.pid} {25 * mib}"]
    nvml = Nvml(*answers)
    tool = nvml.tool("-p", workload.pid, "-i", "0.2")
    workload.go()
    has_figure = lambda: rows(tool, "pid") and "nvml_bytes" in rows(tool, "pid")[-1]
    wait_until(has_figure, "NVML's figure of the process")
    nvml.answer("hang")
    wait_until(lambda: "NVML does not answer" in tool.error, "the warning that NVML does not answer")
    wait_until(lambda: not has_figure(), "rows without the figure")
    before = len(rows(tool, "pid"))
    wait_until(lambda: len(rows(tool, "pid")) > before + 5, "further reports")
    nvml.answer(*answers)
    wait_until(has_figure, "the figure returns")
    nvml.answer("hang")
    wait_until(lambda: not has_figure(), "rows without the figure")
    begun = time.monotonic()
    end(workload)
    tool.finish()
    check(time.monotonic() - begun < 10 * harness.patience, "the tool exited too late")


def nvml_helper(tool):
    """The tool's child that has loaded the library, or None."""
    for pid in helpers(tool):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if "libnvidia-ml" in Path(f"/proc/{pid}/maps").read_text():
                return pid
    return None


@case
def nvml_helper_is_killed():
    """The helper is killed, as by the kernel when memory is short. It is restarted within a second; after the third
    death in a row, only once a minute. Reports continue."""
    workload = holder()
    tool = Nvml("device 0", "name Card", f"process {workload.pid} {25 * mib}").tool("-p", workload.pid, "-i", "0.2")
    workload.go()
    has_figure = lambda: rows(tool, "pid") and "nvml_bytes" in rows(tool, "pid")[-1]
    wait_until(has_figure, "NVML's figure of the process")
    time.sleep(1)  # so that the first helper is replaced immediately after it is killed
    for turn in range(2):
        killed = nvml_helper(tool)
        begun, before = time.monotonic(), len(rows(tool, "pid"))
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: nvml_helper(tool) not in (killed, None), "another helper")
        wait_until(lambda: len(rows(tool, "pid")) > before + 2 and has_figure(), "the figure returns")
        check(time.monotonic() - begun < 4 * harness.patience, f"{time.monotonic() - begun:.1f} s until the figure returned")
        check(not os.path.exists(f"/proc/{killed}"), "the killed helper was not reaped")
    messages = [line for line in tool.error.splitlines() if "NVML" in line]
    died = "cudatop: the NVML helper has died; NVML figures are missing until a new helper answers"
    equal(messages, [died] * 2, "messages")
    os.kill(nvml_helper(tool), signal.SIGKILL)
    wait_until(lambda: not has_figure(), "rows without the figure")
    before = len(rows(tool, "pid"))
    wait_until(lambda: len(rows(tool, "pid")) > before + 15, "further reports")
    equal(nvml_helper(tool), None, "helper after the third death")
    messages = [line for line in tool.error.splitlines() if "NVML" in line]
    equal(messages, [died] * 2 + ["cudatop: the NVML helper has died 3 times in a row: it is now restarted once a minute, and "
                              "NVML figures are missing in between; check dmesg for the cause (out of memory, a crash "
                              "of the library), or disable NVML with --nvml off"], "messages")
    end(workload)
    tool.finish()


@case
def nvml_hangs_from_the_start():
    workload = holder()
    tool = Nvml("hang").tool("-p", workload.pid, "-i", "0.2")
    check("NVML does not answer" in tool.error, tool.error)
    workload.go()
    wait_until(lambda: len(rows(tool, "pid")) > 3, "reports")
    end(workload)
    tool.finish()


def assign_gpus(host, name, *uuids):
    """Writes the kubelet's record of the GPUs of a container."""
    host.write("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", {"Data": {
        "PodDeviceEntries": [{"PodUID": name.pod_uid, "ContainerName": name.container, "ResourceName": "nvidia.com/gpu",
                              "DeviceIDs": {"-1": list(uuids)}}], "RegisteredDevices": None}})


@case(alone=True)
def kubelet_starts_later():
    """A pod's GPUs are shown once the kubelet's file exists, even if it did not when the tool started."""
    host, name = HostRoot(), Name()
    host.containerd(name)
    workload = holder(preexec=Cgroup("v2", kubepods(name)).join)
    tool = Nvml("device 0", "uuid GPU-0", "device 1", "uuid GPU-1").tool("-p", workload.pid, "--by", "pod", "-i", "0.5", "--host-root", host.path,
                                                                         preexec=host.enter)
    workload.go()
    wait_until(lambda: len(rows(tool, "pod")) > 2, "reports")
    before = rows(tool, "pod")
    equal([row for row in before if "held_gpus" in row], [], "held GPUs, which are unknown")
    assign_gpus(host, name, "GPU-1")
    wait_until(lambda: rows(tool, "pod")[-1].get("held_gpus") == "1", "held GPUs")
    end(workload)
    tool.finish()


@case(alone=True)
def gpus_of_a_pod():
    """A pod's row lists all GPUs assigned to the pod, including unused ones, and has the total utilization of the GPU
    in use."""
    host, name = HostRoot(), Name()
    assign_gpus(host.containerd(name), name, "GPU-1", "GPU-2")
    workload = holder(preexec=Cgroup("v2", kubepods(name)).join)
    nvml = Nvml("device 0", "uuid GPU-0", "device 1", "uuid GPU-1", "gpm 2 60", "gpm 5 12.5", "gpm 10 101",
                f"process {workload.pid} {25 * mib}", "device 2", "uuid GPU-2")
    tool = nvml.tool("-p", workload.pid, "--by", "pod", "-i", "0.5", "--host-root", host.path, preexec=host.enter)
    workload.go()
    new = ("held_gpus", "gpu_sm_active_percent", "gpu_tensor_active_percent", "gpu_dram_active_percent")
    wait_until(lambda: ("1,2", 60, 12.5, None) in [tuple(row.get(key) for key in new) for row in rows(tool, "pod")], "held GPUs and utilization")
    end(workload)
    tool.finish()
