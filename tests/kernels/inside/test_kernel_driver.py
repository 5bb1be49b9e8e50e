# SPDX-License-Identifier: Apache-2.0
"""Hooks into a GPU driver (kprobe, fentry, tracepoint, ...): each must see the calls that were made."""
import json
import os
import pathlib
import subprocess
from collections import Counter

import harness
from harness import Skip, case, check, equal, wait_until

stubs = pathlib.Path(os.environ.get("GPUSNOOP_STUBS", "/nonexistent"))
versions = ("535.129.03", "550.54.15", "575.51.02")

script = """
call RM_CONTROL 101 subject=0x20800102; call RM_CONTROL 17 subject=0x2080018e status=0x56; call RM_ALLOC 29 subject=0x40 bytes=4096
call RM_FREE 13 errno=22; call RM_CONTROL 3 arg=unmapped; call RM_MAP_MEMORY 7 device=nvidia0 bytes=65536; ioctl nvidiactl 0xc01046ff 5
ioctl nvidiactl 0xc020582a 2; threads 4; call RM_CONTROL 53 subject=1; end; call RM_CONTROL 2 xfer=1
killed 500; call RM_CONTROL delay_us=60000000; end; call UVM_INITIALIZE; call UVM_MIGRATE 11 bytes=4096; ioctl pipe 0x5413 3
xid 79 2 xid_pid=77 xid_name=trainer; call RM_CONTROL 3 xid=31
"""

busybox = "/run/guest/busybox"  # the root file system may lack insmod and rmmod
front = ("nvidiactl", "nvidia0")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    equal((done.returncode, done.stderr), (0, ""), " ".join(map(str, command)))
    return done.stdout


def load(version):
    if reason := os.environ.get("GPUSNOOP_NO_STUB"):
        raise Skip(reason)
    run(busybox, "insmod", stubs / version / "nvidia.ko")
    harness.at_end.append(lambda: run(busybox, "rmmod", "nvidia"))


def ioctl_function(version):
    return "nvidia_frontend_unlocked_ioctl" if version.startswith("535") else "nvidia_unlocked_ioctl"


def calls(text):
    """(lines of the truth file, expected counts of a probe on the ioctl function)."""
    rows = [json.loads(line) for line in text.splitlines()]
    mine = [row for row in rows if row["type"] == "ioctl" and row["device"] in front]
    return rows, Counter(count=sum(row["count"] for row in mine),
                         sum=sum(row["count"] * int(row["request"], 16) for row in mine),
                         failed=sum(row["count"] for row in mine if row["errno"]))


@case(each={version: version for version in versions}, timeout=60)
def every_way(version):
    load(version)
    error = harness.here / "paths.err"
    with open(error, "w") as stderr:
        paths = subprocess.Popen([harness.build / "kernels-bin/paths", ioctl_function(version)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=stderr, text=True)
    harness.at_end.append(paths.kill)
    wait_until(lambda: "attached" in error.read_text() or paths.poll() is not None, "the probes are attached")
    truth_file = harness.here / "truth"
    run(harness.standin / "ioctls", "--truth", truth_file, script)
    found = {row.pop("path"): row for row in map(json.loads, paths.communicate("")[0].splitlines())}
    equal(paths.returncode, 0, f"exit status ({error.read_text()})")
    rows, want = calls(truth_file.read_text())
    types = os.path.exists("/sys/kernel/btf/nvidia")
    xids = [row for row in rows if row["type"] == "xid"]
    errors = {"count": sum(row["count"] for row in xids), "sum": sum(row["count"] * row["xid"] for row in xids), "failed": 0}
    entry, leave = {"count": want["count"], "sum": want["sum"], "failed": 0}, dict(want)
    expected = {"kprobe": entry, "kretprobe": leave | {"sum": 0}, "xid_kprobe": errors}
    if types:
        expected |= {"fentry": entry, "fexit": leave}
    if version.startswith("575"):
        expected["xid_tracepoint"] = errors
    equal(found, expected, f"counts by hook, with {version}")
    equal(types, version.startswith("575") and os.environ["GPUSNOOP_TIER"] != "tracefs", "the module has BTF")


@case
def files_of_the_driver():
    """The stub provides the files and symbols by which tools detect a driver."""
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
