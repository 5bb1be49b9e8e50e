# SPDX-License-Identifier: Apache-2.0
"""nvioctl on device nodes whose driver is not loaded: it counts system calls. Results of drivers are tested in
tests/kernels, with a stub driver under other kernels."""
import os
import pathlib
import time

import harness
import system
from driver_calls import Calls, same_calls, same_files
from harness import case, check, equal, wait_until
from programs import Tool
from test_helpers import file_system, stop_at_last

at_calls = ("--attach", "tracepoint", "-r", 0)

commands = """
call RM_CONTROL 101 subject=0x20800102; call RM_CONTROL 17 subject=0x2080018e; call RM_CONTROL 2 subject=0xdead0001
call RM_ALLOC 29 subject=0x40 bytes=4096; call RM_ALLOC 3 subject=0xc46f size=32; call RM_ALLOC 5 subject=0x80 size=40
call RM_ALLOC 2 subject=0x50a0 bytes=1000000; call RM_FREE 13; call RM_MAP_MEMORY 7 bytes=65536; call RM_DUP_OBJECT 4
call RM_VID_HEAP_CONTROL 3 subject=2 bytes=70001; call RM_VID_HEAP_CONTROL 1 subject=3; call RM_ALLOC_MEMORY 2 subject=0x71 bytes=8192
call CARD_INFO 2; call CHECK_VERSION_STR; call RM_CONTROL 6 xfer=1 subject=0x2080; call RM_ALLOC 2 xfer=1 subject=0x40 bytes=1
ioctl nvidiactl 0xc01046ff 5; ioctl nvidiactl 0xc020552a 2; ioctl nvidia3 0 3; ioctl null 0xc020462a 7; ioctl pipe 0xc020462a 3
threads 4; call RM_CONTROL 53 subject=1; end; fork; call RM_FREE 3; end
"""


def traced(script, *arguments, **options):
    workload = Calls(script)
    tool = Tool(*at_calls, "-p", workload.pid, *arguments, **options)
    workload.go().wait()
    return tool.finish(), workload


def traced_system_wide(script, *arguments, **options):
    workload = Calls(script)
    tool = Tool(*at_calls, *arguments, **options)
    workload.go().wait()
    return tool.stop(), workload


@case(tool="nvioctl", asan=True, alone=True)
def every_command():
    same_calls(*traced_system_wide(commands))


@case(tool="nvioctl")
def one_process():
    """-p shows no calls of another process."""
    other = Calls(commands)
    mine = Calls("call RM_FREE 11")
    tool = Tool(*at_calls, "-p", mine.pid)
    other.go().wait()
    mine.go().wait()
    same_calls(tool.finish(), mine)


@case(tool="nvioctl")
def files():
    tool, workload = traced("open nvidia0; open nvidia0; close nvidia0; open nvidiactl; call RM_FREE; mmap nvidiactl 4096 3")
    same_files(tool, workload, failures=False)


@case(tool="nvioctl", asan=True, each={"unmapped": "arg=unmapped", "null": "arg=null", "kernel": "arg=kernel",
                                       "params": "params=unmapped", "small": "size=8", "odd": "size=33"})
def bad_structs(option):
    """Calls with unreadable structures are counted, without invented values."""
    script = f"call RM_CONTROL 7 subject=0x2080 {option}; call RM_ALLOC 5 subject=0x40 bytes=4096 {option}; call RM_FREE 3"
    tool, workload = traced(script, losses=True)
    same_calls(tool, workload)


@case(tool="nvioctl", alone=True)
def lines():
    tool, workload = traced_system_wide(commands, "-e")
    got = len([e for e in tool.events if e["command"] not in ("open", "close", "mmap")])
    equal(got, sum(row["count"] for row in workload.lines("ioctl")), "lines")
    for event in tool.events:
        if event["command"] not in ("open", "close"):
            equal((event["result"], event["result_code"]), ("EBADF", -9), f"{event}")


