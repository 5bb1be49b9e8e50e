# SPDX-License-Identifier: Apache-2.0
"""nvioctl with the stub of the driver: counts are exact for each way to hook the driver and each driver generation."""
import os
import pathlib
import re
import subprocess
import sys

import harness
import test_budget
from driver_calls import Calls, same_calls, same_files
from harness import Skip, case, check, equal, wait_until
from programs import Tool

stubs = pathlib.Path(os.environ.get("GPUSNOOP_STUBS", "/nonexistent"))
busybox = "/run/guest/busybox"  # the root file system may lack insmod and rmmod


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    equal((done.returncode, done.stderr), (0, ""), " ".join(map(str, command)))
    return done.stdout


def load(version):
    if reason := os.environ.get("GPUSNOOP_NO_STUB"):
        raise Skip(reason)
    run(busybox, "insmod", stubs / version / "nvidia.ko")
    harness.at_end.append(lambda: run(busybox, "rmmod", "nvidia"))


has_types = os.environ.get("GPUSNOOP_TIER") != "tracefs"  # the stub of driver 575 has BTF then

# {driver version: ways to hook the driver, best first}. A case takes 15 s, so each difference is covered only once: 535
# has other entry functions; 575 has a tracepoint for errors, and BTF for fentry. System call tracepoints work with any
# driver, and are tested with 575.
ways = {"535.129.03": ("kprobe",), "575.51.02": ("fentry", "kprobe", "tracepoint") if has_types else ("kprobe", "tracepoint")}
each_way = {f"{version}-{way}": (version, way) for version, some in ways.items() for way in some}

script = """
call RM_CONTROL 101 subject=0x20800102; call RM_CONTROL 17 subject=0x2080018e status=0x56; call RM_CONTROL 2 subject=0xdead0001
call RM_CONTROL 5 subject=0x20801303 status=0x10006
call RM_ALLOC 29 subject=0x40 bytes=4096; call RM_ALLOC 3 subject=0xc46f size=32 status=0x1a; call RM_ALLOC 5 subject=0x80
call RM_ALLOC 2 subject=0x50a0 bytes=1000000; call RM_FREE 13 errno=22; call RM_FREE 4; call RM_MAP_MEMORY 7 bytes=65536
call RM_VID_HEAP_CONTROL 3 subject=2 bytes=70001 status=0x51; call RM_VID_HEAP_CONTROL subject=14 bytes=7
call RM_ALLOC_MEMORY 2 subject=0x71 bytes=8192; call CARD_INFO 2; call CHECK_VERSION_STR; call RM_DUP_OBJECT 4 status=0x1f
call RM_CONTROL 6 xfer=1 subject=0x20800000 status=0x57; call RM_ALLOC 2 xfer=1 subject=0x40 bytes=1
call RM_CONTROL 7 subject=1 arg=unmapped; call RM_CONTROL 3 subject=0x2080 size=8; call RM_ALLOC 2 subject=0x40 params=unmapped bytes=4096
call RM_CONTROL 3 subject=0x20800102 arg=cold
ioctl nvidiactl 0xc01046ff 5; ioctl nvidiactl 0xc020552a 2; ioctl nvidia0 0 3; ioctl null 0xc020462a 7; ioctl pipe 0xc020462a 3
call UVM_INITIALIZE; call UVM_MIGRATE 11 bytes=4096; call UVM_CREATE_EXTERNAL_RANGE 3 bytes=2097152 status=0x1f
ioctl nvidia-uvm 0x7ff3 2; call UVM_TOOLS_FLUSH_EVENTS 2
threads 4; call RM_CONTROL 53 subject=0x20801303; end; fork; call RM_FREE 3; end
killed 500; call RM_CONTROL subject=0x20800a01 delay_us=60000000; end
open nvidia0; open nvidia0; close nvidia0; mmap nvidiactl 4096 3
"""


@case(tool="nvioctl", each=each_way, timeout=180)
def every_call(version_and_way):
    version, way = version_and_way
    load(version)
    workload = Calls(script)
    tool = Tool("--attach", way, "-r", 0, "-v", losses=True)
    equal({record["tier"] for record in tool.of_type("attached")}, {way}, "way of hooking")
    workload.go().wait(seconds=60)
    tool.stop()
    same_calls(tool, workload)
    same_files(tool, workload, kinds=("open", "mmap"), failures=way != "tracepoint")


@case(tool="nvioctl", each={version: version for version in ways}, timeout=120)
def chooses_the_best_way(version):
    load(version)
    workload = Calls("call RM_FREE 3; call UVM_INITIALIZE 2")
    tool = Tool("-p", workload.pid)
    equal({record["tier"] for record in tool.of_type("attached")}, {ways[version][0]}, "way of hooking")
    workload.go().wait()
    tool.finish()
    same_calls(tool, workload)


@case(tool="nvioctl", timeout=120)
def hanging_call():
    """A pending call is shown by name."""
    load("575.51.02")
    workload = Calls("call RM_CONTROL subject=0x20800a01 delay_us=60000000")
    tool = Tool("-p", workload.pid, 1)
    workload.go()
    row = wait_until(lambda: next((row for row in tool.rows if row["pending"]), None), "a call that hangs")
    equal((row["pending"], row["calls"], row["subject"]), (1, 0, "0x20800a01"), f"{row}")
    check(row["pending_max_ns"] > 0, f"{row}")
    workload.process.kill()
    tool.finish()


