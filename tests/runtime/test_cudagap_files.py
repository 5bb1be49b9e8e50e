# SPDX-License-Identifier: Apache-2.0
"""cudagap --files: bytes that calling threads read from and write to disks, by file."""
import os
import pathlib
import subprocess
import sys

import harness
from gaps import case
from harness import check, equal
from programs import Tool, kill_at_end

size = 4 << 20
more_of_file_system = 1 << 20  # largest amount of metadata that the file system writes for a file


@case
def bytes_per_file():
    """Direct I/O, page faults and fsync are exact to the byte, except metadata of the file system."""
    if not os.major(harness.here.stat().st_dev):
        raise harness.Skip(f"{harness.here} is not on a disk")
    program = subprocess.Popen([sys.executable, pathlib.Path(__file__).parent / "disk_user.py",
                                harness.standin / "libcuda.so.1", harness.here, str(size)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    kill_at_end(program)
    equal(program.stdout.readline(), "up\n", "first line of the program")
    tool = Tool("-p", program.pid, "--files", losses=True)
    program.communicate("go\n")
    equal(program.returncode, 0, "exit status of the program")
    files = {row.get("file", "-").split("/")[-1]: row for row in tool.finish().rows}
    for name, read in {"direct": size, "mapped": size, "written": 0}.items():
        equal(files[name]["read_bytes"], read, f"bytes read: {files}")
        equal(files[name]["inode"], (harness.here / name).stat().st_ino, "inode")
    equal([files[name]["written_bytes"] for name in ("direct", "mapped")], [0, 0], f"bytes written: {files}")
    check(size <= files["written"]["written_bytes"] <= size + more_of_file_system, f"unexpected bytes written: {files}")
    check(files["written"]["blocks"] > 0, f"the thread did not block in fsync: {files}")
