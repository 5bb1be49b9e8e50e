# SPDX-License-Identifier: Apache-2.0
"""Container image of deploy/kubernetes: with only the capabilities of the DaemonSet, it counts the calls of another
user's pod."""
import ctypes
import functools
import os
import pathlib
import re
import subprocess

import harness
import system
from containers import Cgroup, Name, kubepods, need_hierarchy
from harness import check, equal
from programs import Tool, Workload
from truth import launched

case = functools.partial(harness.case, tool="cudatop")

manifest = harness.root / "deploy/kubernetes/gpusnoop.yaml"
numbers = {"DAC_READ_SEARCH": 2, "KILL": 5, "SETGID": 6, "SETUID": 7, "SYS_PTRACE": 19, "LEASE": 28, "PERFMON": 38, "BPF": 39, "CHECKPOINT_RESTORE": 40}
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, NEW_CGROUPS = 24, 38, 0x02000000
libc = ctypes.CDLL(None, use_errno=True)


def capabilities():
    """Capabilities that the manifest grants."""
    return re.findall(r"- ([A-Z_]+)\b", re.search(r"add:\n((?: +[-#] .*\n)+)", manifest.read_text())[1])


def image():
    root = harness.here / "image"
    subprocess.run([harness.root / "deploy/kubernetes/image-root", harness.build, root], check=True)
    return root


def enter(root, allowed):
    """Like a container with hostPID: it sees only the files of the image, but all processes of the host."""
    system.private_mounts()
    for folder in "proc", "sys":
        system.bind(f"/{folder}", root / folder)
    if libc.unshare(NEW_CGROUPS):
        raise OSError(ctypes.get_errno(), "no cgroup namespace")
    os.chroot(root)
    os.chdir("/")
    for number in range(41):
        if number not in {numbers[name] for name in allowed}:
            libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


@case(alone=True)
def counts():
    need_hierarchy("v2")
    system.need_tier("multi")
    root, name = image(), Name()
    os.chmod(harness.here, 0o777)  # for the workload's truth
    group = Cgroup("v2", kubepods(name))
    workload = Workload("launch vecadd 1234; launch saxpy 17; copy 7 bytes=1000; sync 5",
                        preexec=lambda: (group.join(), os.setgid(65534), os.setuid(65534)))
    harness.binary = pathlib.Path("/usr/local/bin/cudatop")
    allowed = capabilities()
    equal(set(allowed), set(numbers), "capabilities of the DaemonSet")
    tool = Tool("-p", workload.pid, "--host-root", "/proc/1/root", "--nvml", "off", preexec=lambda: enter(root, allowed))
    workload.go().wait()
    tool.finish()
    kernels = [call for call in workload.truth() if call["kind"] == "kernel" and call["layer"] == "driver"]
    rows = [row for row in tool.rows if row.get("pid") == workload.pid]
    equal(sum(row["launches"] for row in rows), launched(kernels), f"launches ({tool.error})")
    check(rows and {row.get("pod_uid") for row in rows} == {name.pod_uid}, f"no rows, or rows of other pods: {rows}")


@case
def missing_capability():
    """If a required capability is missing, the tool names it before it attaches."""
    root = image()
    for missing in "BPF", "PERFMON", "SYS_PTRACE", "SETUID", "SETGID":
        done = subprocess.run(["/usr/local/bin/cudatop", "--json", "-d", "1"], capture_output=True, text=True, timeout=60,
                              preexec_fn=lambda: enter(root, set(numbers) - {missing}))
        equal((done.returncode, done.stdout), (1, ""), f"without {missing}: {done.stderr}")
        check(f"needs CAP_{missing}" in done.stderr, f"without {missing}: {done.stderr}")