@case(tool="nvioctl")
def by_class():
    tool, workload = traced("call RM_CONTROL 3 subject=0x20800102; call RM_ALLOC 5 subject=0xc46f; call RM_FREE", "--by", "class")
    got = {row.get("class"): row["calls"] for row in tool.rows}
    equal({k: got[k] for k in ("NV20_SUBDEVICE_0", "TURING_CHANNEL_GPFIFO_A")},
          {"NV20_SUBDEVICE_0": 3, "TURING_CHANNEL_GPFIFO_A": 5}, "calls by class")
    equal({row["class_number"] for row in tool.rows if "class" in row}, {"0x2080", "0xc46f"}, "numbers of classes")


@case(tool="nvioctl")
def histograms():
    tool, workload = traced("call RM_CONTROL 3 subject=0x20800102; call RM_FREE 5", "-H", "latency")
    got = {row["command"]: row["total"] for row in tool.of_type("hist")}
    equal((got["RM_CONTROL GPU_GET_INFO_V2"], got["RM_FREE"]), (3, 5), "calls by command")


@case(tool="nvioctl")
def only_failures():
    tool, workload = traced("call RM_FREE 5; mmap nvidiactl 4096", "-x")
    equal({(row["command"], row["result"], row["errors"]) for row in tool.rows},
          {("RM_FREE", "EBADF", 5), ("mmap", "EBADF", 1)}, "failed calls")


@case(tool="nvioctl")
def only_slow_ones():
    tool, workload = traced("call RM_FREE 50", "-l", 10_000_000)
    equal(tool.rows, [], "rows of calls over ten seconds")


@case(tool="nvioctl", alone=True, long=True)
def calls_that_return_during_a_drain():
    """Calls that return while the tool drains its table are not reported as unfinished, nor confused with later
    ones."""
    tool, workload = traced("threads 64; call RM_FREE 4000 gap_us=100; end", "-i", 0.01)
    same_calls(tool, workload)


@case(tool="nvioctl", alone=True)
def monitors_are_left_out():
    """A monitoring process, which only queries, is excluded; one that created a channel for work is not."""
    monitor = Calls("call RM_CONTROL 31 subject=0x2080018d; call RM_ALLOC 2 subject=0x2080")
    worker = Calls("call RM_CONTROL 17 subject=0x20800102; call RM_ALLOC subject=0xc46f")
    tool = Tool(*at_calls, "--no-monitor", losses=True)
    for program in monitor, worker:
        program.go().wait()
    tool.stop()
    same_calls(tool, worker)
    equal(tool.lost["monitors_left_out"], 1, "excluded monitors")
    check(tool.lost["monitor_calls_left_out"] >= 33, f"too few excluded calls: {tool.lost}")


@case(tool="nvioctl", alone=True)
def a_monitor_with_a_file_that_hangs():
    """A monitor is not excluded if reading its open files hangs. Other monitors are excluded, and Ctrl-C works."""
    code = harness.here / "code"
    code.write_bytes(bytes(4096))
    file, server = file_system("hanging", code)
    open_file = os.open(file, os.O_RDONLY)
    one, other = (Calls("call RM_CONTROL 31 subject=0x2080018d; wait {dir}/end", keep=keep) for keep in ((open_file,), ()))
    tool = Tool("--attach", "tracepoint", "--no-monitor", "--by", "pid", 1, losses=True)
    stop_at_last(server)
    one.go()
    message = f"process {one.pid}: it cannot be read within 3 s; it is not treated as a monitor"
    wait_until(lambda: message in tool.error, "the process whose file hangs is reported")
    other.go()
    time.sleep(2.5)
    begun = time.monotonic()
    tool.stop()
    check(time.monotonic() - begun < 1.5 * harness.patience, f"exit took {time.monotonic() - begun:.1f} s after Ctrl-C")
    rows = {row["pid"]: row["calls"] for row in tool.rows if row["pid"] in (one.pid, other.pid)}
    check(list(rows) == [one.pid] and rows[one.pid] >= 31, f"unexpected calls by process: {rows}")  # also calls made at its start
    equal(tool.lost["monitors_left_out"], 1, "monitors")


