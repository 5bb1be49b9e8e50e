# SPDX-License-Identifier: Apache-2.0
"""PyTorch from Debian (python3-torch, CPU only). It launches no kernels, so a preloaded library makes a launch at each
allocation. Stacks lead from PyTorch's C++ code to the program's lines."""
import collections
import os
import pathlib
import subprocess

import harness
from harness import Skip, case, check, equal, wait_until
from programs import Tool
from test_python import Script, compiled

folder = pathlib.Path(__file__).with_name("pytorch")
debian = "/usr/bin/python3"


class Training(Script):
    def __init__(self):
        if subprocess.run([debian, "-c", "import torch, sys; sys.version_info >= (3, 11) or sys.exit(1)"],
                          capture_output=True).returncode:
            raise Skip("no PyTorch for Debian's Python 3.11 or later (package python3-torch)")
        self.truth_file = harness.here / "stacks"
        helper = compiled(folder / "allocations_launch.c", "-O2")
        super().__init__(debian, folder / "train.py", harness.standin / "libcuda.so.1", self.truth_file,
                         env=os.environ | {"LD_PRELOAD": str(helper)})

    def go(self):
        """{number: (launches, Python frames)}"""
        super().go()
        lines = [line.split("\t") for line in self.truth_file.read_text().splitlines()]
        return {int(number): (int(launches), tuple(filter(None, frames))) for number, launches, *frames in lines}


@case(long=True)
def every_line():
    """Each launch has the Python frames that the interpreter reported, and most have PyTorch's native frames."""
    training = Training()
    tool = Tool("-p", training.pid, "-e", "-U", losses=True)
    truth = training.go()
    launches = sum(launches for launches, _ in truth.values())
    wait_until(lambda: tool.out_file.read_bytes().count(b'"type":"event"') >= launches, "all events", 30)
    tool.stop()
    equal(len(tool.events), launches, "launches")
    check(len(truth) > 30, f"too few stacks: {len(truth)}")
    with_libtorch = 0
    for event in tool.events:
        frames = tuple(f"{frame['function']}:{frame['line']}" for frame in event["stack"] if frame["language"] == "python")
        equal(frames, truth[event["grid"][0]][1], f"Python frames: {event['frames']}")
        with_libtorch += any("libtorch" in frame for frame in event["frames"])
    check(with_libtorch > 0.9 * len(tool.events), f"only {with_libtorch} of {len(tool.events)} launches have frames of libtorch")
    check(set(tool.lost) <= {"stacks_differing"}, f"unexpected losses: {tool.lost}")


@case(long=True)
def by_line():
    training = Training()
    tool = Tool("-p", training.pid, "--by", "line", losses=True)
    truth = training.go()
    tool.stop()
    want = collections.Counter()
    for launches, frames in truth.values():
        want[frames] += launches
    own = collections.Counter()
    for frames, launches in want.items():
        own[next(frame for frame in frames if frame.split(":")[0] in ("<module>", "Net.forward", "Attention.forward"))] += launches
    equal({f"{row['code_function']}:{row['code_line']}": row["launches"] for row in tool.rows}, dict(own), "launches by line")
