# SPDX-License-Identifier: Apache-2.0
"""Minimal container runtime: contain.py MOUNTS ROOT CGROUPS COMMAND... All arguments except COMMAND are JSON.

MOUNTS is a list: [source, target, kind, flags, options] is mounted in a new mount namespace, [target] is a folder to
create. CGROUPS: paths of cgroup.procs files to join. COMMAND runs as process 1 of a new pid namespace, with the mount
ROOT as its root. If ROOT is empty, COMMAND keeps its root and pid namespace, and gets only the mounts and cgroups."""
import json
import os
import sys

import system


def make(mounts):
    for mount in mounts:
        if len(mount) == 1:
            os.makedirs(mount[0], exist_ok=True)
            continue
        source, target, kind, flags, options = mount
        os.makedirs(target, exist_ok=True)
        system.mount(source, target, kind, flags, options)


def join(files):
    for path in files:
        with open(path, "w") as file:
            file.write("0")  # 0: the process that writes


def main():
    mounts, root, cgroups = map(json.loads, sys.argv[1:4])
    command = sys.argv[4:]
    system.private_mounts()
    make(mounts)
    if root:
        system.new_pid_namespace()
        child = os.fork()
        if child:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        system.die_with_parent()
        make([["proc", root + "/proc", "proc", 0, None]])  # shows the new pid namespace
    join(cgroups)
    if root:
        system.change_root(root)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
