# SPDX-License-Identifier: Apache-2.0
"""Programs that start, or map their library, after the tool has started."""
import os
import pathlib
import shutil

import harness
import tops
from harness import case, check, equal, wait_until
from programs import Tool, Workload, use_realtime_priority
from test_hostile_files import copy_of_driver, newest
from truth import opening, same_counts

forms = ("workload", "workload13", "workload-nopie", "workload-static", "workload-static-stripped", "workload-driver")


@case(each={"driver": "driver", "both": "both"}, alone=True)
def tool_first(api):
    """A program is counted from its first launch if 100 ms pass between mapping the library and using it."""
    tool = Tool("--by", "pid,kernel", "--api", api, preexec=use_realtime_priority)
    workloads = [Workload("launch scale 1; sleep 100; launch vecadd 1009; launch saxpy 503", form, warm=False)
                 for form in forms]
    workloads.append(Workload("dlopen; sleep 100; launch vecadd 257", "workload-dlopen", warm=False))
    truth = [workload.truth() for workload in workloads]
    tool.stop()
    for form, calls in zip(forms + ("workload-dlopen",), truth):
        layer = "driver" if form == "workload-static-stripped" else api
        same_counts(tool, calls, by=("pid", "kernel"), api=layer, ignore=opening)


@case(alone=True)
def short_lives():
    """Once a library is probed, processes that exist for milliseconds are counted completely."""
    known = Workload("sleep 1")
    tool = Tool("--by", "pid,kernel")
    workloads = [Workload(f"launch vecadd {10 + i}; launch saxpy 3", warm=False) for i in range(20)]
    truth = [call for workload in workloads for call in workload.truth()]
    known.go().wait()
    same_counts(tool.stop(), truth, by=("pid", "kernel"))
    rows = [row for row in tool.rows if row["pid"] in {call["pid"] for call in truth}]
    equal({row.get("comm") for row in rows}, {"workload"}, "names of processes that have exited")


@case(each={"offline_at_start": True, "offline_meanwhile": False}, alone=True)
def cpu_comes_online(at_start):
    """A driver that is first mapped on a CPU that was offline is probed, and its calls are counted exactly."""
    cpu = max(os.sched_getaffinity(0))
    switch = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/online")
    if cpu == 0 or not os.access(switch, os.W_OK):
        raise harness.Skip("no CPU here can be taken offline")
    harness.at_end.append(lambda: switch.write_text("1"))
    if at_start:
        switch.write_text("0")
    tool = Tool("--by", "pid,kernel", losses=True)
    if not at_start:
        switch.write_text("0")
    switch.write_text("1")
    wait_until(lambda: f"CPU {cpu} came online: watching it from now on" in tool.error, "the message")
    files = newest(tool)["files"]
    workload = Workload("launch vecadd 1009", "workload-driver", env=copy_of_driver("own"),
                        preexec=lambda: os.sched_setaffinity(0, {cpu}))
    wait_until(lambda: newest(tool)["files"] > files, "the driver is probed")
    calls = workload.go().truth()
    same_counts(tool.stop(), calls, by=("pid", "kernel"), ignore=opening)


@case(alone=True)
def a_process_that_has_no_library_yet():
    """-p of a process that maps no CUDA library: the tool reports that it waits, and attaches soon after the
    mapping (50 ms on an idle machine)."""
    workload = Workload("touch {up}; wait {go}; dlopen; touch {dir}/mapped; wait {dir}/on; launch vecadd 1009",
                        "workload-dlopen", warm=False).ready()
    tool = Tool("-p", workload.pid, preexec=use_realtime_priority)
    check("waiting" in tool.error and "has loaded no CUDA or HIP driver" in tool.error, f"no message that it waits: {tool.error}")
    workload.go()
    wait_until(lambda: f"process {workload.pid} maps" in tool.error, "the message that the process maps a driver")
    reported_ns = tool.error_file.stat().st_mtime_ns
    (harness.here / "on").touch()
    truth = workload.truth()
    same_counts(tool.finish(), truth)
    late_ms = (reported_ns - (harness.here / "mapped").stat().st_mtime_ns) / 1e6
    check(late_ms <= 500, f"attached {late_ms:.0f} ms after the library was mapped")


@case(alone=True)
def a_library_in_ld_library_path():
    """A library that LD_LIBRARY_PATH leads to is probed before a process maps it: no launch is missed."""
    folder = harness.here / "lib"
    folder.mkdir()
    shutil.copy(harness.standin / "libcuda.so.1", folder / "libcuda.so.1")
    library_path = {"LD_LIBRARY_PATH": f"/nonexistent:relative:{folder}"}
    workload = Workload("touch {up}; wait {go}; launch vecadd 1009", "workload-dlopen", warm=False, env=library_path).ready()
    other = Workload("touch {up}; wait {go}; launch vecadd 503", "workload-dlopen", warm=False, env=library_path).ready()
    tool = Tool("-p", workload.pid)
    everywhere = Tool("--by", "pid,kernel", env=library_path)
    for each in tool, everywhere:
        check(each.of_type("attached")[0]["files"] >= 1, f"{each} did not probe the library before it was mapped")
    for each in workload, other:
        each.go()
    truth = workload.truth()
    same_counts(tool.finish(), truth)
    same_counts(everywhere.stop(), truth + other.truth(), by=("pid", "kernel"))


@case(alone=True)
def many_at_once():
    """40 processes map the library at the same time."""
    tool = Tool("--by", "pid,kernel")
    workloads = [Workload(f"dlopen; touch {{up}}; wait {harness.here}/all; sleep 60; launch vecadd {100 + i}", "workload-dlopen",
                          warm=False) for i in range(40)]
    for workload in workloads:
        workload.ready()
    (harness.here / "all").touch()
    truth = [call for workload in workloads for call in workload.truth()]
    same_counts(tool.stop(), truth, by=("pid", "kernel"))


@tops.case(each={"default": [], "latency": ["-l"]}, alone=True)
def right_after_the_banner(mode):
    """A library that is mapped while the tool measures the cost of its probes is probed without delay."""
    workloads = [Workload("touch {up}; wait {go}; dlopen; sleep 150; launch vecadd 101; copy 7 fn=cuMemcpyHtoD_v2",
                          "workload-dlopen", warm=False).ready() for _ in range(3)]
    tool = tops.Tool(0.3, *mode, preexec=use_realtime_priority)
    for workload in workloads:
        workload.go()
    truth = [call for workload in workloads for call in workload.truth()]
    wait_until(lambda: any("probes_cpu_percent" in row for row in tool.rows), "the probe cost is known")
    tool.stop()
    tops.same(tool, truth, mode=mode)
