# SPDX-License-Identifier: Apache-2.0
"""Text tables fit a terminal, and --columns selects their columns."""
import re
import subprocess

import harness
from driver_calls import Calls
from harness import case, check, equal
from programs import Tool, Workload

widest = 100

script = """
launch vecadd 101 grid=3,2; copy 17 bytes=70001; alloc a 10007; free a; sync 7
graph create G; graph add G kernel 3; graph instantiate G X; graph launch X 5; graph update X G update_result=8; graph execdestroy X
"""

modes = {"cudatop": [["-b"]], "cudalaunch": [[]], "cudamemcpy": [[]], "cudasync": [[]], "gpualloc": [[]],
         "cudagraph": [[], ["--summary"]], "nvioctl": [["--attach", "tracepoint"]],
         "cudagap": [[]]}


def tables(*each):
    """Runs the tool once per list of arguments on the same workload; returns the lines of each run."""
    calls = harness.binary.name == "nvioctl"
    workload = Calls("call RM_CONTROL 101 subject=0x20800102; call RM_FREE 3") if calls else Workload(script)
    tools = [Tool("-p", workload.pid, *arguments, json=False, losses=True) for arguments in each]
    workload.go().wait()
    for tool in tools:
        tool.finish()
    return [[line for line in tool.text.splitlines() if line] for tool in tools]


def default_tables():
    """Default tables are not wider than `widest`."""
    for arguments, lines in zip(modes[harness.binary.name], tables(*modes[harness.binary.name])):
        check(len(lines) >= 2, f"no table: {lines}")
        wide = max(map(len, lines))
        check(wide <= widest, f"{wide} columns with {arguments}: {lines}")


def chosen():
    """--columns with one column, and with columns added to and removed from the default ones."""
    usual_mode = modes[harness.binary.name][0]
    names = re.findall(r"^  ([ +])(\S+)", subprocess.run([harness.binary, "--columns", "help"], check=True, text=True,
                                                         capture_output=True).stdout, re.M)
    usual, = tables(usual_mode)
    header = next(line for line in usual if len(line.split()) > 3 and line.split()[0].isupper())
    at = usual.index(header)
    extra = next((name for mark, name in names if mark == "+" and name not in header.split() and name != "NSPID"), "COMM")
    first, last = header.split()[0], next(name for name in ("CALLS", "LAUNCHES", "COPIES", "LIVE", "MEM", "NODES", "THREADS") if name in header.split())
    alone, changed = tables([*usual_mode, "--columns", last], [*usual_mode, "--columns", f"+{extra},-{first}"])
    check(last in " ".join(alone), f"the table lacks {last}: {alone}")
    check(not set(header.split()) - {last} & set(" ".join(alone).split()), f"the table has more than {last}: {alone}")
    got = " ".join(changed).split()
    check(extra in got and (first not in got or header.split().count(first) > 1), f"the table lacks {extra} or still has {first}: {changed}")
    equal(len([line for line in usual[at:]]), len([line for line in changed[-len(usual[at:]):]]), "number of lines")


def add(tool, function):
    def run():
        function()
    run.__module__, run.__name__ = "test_columns", f"{function.__name__}[{tool}]"
    # unit/golden tests each column, except cudatop's columns.
    case(run, tool=tool, long=function is chosen and tool not in ("cudatop", "cudalaunch", "nvioctl") or ())


for name in modes:
    for function in default_tables, chosen:
        add(name, function)


@case(tool="cudalaunch")
def unmeasured_values_are_unknown():
    lines, = tables(["--columns", "LAUNCHES,ERRORS"])
    equal([line.split() for line in lines], [["LAUNCHES", "ERRORS"], ["101", "-"], ["5", "-"]], "unknown errors")
