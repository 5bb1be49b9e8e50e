# SPDX-License-Identifier: Apache-2.0
"""cudatop's tables for logs and pipes, with the requested order, columns and rows."""
import re
import subprocess

import harness
import tops
from harness import check, equal
from programs import Workload
from tops import Tool, case

scripts = {"launcher": "name launcher; launch vecadd 300; launch saxpy 7", "copier": "name copier; launch vecadd 20; copy 50",
           "leaker": "name leaker; launch vecadd 100; alloc a 1073741824; sync 3"}


def table(tool):
    """Headers, the row of each process by name, and the names in order. Skips lines with the time of day."""
    lines = [line for line in tool.text.split("\n\n")[0].splitlines() if line.strip()]  # verdicts follow the table
    head, *lines = [line.split() for line in lines if not re.fullmatch(r"\d\d:\d\d:\d\d", line)]
    return head, {line[head.index("COMM")]: line for line in lines}, [line[head.index("COMM")] for line in lines]


@case(asan=True)
def tables():
    """One interval that is longer than all workloads: the table at the end has everything."""
    workloads = {name: Workload(script) for name, script in scripts.items()}
    pids = ",".join(str(workload.pid) for workload in workloads.values())
    run = lambda *words: Tool("-p", pids, "-i", "1000", *words, json=False)
    usual, live, selected = run("-b", "-s", "LAUNCH/s"), run("-b", "-s", "MEM", "-r", "2"), run("-b", "--columns", "COMM,LIVE,copies_per_second")
    other = run("-b", "-s", "comm", "--columns", "+COPY/s,-MEM", "--filter", "er", "--by", "thread")
    none = run("--filter", "no such text")  # without -b, and without a terminal
    for workload in workloads.values():
        workload.go().wait()  # leaker last: memory of the others may be freed before the table is printed
    for tool in (usual, live, selected, other, none):
        tool.finish()
    head, rows, order = table(usual)
    equal(order, ["launcher", "leaker", "copier"], "most launches first")
    for word in ("PID", "COMM", "POD/COMMAND", "LAUNCH/s", "GKERN/s", "H2D/s", "MEM", "WAIT%", "TROUBLE", "ERR/s"):
        check(word in head, f"no header {word} in {head}")
    check("COPY/s" not in head and "launches" not in head, f"columns that are not shown by default: {head}")
    equal(rows["launcher"][head.index("PID")], str(workloads["launcher"].pid), "pid")
    rates = [float(rows[name][head.index("LAUNCH/s")]) for name in ("launcher", "copier")]
    check(12 < rates[0] / max(rates[1], 0.05) < 19 or rates[1] < 2, f"the rates do not match 307 and 20 launches: {rates}")
    _, _, order = table(live)
    equal((order[0], len(order)), ("leaker", 2), "most memory first, two rows")
    head, rows, _ = table(selected)
    equal(head, ["COMM", "LIVE", "COPY/s"], "only these columns")
    equal([rows[name][1] for name in ("leaker", "launcher")], [">=1.0G", ">=0"], f"memory: {selected.text}")
    head, rows, order = table(other)
    check("COPY/s" in head and "TID" in head and "MEM" not in head, f"a column was not added or not removed: {head}")
    equal(order, ["copier", "launcher", "leaker"], "names in ascending order")
    equal(table(none)[2], [], "rows without the text")
    check("not both terminals" in none.error and "-b" in none.error, f"no message about tables: {none.error}")
    check("not both terminals" not in usual.error, f"message about tables despite -b: {usual.error}")


@case
def count_of_tables():
    """-b INTERVAL COUNT: the tool exits after the last table."""
    workload = Workload("forever; launch vecadd 10; sleep 10; end")
    tool, lines = Tool("-p", workload.pid, "-b", "0.2", "3", json=False), Tool("-p", workload.pid, "0.2", "2")
    workload.go()
    tool.finish(), lines.finish()
    equal(sum("PID" in line for line in tool.lines), 3, "tables")
    equal(len(tops.rows(lines, "total")), 2, "sums")
    workload.stop()


@case
def help_and_version():
    for words, text in (["--help"], "--latency"), (["-h"], "Examples:"), (["-V"], "cudatop"):
        done = subprocess.run([harness.binary, *words], capture_output=True, text=True, timeout=60 * harness.patience)
        equal((done.returncode, done.stderr), (0, ""), f"{words}")
        check(text in done.stdout, f"{words}: {done.stdout}")
