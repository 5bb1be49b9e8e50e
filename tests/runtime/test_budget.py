# SPDX-License-Identifier: Apache-2.0
"""Budget for the instructions that the kernel's verifier processes. It is far below the verifier's limit of a million,
because newer kernels may process ten times as many for the same program (tests/kernels/README.md)."""
import contextlib
import glob
import os
import re
import subprocess

import harness
import leftovers
from harness import Skip, case, check
from programs import Tool

per_program = 50_000
per_tool = 120_000
tools = ("cudatop", "cudalaunch", "cudamemcpy", "cudasync", "gpualloc", "cudagraph", "nvioctl", "cudagap", "ncclwait",
         "gpuspend")


def allowed(tool):
    """Budget for all programs of a tool together. Before Linux 6.6, tracing a call needs two programs (entry and
    return); since then, one (a session)."""
    release = [int(n) for n in re.findall(r"\d+", os.uname().release)[:2]]
    before, now = {"cudatop": (220_000, 182_000), "gpuspend": (146_000, per_tool)}.get(tool, (per_tool, per_tool))
    return now if release >= [6, 6] else before


def modes(way="tracepoint"):
    """Names and arguments of the tool's modes that load different or larger programs. `way`: nvioctl's --attach."""
    text = " ".join(subprocess.run([harness.binary, "--help"], capture_output=True, text=True, check=True).stdout.split())
    name = harness.binary.name
    plain = ["--attach", way] if name == "nvioctl" else []
    by = re.search(r"rows by (.*?),? or several", text)[1].split(", ")
    out = {"default": plain, "--by": [*plain, "--by", ",".join(by)]}
    for option in "-e", "-l", "-U":
        if found := re.search(rf" {option}, --\w[\w-]* (MIN_US)?", text):
            out[option] = [*plain, option, *(["1"] if found[1] else [])]
    if " --interrupts " in text:
        out["--interrupts"] = ["--interrupts"]
    return out


def verified(pid):
    """[(program, verified instructions)] of a running tool, from its fdinfo."""
    names = {one["id"]: one.get("name", "") for one in leftovers.show("prog")}
    numbers = {}
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError):  # closed meanwhile
            with open(path) as file:
                fields = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
            if "verified_insns" in fields:
                numbers[int(fields["prog_id"])] = int(fields["verified_insns"])
    return [(names.get(number, str(number)), count) for number, count in numbers.items()]


def within(mode, arguments):
    """Starts the tool on this process, which makes no calls, and returns the programs and sums that exceed the
    budget."""
    tool = Tool("-p", os.getpid(), *arguments, losses=True)
    found = verified(tool.pid)
    tool.stop()
    check(found, f"{tool} has no program with a count of verified instructions")
    check("the kernel refused" not in tool.error, f"this kernel refuses programs: {tool.error}")
    name, total = harness.binary.name, sum(count for _, count in found)
    if "GPUSNOOP_TIER" in os.environ:  # for the table of tests/kernels/run
        for program, count in [("all", total), *found]:
            print(f"verified {name} {program} {count}  {mode}", flush=True)
    over = [f"{program}: {count}" for program, count in found if count > per_program]
    if total > allowed(name):
        over.append(f"all programs: {total}, more than {allowed(name)}")
    return [f"{mode}: {text}" for text in over]


def held(**options):
    if [int(n) for n in re.findall(r"\d+", os.uname().release)[:2]] < [5, 16]:
        raise Skip("kernels before 5.16 do not report verified instructions")
    over = [text for mode, arguments in modes(**options).items() for text in within(mode, arguments)]
    check(not over, f"more than {per_program} verified instructions, {harness.binary.name} {'; '.join(over)}")


for name in tools:
    def run():
        held()
    run.__module__, run.__name__ = "test_budget", name
    case(run, tool=name, timeout=180)


@case
def every_tool_has_a_budget():
    makefile = (harness.root / "Makefile").read_text()
    listed = re.search(r"^TOOLS *:= (.*)$", makefile, re.M)[1].split()
    check(set(listed) == set(tools), f"no budget for some of {listed}")
