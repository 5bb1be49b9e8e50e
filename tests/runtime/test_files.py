# SPDX-License-Identifier: Apache-2.0
"""Identity of traced files: one file under several paths is one file, files with the same name are separate, and
deleted files are still traced."""
import os
import shutil

import containers
import harness
import system
from harness import case, equal
from programs import Tool, Workload
from truth import same_counts

script = "launch vecadd 1009; launch saxpy 503 fn=cuLaunchKernel"


def copy_of_standin(name):
    """A folder with copies of the programs and libraries."""
    folder = harness.here / name
    shutil.copytree(harness.standin, folder, symlinks=True, ignore=shutil.ignore_patterns("obj", "*.a"))
    return folder


def compare_all(workloads, api="driver", preexec=None, files=None):
    """Traces all workloads at once: with a system-wide tool, and with one that has -p and return probes."""
    tools = [(Tool("--by", "pid,kernel", "--api", api, preexec=preexec), False),
             (Tool("-p", ",".join(str(w.pid) for w in workloads), "--by", "pid,kernel", "--api", api, "-l",
                   preexec=preexec), True)]
    if files:
        equal(tools[1][0].of_type("attached")[-1]["files"], files, "number of files")
    for workload in workloads:
        workload.go()
    truth = [call for workload in workloads for call in workload.truth()]
    tools[0][0].stop()
    tools[1][0].finish()
    for tool, with_errors in tools:
        same_counts(tool, truth, by=("pid", "kernel"), api=api, errors=with_errors)


@case(alone=True)
def two_copies():
    folder = copy_of_standin("copy")
    compare_all([Workload(script), Workload(script, folder=folder), Workload(script, "workload13", folder=folder)],
                api="both", files=5)


@case(alone=True)
def a_copy_of_the_driver_alone():
    """LD_LIBRARY_PATH selects another driver; the runtime is the same file."""
    folder = copy_of_standin("copy")
    for path in folder.glob("libcudart*"):
        path.unlink()
    other = Workload(script, env={"LD_LIBRARY_PATH": str(folder)})
    maps = open(f"/proc/{other.pid}/maps").read()
    assert f"{folder}/libcuda.so" in maps and f"{harness.standin}/libcudart" in maps
    compare_all([Workload(script), other], files=3)


@case(each={tier: tier for tier in ("session", "multi", "tracefs", "perf")}, alone=("perf",), long=("perf",))
def a_path_with_a_space(tier):
    """Libraries below a path with a space and a letter that is not ASCII, with each way of attaching."""
    system.need_tier(tier)
    workload = Workload(script, folder=copy_of_standin("jürgen lee/gpu snoop"))
    tool = Tool("-p", workload.pid, "--attach", tier, "--by", "kernel", "--api", "both")
    workload.go()
    same_counts(tool.finish(), workload.truth(), by=("kernel",), api="both")


@case(alone=True)
def hard_links():
    folder = copy_of_standin("first")
    linked = harness.here / "second"
    shutil.copytree(folder, linked, symlinks=True, copy_function=os.link)
    compare_all([Workload(script, folder=folder), Workload(script, folder=linked)], api="both", files=2)


@case(alone=True)
def two_bind_mounts():
    """Two mount namespaces with the host's driver, as in containers. The tool runs outside of these namespaces, and
    does not see their paths."""
    outside = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    folder = copy_of_standin("driver")
    mounts = [harness.here / name for name in ("one", "two")]
    system.private_mounts()
    for mount in mounts:
        mount.mkdir()
        system.bind(folder, mount)
    compare_all([Workload(script, folder=mount) for mount in mounts], api="both", files=2,
                preexec=lambda: system.enter_mounts(outside))


@case(asan=True, alone=True)
def an_overlay():
    """One process uses the lower file directly, others through the overlay, where stat() shows another inode: there is
    one probe, and each call counts once. A file that was copied up is a different file."""
    outside = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    lower = copy_of_standin("lower")
    merged = containers.overlay_on(lower)
    through = [Workload(script, form, folder=merged) for form in ("workload", "workload-driver")]
    compare_all([Workload(script, folder=lower)] + through, api="both", files=2,
                preexec=lambda: system.enter_mounts(outside))
    with open(merged / "libcuda.so.999.0", "ab") as file:
        file.write(b"\n")  # makes the overlay copy the file up
    compare_all([Workload(script, folder=lower), Workload(script, folder=merged)], files=3,
                preexec=lambda: system.enter_mounts(outside))


@case(alone=True)
def a_deleted_library():
    """The driver is updated under a running process, which keeps its mapped file; new processes use the new one."""
    folder = copy_of_standin("copy")
    old = Workload(script, folder=folder)
    for path in folder.glob("lib*"):
        path.unlink()
    for path in harness.standin.glob("lib*.so*"):
        shutil.copy(path, folder / path.name, follow_symlinks=False)
    new = Workload(script, folder=folder)
    assert "(deleted)" in open(f"/proc/{old.pid}/maps").read()
    compare_all([old, new], api="both", files=4)


@case(alone=True)
def a_program_that_was_deleted():
    """A deleted program that contains the runtime."""
    folder = copy_of_standin("copy")
    workload = Workload(script, "workload-static", folder=folder)
    shutil.rmtree(folder)
    compare_all([workload], api="both", files=2)
