# SPDX-License-Identifier: Apache-2.0
"""The tools on a kernel locked down in confidentiality mode: CUDA calls are counted exactly. These cases run last,
because the lockdown cannot be undone."""
import pathlib

from harness import Skip, case, check, equal
from programs import Tool, Workload
from test_kernel_tools import check_counts, each_tool, script, tools

lockdown = pathlib.Path("/sys/kernel/security/lockdown")
without_driver = "this kernel is locked down in confidentiality mode: driver calls and GPU errors (Xids) are unknown"


def lock():
    check(pathlib.Path("/run/guest").exists(), "not in a guest: the lockdown cannot be undone")
    if not lockdown.exists():
        raise Skip("this kernel cannot be locked down")
    if "[confidentiality]" not in lockdown.read_text():
        lockdown.write_text("confidentiality")


@each_tool
def counts_exactly(name):
    lock()
    arguments = ["--by", "pid,kernel,cgroup"] if name == "cudalaunch" else tools[name][0]
    workload = Workload(script)
    tool = Tool("-p", workload.pid, *arguments, losses=True)
    workload.go().wait()
    check_counts(tool.finish(), workload, name)
    equal(tool.of_type("attached")[0].get("remarks", []), [without_driver] if name == "cudatop" else [], f"remarks of {tool}")
    if name == "cudalaunch":  # a cgroup's name is read from kernel memory
        own = pathlib.Path("/proc/self/cgroup").read_text().strip().removeprefix("0::")
        equal({row["cgroup"] for row in tool.rows}, {own}, "cgroup")


@case(tool="nvioctl")
def nvioctl():
    lock()
    refused = Tool("-d", 1, json=False, banner=False, attaches=False).finish(1)
    check("confidentiality" in refused.error, refused.error)
