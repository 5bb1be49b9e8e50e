# SPDX-License-Identifier: Apache-2.0
"""Opens and removes cgroups, even if their path is longer than the kernel accepts in one call."""
import json
import os
import signal
import time


def descend(mount, names):
    """Opens a folder level by level, since its path may be too long for one open()."""
    fd = os.open(mount, os.O_RDONLY | os.O_DIRECTORY)
    for name in names:
        try:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


def within(mount, names, function):
    fd = descend(mount, names)
    try:
        return function(fd)
    finally:
        os.close(fd)


def members(fd):
    procs = os.open("cgroup.procs", os.O_RDONLY, dir_fd=fd)
    with open(procs) as file:
        return [int(line) for line in file]


def remove_levels(mount, names, kept):
    """Removes a cgroup and its parents, except the outermost `kept` levels, and kills the processes in them. Stops at a
    level that other cases use."""
    for depth in range(len(names), kept, -1):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                within(mount, names[:depth - 1], lambda fd: os.rmdir(names[depth - 1], dir_fd=fd))
                break
            except FileNotFoundError:
                break
            except OSError:
                if depth < len(names) and has_children(mount, names[:depth]):
                    return
                for pid in within(mount, names[:depth], members):
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)


def has_children(mount, names):
    return within(mount, names, lambda fd: any(entry.is_dir() for entry in os.scandir(fd)))


def remove_left(directory):
    """Removes cgroups that a killed case left behind, and returns their names."""
    left = []
    try:
        lines = (directory / "cgroups").read_text().splitlines()
    except OSError:
        return left
    for line in lines:
        mount, names, kept = json.loads(line)
        try:
            os.close(descend(mount, names))
        except OSError:
            continue
        left.append(f"cgroup {mount}/{'/'.join(names)}")
        remove_levels(mount, names, kept)
    return left
