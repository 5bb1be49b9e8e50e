# SPDX-License-Identifier: Apache-2.0
"""Compares the truth file with uprobe hits in tracefs. Runtime functions are probed at their start, driver functions
after the first instruction of their thunk."""
import collections
import contextlib
import os
import pathlib
import subprocess
import tempfile

from elf import Elf
from harness import Skip, build, check, equal
from scripts import run

LAUNCHING = ("cuLaunch", "cuGraphLaunch", "cuStreamAddCallback",
             "cudaLaunch", "cudaGraphLaunch", "cudaStreamAddCallback")


@contextlib.contextmanager
def tracefs():
    """The folder of tracefs; mounts it temporarily if it is not mounted yet."""
    usual = pathlib.Path("/sys/kernel/tracing")
    if os.access(usual / "uprobe_events", os.W_OK):
        yield usual
        return
    if os.geteuid():
        raise Skip("only root can use tracefs")
    with tempfile.TemporaryDirectory(prefix="standin-tracefs-") as folder:
        mounted = subprocess.run(["mount", "-t", "tracefs", "tracefs", folder], capture_output=True, text=True)
        if mounted.returncode:
            raise Skip(f"no tracefs: {mounted.stderr.strip()}")
        try:
            yield pathlib.Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


class Probes:
    """Context manager that counts the hits of each launching export of some libraries."""

    def __init__(self, folder, *libraries):
        self.folder = folder
        self.group = f"standin_{os.getpid()}"
        self.files = [(build / library).resolve() for library in libraries]
        self.names = []

    def place(self):
        for file in self.files:
            for name, symbol in Elf(file).exports().items():
                if name.startswith(LAUNCHING):
                    offset = symbol.address - self.bias(file) + (0 if name.startswith("cuda") else 10)
                    self.write(f"p:{self.group}/{name} {file}:{offset:#x}")
                    self.names.append(name)

    @staticmethod
    def bias(file):
        """Address minus file offset of the code section."""
        text = Elf(file).sections[".text"]
        return text.address - text.offset

    def write(self, line):
        events = os.open(self.folder / "uprobe_events", os.O_WRONLY | os.O_APPEND)  # mode "a" of Python would seek
        try:
            os.write(events, line.encode() + b"\n")
        finally:
            os.close(events)

    def enable(self, on):
        (self.folder / "events" / self.group / "enable").write_text("1" if on else "0")

    def __enter__(self):
        try:
            self.place()
            self.enable(True)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.names:
            self.enable(False)
        for name in self.names:
            self.write(f"-:{self.group}/{name}")

    def hits(self):
        out = collections.Counter()
        for line in (self.folder / "uprobe_profile").read_text().splitlines():
            file, name, count = line.split()[:3]
            if name in self.names and file.startswith(str(build)) and int(count):
                out[name] += int(count)
        return out


SCRIPT = """
launch vecadd 11; launch saxpy 2 result=719; launch apply 3 runtime_result=35; launch scale 4 fn=cuLaunchKernel
launch vecadd 5 fn=cudaLaunchKernel; launch vecadd 6 fn=cudaLaunchKernel_ptsz
launch vecadd 7 fn=__cudaLaunchKernel_ptsz
launch vecadd 1 fn=cudaLaunchKernelExC; launch vecadd 2 fn=cudaLaunchKernelExC_ptsz
launch vecadd 3 fn=cudaLaunchCooperativeKernel; launch vecadd 4 fn=cudaLaunchCooperativeKernel_ptsz
launch reduce 8 fn=cuLaunchKernelEx_ptsz; launch reduce 9 fn=cuLaunchCooperativeKernelMultiDevice
launch reduce 1 fn=cuLaunch; launch reduce 2 fn=cuLaunchGrid; launch reduce 3 fn=cuLaunchGridAsync
hostfunc 4; hostfunc 5 fn=cudaLaunchHostFunc_ptsz; hostfunc 6 fn=cudaStreamAddCallback_ptsz
hostfunc 7 fn=cuStreamAddCallback; capture begin; launch vecadd 3 stream=1; capture end
graph 8; graph 9 fn=cudaGraphLaunch_ptsz; graph 2 fn=cuGraphLaunch
threads 3; repeat 2; launch vecadd 100; end; end; fork; launch saxpy 13; end
"""


@check
def uprobe_hits_match_the_truth():
    for form, runtime in (("workload", "libcudart.so.12"), ("workload13", "libcudart.so.13")):
        with tracefs() as folder, Probes(folder, "libcuda.so.1", runtime) as probes:
            truth = run(form, SCRIPT)
            hits = probes.hits()
        expected = collections.Counter()
        for row in truth.calls:
            if row["kind"] != "setup":
                expected[row["function"]] += row["count"]
        equal(dict(hits), dict(expected), form)