@case(tool="nvioctl", alone=True)
def threads_by_name():
    tool, workload = traced_system_wide("name other; call RM_FREE 3; name driverfriend; call RM_FREE 5", "-n", "iverfrien", "--by", "command")
    equal([row["calls"] for row in tool.rows if row["command"] == "RM_FREE"], [5], "calls of threads of this name")


@case(tool="nvioctl")
def attach_is_reported():
    tool, workload = traced("call RM_FREE", "-v")
    check("tracepoints on ioctl" in tool.error, tool.error)
    equal(tool.of_type("attached")[0]["tier"], "tracepoint", "tier")


def with_kfd():
    """Preexec function: mounts a /proc/devices that also has a number for AMD's compute driver."""
    system.private_mounts()
    pathlib.Path("devices").write_text("Character devices:\n195 nvidia\n226 drm\n511 kfd\n510 nvidia-uvm\n\nBlock devices:\n")
    system.mount(os.path.abspath("devices"), "/proc/devices", None, system.MS_BIND)


@case(tool="nvioctl")
def both_vendors():
    """Calls of NVIDIA's and AMD's drivers, by one process and by two, with the tool started under its other name,
    gpuioctl."""
    of_nvidia, of_amd = "call RM_FREE 13; call RM_CONTROL 5 subject=0x20800102", (
        "call GET_VERSION 3; call ALLOC_MEMORY_OF_GPU 7 bytes=8192; call WAIT_EVENTS 11; call CREATE_QUEUE 2; call FREE_MEMORY_OF_GPU 4")
    workloads = [Calls(script, preexec=with_kfd) for script in (of_nvidia, of_amd, f"{of_nvidia}; {of_amd}; call UVM_FREE 9")]
    harness.binary = harness.build / "gpuioctl"
    tools = [Tool(*at_calls, "-p", workload.pid, preexec=with_kfd) for workload in workloads]
    for workload in workloads:
        workload.go().wait()
    for tool, workload in zip(tools, workloads):
        same_calls(tool.finish(), workload)
        equal(tool.records[0]["tool"], "nvioctl", "tool in JSON")
    named = {row["command"]: row["calls"] for row in tools[1].rows if row["command"] not in ("open", "close")}
    equal(named, {"GET_VERSION": 3, "ALLOC_MEMORY_OF_GPU": 7, "WAIT_EVENTS": 11, "CREATE_QUEUE": 2, "FREE_MEMORY_OF_GPU": 4}, "names")


@case(tool="nvioctl")
def no_driver():
    """Without a driver, the tool reports that it has nothing to trace, which is not an error."""
    if any("nvidia" in line for line in open("/proc/devices")):
        raise harness.Skip("a GPU driver is loaded")
    tool = Tool("-v", attaches=False)
    check("no GPU driver is loaded" in tool.error, tool.error)
    tool.stop()
    equal((tool.rows, tool.of_type("attached")[0]["tier"]), ([], "none"), "rows and tier")


@case(tool="nvioctl")
def tegra():
    """Jetson's GPU driver (nvgpu) is distinguished from no driver, and from Tegra's display driver."""
    modules = harness.here / "modules"
    (modules / "nvgpu").mkdir(parents=True)

    def on_jetson():
        system.private_mounts()
        system.bind(modules, "/sys/module")

    tool = Tool(attaches=False, preexec=on_jetson)
    check("this machine's GPU uses Tegra's driver (nvgpu), whose calls cannot be traced" in tool.error, tool.error)
    tool.stop()
    other = Tool(attaches=False)
    check("Tegra" not in other.error, other.error)
    other.stop()


@case(tool="nvioctl")
def no_xids():
    """Without the driver, neither the tracepoint nor the function for Xids exists."""
    if any("nvidia" in line for line in open("/proc/devices")):
        raise harness.Skip("a GPU driver is loaded")
    tool = Tool("--xid", banner=False, attaches=False)
    tool.finish(code=1)
    check("neither the tracepoint nvidia:nvidia_dev_xid" in tool.error, tool.error)
