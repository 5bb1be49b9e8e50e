# SPDX-License-Identifier: Apache-2.0
"""One file under several paths is one file, several files of one name are several, and a deleted one is still there."""
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
    """Programs and libraries in a folder of their own."""
    folder = harness.here / name
    shutil.copytree(harness.standin, folder, symlinks=True, ignore=shutil.ignore_patterns("obj", "*.a"))
    return folder


def compare_all(workloads, api="driver", preexec=None, files=None):
    """All of them traced at once: by one system-wide tool, and by one with -p, which has return probes."""
    tools = [(Tool("--by", "pid,kernel", "--api", api, preexec=preexec), False),
             (Tool("-p", ",".join(str(w.pid) for w in workloads), "--by", "pid,kernel", "--api", api, "-l",
                   preexec=preexec), True)]
    if files:
        equal(tools[1][0].of_type("attached")[-1]["files"], files, "files")
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
    """LD_LIBRARY_PATH leads to another driver, the runtime is the same file."""
    folder = copy_of_standin("copy")
    for path in folder.glob("libcudart*"):
        path.unlink()
    other = Workload(script, env={"LD_LIBRARY_PATH": str(folder)})
    maps = open(f"/proc/{other.pid}/maps").read()
    assert f"{folder}/libcuda.so" in maps and f"{harness.standin}/libcudart" in maps
    compare_all([Workload(script), other], files=3)


@case(alone=True)
def hard_links():
    folder = copy_of_standin("first")
    linked = harness.here / "second"
    shutil.copytree(folder, linked, symlinks=True, copy_function=os.link)
    compare_all([Workload(script, folder=folder), Workload(script, folder=linked)], api="both", files=2)


@case(alone=True)
def two_bind_mounts():
    """As in two containers that got the host's driver. The tool is outside of them and sees no such path."""
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
    """The lower file is used directly by one process and through the overlay, where stat() shows another inode, by
    others: one probe, one count. A file that was copied up is another file."""
    outside = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    lower = copy_of_standin("lower")
    merged = containers.overlay_on(lower)
    through = [Workload(script, form, folder=merged) for form in ("workload", "workload-driver")]
    compare_all([Workload(script, folder=lower)] + through, api="both", files=2,
                preexec=lambda: system.enter_mounts(outside))
    with open(merged / "libcuda.so.999.0", "ab") as file:
        file.write(b"\n")  # copies it up
    compare_all([Workload(script, folder=lower), Workload(script, folder=merged)], files=3,
                preexec=lambda: system.enter_mounts(outside))


@case(alone=True)
def a_deleted_library():
    """The driver was updated under a running process: it goes on with the file it has mapped, new ones take the new."""
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
    """With the runtime inside."""
    folder = copy_of_standin("copy")
    workload = Workload(script, "workload-static", folder=folder)
    shutil.rmtree(folder)
    compare_all([workload], api="both", files=2)
