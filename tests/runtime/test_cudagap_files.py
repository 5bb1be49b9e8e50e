# SPDX-License-Identifier: Apache-2.0
"""cudagap --files: how much disks are asked for in the name of threads that call, by file."""
import os
import pathlib
import subprocess
import sys

import harness
from gaps import case
from harness import check, equal
from programs import Tool, kill_at_end

size = 4 << 20
more_of_file_system = 1 << 20  # what it writes about a file, at most


@case
def of_disks():
    """Past the page cache, by page faults, and by a sync: to the byte, but for what a file system writes of its own."""
    if not os.major(harness.here.stat().st_dev):
        raise harness.Skip(f"{harness.here} is on no disk")
    program = subprocess.Popen([sys.executable, pathlib.Path(__file__).parent / "disk_user.py",
                                harness.standin / "libcuda.so.1", harness.here, str(size)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    kill_at_end(program)
    equal(program.stdout.readline(), "up\n", "the program is up")
    tool = Tool("-p", program.pid, "--files", losses=True)
    program.communicate("go\n")
    equal(program.returncode, 0, "its exit status")
    files = {row.get("file", "-").split("/")[-1]: row for row in tool.finish().rows}
    for name, read in {"direct": size, "mapped": size, "written": 0}.items():
        equal(files[name]["read_bytes"], read, f"read: {files}")
        equal(files[name]["inode"], (harness.here / name).stat().st_ino, "which file")
    equal([files[name]["written_bytes"] for name in ("direct", "mapped")], [0, 0], f"nothing was written: {files}")
    check(size <= files["written"]["written_bytes"] <= size + more_of_file_system, f"written: {files}")
    check(files["written"]["blocks"] > 0, f"it waited for its sync: {files}")
