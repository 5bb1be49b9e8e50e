# SPDX-License-Identifier: Apache-2.0
"""cudatop --why: processes that exit during the run, restart loops, and JSON."""
import re
import shlex
import subprocess
import time

import harness
from harness import check, equal, wait_until
from programs import Workload, kill_at_end
from tops import Tool, case

refused = "alloc all 17179869184 result=2"


def crash_loop(script, starts):
    """A shell restarts the program each time it exits. Returns the pids once all have exited."""
    program, pids = shlex.quote(str(harness.standin / "workload")), harness.here / "pids"
    command = f"for i in $(seq {starts}); do {program} --truth {harness.here}/truth.$i \"{script}\" & echo $! >> {pids}; wait; done"
    shell = subprocess.Popen(["sh", "-c", command], stdout=subprocess.DEVNULL)
    kill_at_end(shell)
    equal(shell.wait(60 * harness.patience), 0, "exit status of the shell")
    return [int(pid) for pid in pids.read_text().split()]


@case(each={"with_an_error": refused, "without": "launch vecadd 1"}, alone=True)
def restart_loop(step):
    """One verdict covers all starts, and has the last error of the newest process."""
    Workload("sleep 60000")  # maps the libraries, so that they have probes before the others' first calls
    tools = [Tool("--why", "-d", "100s", json=json) for json in (True, False)]
    pids = crash_loop(f"name looper; {step}; sleep 150", 6)
    time.sleep(1.5)
    tool, text = [tool.stop() for tool in tools]
    rows = [row for row in tool.rows if row.get("comm") == "looper"]
    loop, = [row for row in rows if row["rule"] == "restarts"]
    error = "; last error: 1 of 1 allocations fail: OUT_OF_MEMORY (last request: 16 GiB)" if step == refused else ""
    check(re.fullmatch(rf"restart loop: 6 starts in \d+(\.\d)? s{re.escape(error)} \(exited\)", loop["diagnosis"]), f"unexpected verdict: {loop}")
    equal((loop["pid"], loop["severity"]), (pids[-1], "alarm" if error else "note"), "process and severity")
    equal(loop["next"], "gpualloc -x" if error else "cudatop --why -d 60s", "next command, which must not need a running process")
    others = [(row["pid"], row["rule"], row["diagnosis"]) for row in rows if row is not loop]
    equal(others, [(pids[-1], "refused", error.removeprefix("; last error: ") + " (exited)")] if error else [], "other verdicts, on the newest process only")
    check(re.search(rf"^\S+ +{pids[-1]} looper +restart loop: 6 starts", text.text, re.M), f"unexpected verdict in text: {text.text}")


@case(alone=True)
def exited_processes():
    """Verdicts on exited processes are marked. Ranks of a job that exit together are no restart loop."""
    ranks = [Workload("copy 2 fn=cudaMemcpy result=700", name="rank") for _ in range(3)]
    well = Workload("launch vecadd 5", name="well")
    stays = Workload("forever; launch vecadd 1; sleep 100; end", name="stays")
    tool = Tool("--why", "-d", "100s")
    for workload in (*ranks, well, stays):
        workload.go()
    for workload in (*ranks, well):
        workload.wait()
    time.sleep(2.5)
    tool.stop()
    rows = [row for row in tool.rows if row.get("comm") in ("rank", "well", "stays")]
    equal({row["pid"]: (row["rule"], row["diagnosis"], row["next"]) for row in rows},
          {rank.pid: ("copy", "all 2 copies fail: CUDA_ERROR_ILLEGAL_ADDRESS (exited)", "cudamemcpy -x") for rank in ranks}, "verdicts")


@case
def exited_process_without_problems():
    """A process that exited counts as inspected. The interval of a row is the whole run."""
    stays, ends = Workload("sleep 60000"), Workload("launch vecadd 5; sleep 500")
    pids = f"{stays.pid},{ends.pid}"
    text, tool = Tool("-p", pids, "--why", "-d", "4s", json=False), Tool("-p", pids, "--why", "-d", "4s")
    stays.go(), ends.go().wait()
    text.finish(), tool.finish()
    check(re.search(r"no problem found in \d+\.\d s \(host side only\); 2 processes inspected, 1 of them exited$", text.text, re.M),
          f"unexpected summary: {text.text}")
    row, = tool.rows
    check(4e9 <= row["interval_ns"] < 60e9, f"unexpected interval: {row}")


@case
def details_are_frames():
    """In JSON, the list of frames does not repeat values that have keys of their own."""
    hung = Workload("launch vecadd 1; sync 1 fn=cudaDeviceSynchronize block_us=60000000")
    tool = Tool("-p", hung.pid, "--why", "-d", "6s")
    hung.go()
    tool.finish()
    row, = tool.rows
    equal(row["rule"], "hangs", "rule")
    check(row["details"][0].startswith("cudaDeviceSynchronize+"), f"unexpected innermost frame: {row['details']}")
    check(not any(line.lstrip().startswith(("next:", "owner:")) for line in row["details"]), f"not only frames: {row['details']}")
    check(6e9 <= row["interval_ns"] < 60e9, f"unexpected interval: {row}")
