# SPDX-License-Identifier: Apache-2.0
"""Output without rows: one sentence that states that nothing was seen, and which processes could have made calls."""
import re
import subprocess

import harness
from harness import all_but, case, check, equal
from programs import Tool, Workload, kill_at_end

time = r"(\d+ ms|[\d.]+ s)"
idle = "wait {dir}/end"

nouns = {"cudalaunch": "launch", "cudamemcpy": "copy", "cudasync": "wait", "cudagraph": "graph call",
         "gpualloc": "allocation or free"}


def check_text(tool, *sentences):
    """Checks that the output is these lines, separated by blank ones."""
    lines = [line for line in tool.text.splitlines() if line]
    check(len(lines) == len(sentences) and all(map(re.fullmatch, sentences, lines)), f"{sentences}: {tool.text!r}")


def process_without_cuda():
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    kill_at_end(process)
    return process


def run(program, *arguments):
    harness.binary = harness.build / program
    return Tool(*arguments, json=False)


@case(each=nouns | {"nvioctl": "driver call"}, long=all_but(nouns, "cudalaunch", "cudasync"))
def tables(one):
    """In text, a sentence replaces each empty table, and an empty list of lines. JSON output has nothing instead."""
    program = next(name for name, noun in [*nouns.items(), ("nvioctl", "driver call")] if noun == one)
    workload = Workload(idle, "workload-driver")
    pid, more = workload.pid, ["--attach", "tracepoint"] if program == "nvioctl" else []
    measure = "nodes" if program == "cudagraph" else "duration" if program == "cudasync" else "latency"
    tools = [run(program, "-p", pid, *more, "0.3", "2"), run(program, "-p", pid, *more, "-e", "-i", "0.2", "-d", "0.5"),
             run(program, "-p", pid, *more, "-H", measure, "-d", "0.3"),
             run(program, "-p", pid, *more, "-x", "-d", "0.3")]
    as_json = Tool("-p", pid, *more, "-d", "0.3").finish()
    equal([record["type"] for record in as_json.records], ["start", "attached", "end"], "types of JSON lines")
    for tool in tools:
        tool.finish()
    whose = rf" by process {pid} in {time}"
    check_text(tools[0], f"no {one}{whose}", f"no {one}{whose}")
    check_text(tools[1], f"no {one}{whose}")
    check_text(tools[2], f"no {one} for a histogram of {measure}{whose}")
    check_text(tools[3], f"no failed {one}{whose}")


@case
def a_process_without_cuda():
    stranger = process_without_cuda()
    launches, use = (run(name, "-p", stranger.pid, "-d", "0.3", *more)
                     for name, more in (("cudalaunch", []), ("cudatop", ["-b", "-i", "10"])))
    waits, ended = run("cudasync", "-t", stranger.pid, "-d", "0.3"), run("gpualloc", "-p", stranger.pid, "-i", "100")
    for tool in launches, use, waits:
        tool.finish()
    check_text(launches, rf"no launch by process {stranger.pid} in {time}; it maps no CUDA driver")
    check_text(use, rf"no use of a GPU by process {stranger.pid} in {time}; it maps no CUDA driver")
    check_text(waits, rf"no wait by thread {stranger.pid} in {time}; its process maps no CUDA driver")
    stranger.stdin.close()
    check_text(ended.finish(), rf"no allocation or free by process {stranger.pid} in {time}; it has exited")


@case(tool="gpualloc")
def other_lines():
    """Modes that print lines as events happen (other than -e), or only values above a limit."""
    workload = Workload("alloc a 1000; " + idle).go()
    pid = workload.pid
    exits, leaks = run("gpualloc", "-p", pid, "--exited", "-d", "0.3"), run("gpualloc", "-p", pid, "--leaks", "-o", "1h", "-d", "0.3")
    storms, waits = run("cudagraph", "-p", pid, "--storms", "-d", "0.3"), run("cudasync", "-p", pid, "-l", "5ms", "-d", "0.3")
    for tool in exits, leaks, storms, waits:
        tool.finish()
    whose = rf" by process {pid} in {time}"
    check_text(exits, "no end of a process that allocated" + whose)
    check_text(leaks, "no unfreed allocation of 1h or older" + whose)
    check_text(storms, "no storm of captures or instantiations" + whose)
    check_text(waits, "no wait of 5ms or longer" + whose)


@case
def sentences_between_tables():
    """An interval without rows prints a sentence instead of a table. The time of day is printed before each table and
    sentence."""
    workload = Workload("launch vecadd 7; sleep 1500; launch vecadd 3; " + idle)
    tool = run("cudalaunch", "-p", workload.pid, "-T", "-i", "0.4", "-d", "2.8")
    workload.go()
    blocks = [block.splitlines() for block in tool.finish().text.strip().split("\n\n")]
    check(all(re.fullmatch(r"\d\d:\d\d:\d\d", block.pop(0)) for block in blocks if re.match(r"\d\d:", block[0])), f"blocks without a time: {blocks}")
    kinds = ["table" if block[0].split()[0] == "LAUNCHES" else block[0][:9] for block in blocks]
    equal((kinds.count("table"), kinds.count("no launch")), (2, len(kinds) - 2), f"blocks: {tool.text}")


@case(alone=True)
def system_wide():
    """System-wide, the sentence for an empty interval contains the number of processes that map CUDA, and -v lists
    them."""
    workloads = [Workload(idle), Workload(idle)]
    loud, named = run("cudalaunch", "-v", "-d", "0.3"), run("cudalaunch", "-n", "no\x1bbody", "-d", "0.3")
    loud.finish(), named.finish()
    users = rf"\d+ processes map CUDA"
    check_text(loud, rf"no launch in {time}; {users}")
    for workload in workloads:
        check(f"process {workload.pid} (workload) maps CUDA\n" in loud.error, f"-v does not list the process: {loud.error}")
    equal(len(re.findall(r"process \d+ \(.*\) maps CUDA\n", loud.error)), int(re.search(r"(\d+) processes", loud.text)[1]), "number of listed processes")
    check_text(named, rf"no launch by a process or thread whose name contains 'no\\x1Bbody' in {time}; {users}; -v lists them")