@case(tool="nvioctl", timeout=120)
def slow_and_failed_calls():
    load("575.51.02")
    steps = "call RM_CONTROL 5 subject=0x20800102; call RM_CONTROL 2 subject=0x20801303 delay_us=300000; call RM_FREE 3 status=0x57"
    workload = Calls(steps)
    slow, failed = Tool("-p", workload.pid, "-e", "-l", 250_000), Tool("-p", workload.pid, "-x")
    workload.go().wait()
    slow.finish()
    failed.finish()
    equal({(e["command"], e["result"]) for e in slow.events}, {("RM_CONTROL FB_GET_INFO_V2", "ok")}, "slow calls")
    equal(len(slow.events), 2, "slow calls")
    equal([(row["command"], row["result"], row["result_code"], row["errors"]) for row in failed.rows],
          [("RM_FREE", "OBJECT_NOT_FOUND", 0x57, 3)], "failed calls")


@case(tool="nvioctl", each={version: version for version in ways}, timeout=120)
def xids(version):
    """nvioctl --xid lists the last calls of the process that the kernel log names, and no calls if it names none."""
    load(version)
    workload = Calls("call RM_CONTROL 3 subject=0x20800102; call RM_FREE status=0x57 xid=31 xid_pid=self; sleep 1500; xid 79")
    tool = Tool("--xid", "-v")
    how = "tracepoint nvidia:nvidia_dev_xid" if version.startswith("575") else "kprobe nv_report_error"
    check(f"Xid reports: {how}" in tool.error, tool.error)
    workload.go().wait()
    events = wait_until(lambda: tool.events if len(tool.events) == 2 else None, "two Xids", 20)
    tool.stop()
    first, second = events
    equal((first["xid"], first.get("pid"), first["gpu"]), (31, workload.pid, "0000:00:02.0"), f"{first}")
    check(first["name"] and first["meaning"], f"{first}")
    equal(sum("GPU_GET_INFO_V2" in line for line in first["last_calls"]), 3, f"{first['last_calls']}")
    equal((second["xid"], "last_calls" in second), (79, False), f"{second}")


@case(tool="nvioctl", timeout=120)
def driver_loaded_later():
    tool = Tool()
    check("no GPU driver is loaded" in tool.error, tool.error)
    load("575.51.02")
    wait_until(lambda: "a GPU driver has been loaded" in tool.error, "the driver is noticed")
    workload = Calls("call RM_FREE 3; call UVM_INITIALIZE 2")
    workload.go().wait()
    tool.stop()
    same_calls(tool, workload)


@case(tool="nvioctl", each={way: way for way in ways["575.51.02"] if way != "tracepoint"}, timeout=180)
def budget(way):
    """Verified instructions of programs that hook the driver's functions."""
    load("575.51.02")
    test_budget.held(way=way)


@case
def files_of_the_driver():
    """The stub provides the files, symbols and messages by which tools detect a driver."""
    load("575.51.02")
    devices = pathlib.Path("/proc/devices").read_text()
    for name in "195 nvidia\n", "195 nvidiactl\n", "195 nvidia-modeset\n", "nvidia-uvm\n", "nvidia-caps\n":
        check(name in devices, f"no {name!r} in /proc/devices")
    equal(pathlib.Path("/sys/module/nvidia/version").read_text(), "575.51.02\n", "version")
    symbols = pathlib.Path("/proc/kallsyms").read_text()
    for name in ("nvidia_unlocked_ioctl", "nvidia_open", "nvidia_close", "nvidia_mmap", "nv_report_error",
                 "uvm_unlocked_ioctl_entry", "uvm_tools_unlocked_ioctl_entry", "nvkms_unlocked_ioctl"):
        check(f" {name}\t[nvidia]" in symbols, name)
    run(harness.standin / "ioctls", "xid 31 xid_pid=1234 xid_name=foo xid_text=text; call RM_FREE xid=13")
    log = [line.split("NVRM: ")[1] for line in run(busybox, "dmesg").splitlines() if "NVRM: " in line][-2:]
    equal(log, ["Xid (PCI:0000:00:02): 31, pid=1234, name=foo, text", "Xid (PCI:0000:00:02): 13, stand-in"], "kernel log")


@case(tool="nvioctl", timeout=120)
def finding_of_tests_gpu():
    """The finding "xid" of tests/gpu, which needs kprobes and modules. tests/gpu/rehearse covers the other findings."""
    gpu = harness.root / "tests/gpu"
    sys.path.append(str(gpu))
    import findings
    load("575.51.02")
    build = harness.here / "build"
    subprocess.run([gpu / "rehearsal/pose", build / "standin", harness.standin], check=True)
    (build / "standin/libcuda.so.1").symlink_to(harness.standin / "libcuda.so.1")
    (build / "nvioctl").symlink_to(harness.build / "nvioctl")
    (what, value), = findings.xid(findings.Given(build, None, None, None))
    calls = re.fullmatch(r"31 [^,]+, (\d+) calls before it", value)
    check(calls and int(calls[1]) >= 4, f"{what}: {value}")
