# SPDX-License-Identifier: Apache-2.0
"""cudatop: the GPU of a process, from NVML's lists and from its open device files; and processes that share a GPU."""
import os
import stat

import harness
from harness import check, equal
from programs import Workload
from test_alloc_nvml import Nvml, mib
from test_helpers import file_system, stop_at_last
from test_top_screen import Screen
from tops import Tool, case, rows


def on_gpu(*minors, script="launch vecadd 1; sleep 100"):
    """A workload that has the device files of these GPUs open, with O_PATH, so that no driver is called."""
    files = []
    for minor in minors:
        path = harness.here / f"nvidia{minor}"
        if not path.exists():
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(195, minor))
        files.append(os.open(path, os.O_PATH))
    workload = Workload(f"forever; {script}; end", keep=files)
    for file in files:
        os.close(file)
    return workload


def run(tools, *workloads):
    for workload in workloads:
        workload.go()
    for tool in tools:
        tool.finish()


def values(tool, keys, by):
    return {tuple(row.get(key) for key in keys) for row in rows(tool, by)}


@case
def without_nvml():
    """If a process has one device file open, it uses that GPU, and shares it with other such processes. If it has
    several open, its GPU is unknown."""
    quiet, hog = on_gpu(200), on_gpu(200, script="launch vecadd 100; sleep 10")
    other = on_gpu(200, 201)
    processes = ["-p", ",".join(str(workload.pid) for workload in (quiet, hog, other))]
    both = [Tool(*processes, "--nvml", "off", "-i", "1", "-d", "2.5", *by) for by in ([], ["--by", "device"])]
    run(both, quiet, hog, other)
    by_pid, by_device = both
    equal(values(by_pid, ("pid", "gpu", "gpu_source"), "pid"),
          {(quiet.pid, "nvidia200", "files"), (hog.pid, "nvidia200", "files"), (other.pid, None, None)}, "GPUs")
    equal({row["gpu_possible"] for row in rows(by_pid, "pid") if row["pid"] == other.pid}, {"nvidia200,201"}, "possible GPUs")
    equal({row.get("gpu") for row in rows(by_device, "device")}, {"nvidia200", None}, "rows of GPUs")
    equal({row["processes"] for row in rows(by_device, "device") if row.get("gpu") == "nvidia200"}, {2}, "processes on the GPU")
    words = {row["diagnosis"] for row in by_pid.rows if row["by"] == "diagnosis" and row["rule"] == "shares"}
    check(any(text.startswith(f"shares GPU nvidia200 with workload ({hog.pid}") for text in words), f"{words}")


@case(asan=True)
def with_nvml():
    """A row for each GPU, by index and with its own figures, including a GPU without processes."""
    listed, by_file = on_gpu(), on_gpu(7)
    nvml = Nvml("device 0", "minor 7", f"memory {80 * mib} {30 * mib} 0", "power 70000",
                "device 1", f"memory {80 * mib} {20 * mib} 0", "utilization 71", f"process {listed.pid} {5 * mib}",
                "device 2", f"memory {80 * mib} {mib} 0", "utilization 0")
    processes = ["-p", f"{listed.pid},{by_file.pid}", "-i", "1", "-d", "2.5"]
    by_pid, by_device = nvml.tool(*processes), nvml.tool(*processes, "--by", "device")
    run([by_pid, by_device], listed, by_file)
    equal(values(by_pid, ("pid", "gpu", "gpu_source"), "pid"), {(listed.pid, "1", "nvml"), (by_file.pid, "0", "files")}, "GPUs")
    equal(values(by_device, ("gpu", "memory_bytes", "gpu_percent", "gpu_watts", "processes"), "device"),
          {("0", 30 * mib, None, 70, 1), ("1", 20 * mib, 71, None, 1), ("2", mib, 0, None, 0)}, "rows of GPUs")
    launches = {gpu: sum(row["launches"] for row in rows(by_device, "device") if row["gpu"] == gpu) for gpu in "012"}
    check(launches["0"] and launches["1"] and not launches["2"], f"unexpected launches: {launches}")
    equal(values(by_pid, ("gpu_index", "gpu_users"), "gpu"), {(0, "workload"), (1, "workload"), (2, None)}, "processes on each GPU")


@case
def a_device_file_that_hangs():
    """A file named like a GPU's, on a file system whose server is stopped: reports continue."""
    (harness.here / "nvidia0").touch()
    path, server = file_system("hanging", harness.here / "nvidia0")
    file = os.open(path, os.O_RDONLY)
    workload = Workload("forever; launch vecadd 1; sleep 50; end", keep=[file])
    os.close(file)
    stop_at_last(server)
    tool = Tool("-p", workload.pid, "--nvml", "off", "-i", "0.2", "-d", "1.5")
    run([tool], workload)
    check(len(rows(tool, "pid")) > 4, f"too few reports: {rows(tool, 'pid')}")
    equal(values(tool, ("gpu", "gpu_possible"), "pid"), {(None, None)}, "GPU of the process")


@case
def processes_on_a_gpu():
    """Enter on the row of a GPU lists its processes; Esc returns."""
    here, there = on_gpu(200, script="launch vecadd 1; sleep 20"), on_gpu(201, script="launch vecadd 1; sleep 20")
    with Screen("-p", f"{here.pid},{there.pid}", "--by", "device", "-s", "DEVICE", interval=0.2, by="device") as screen:
        here.go(), there.go()
        screen.wait_for(lambda text: "nvidia200" in text and "nvidia201" in text, "both GPUs")
        screen.keys("Home", "Enter")
        screen.wait_for("by pid in device nvidia200")
        screen.wait_for(lambda _: screen.column("PID") == [str(here.pid)], "processes on the GPU")
        screen.keys("Escape")
        screen.wait_for("by device")
        screen.wait_for("nvidia201")
        screen.quit()
    here.stop(), there.stop()
