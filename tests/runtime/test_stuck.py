# SPDX-License-Identifier: Apache-2.0
"""cudatop's verdict on driver calls that do not return, except waits."""
import os
import re
import signal
import time

import tops
from harness import check, equal
from programs import Workload
from tops import Tool, case

asleep, spinning = "block_us=600000000", "delay_us=600000000"


def about(tool, pid):
    return [row for row in tool.rows if row["by"] == "diagnosis" and row.get("pid") == pid]


@case(each={"asleep": asleep, "spinning": spinning}, alone=["spinning"])
def in_flight(pace):
    """One thread is stuck in the call, another one keeps launching."""
    workload = Workload(f"background; launch vecadd 1; sleep 700; launch vecadd 1 fn=cuLaunchKernel {pace}; end; forever; launch scale 1 grid=64; sleep 50; end")
    tool, text = (Tool("-p", workload.pid, "--why", "-d", "9s", json=json) for json in (True, False))
    workload.go()
    thread, = workload.threads()
    tool.finish(), text.finish()
    row, = [row for row in about(tool, workload.pid) if row["rule"] == "stuck"]
    check(re.fullmatch(r"stuck in cuLaunchKernel(_ptsz)? for over \d+(\.\d)? s", row["diagnosis"]), f"unexpected verdict: {row}")
    equal((row["tid"], row["next"]), (thread, f"cudagap -p {workload.pid} --why"), "thread and next command")
    check(any("(workload)" in line for line in row["details"]), f"no frame of the program: {row['details']}")
    check(re.search(rf"^!!? +{workload.pid} \S+ +stuck in cuLaunchKernel", text.text, re.M), f"unexpected verdict in text: {text.text}")


@case
def in_flight_before_tracing():
    """The call began before tracing."""
    workload = Workload(f"alloc a 65536 fn=cuMemAlloc_v2 {asleep}").go()
    time.sleep(0.5)
    tool = Tool("-p", workload.pid, "--why", "-d", "6s").finish()
    row, = [row for row in about(tool, workload.pid) if row["rule"] == "stuck"]
    check(row["diagnosis"].startswith("stuck in cuMemAlloc_v2 for over "), f"unexpected verdict: {row}")


others = {
    "launches": "forever; launch vecadd 100 fn=cuLaunchKernel delay_us=2000; end",
    "slow_launches": "forever; launch vecadd 1 fn=cuLaunchKernel block_us=900000; end",
    "allocations": "forever; alloc a 65536 fn=cuMemAlloc_v2 block_us=700000; free a; end",
    "idle": "launch vecadd 1; sleep 600000",
    "waits": "launch vecadd 1; sync 1 fn=cuCtxSynchronize block_us=600000000",
    "waits_in_a_copy": "copy 1 fn=cuMemcpyDtoH_v2 block_us=600000000",
}


@case(alone=True)
def not_in_flight():
    """No verdict on calls that return, even if a thread spends most of its time in them; none on waits, nor on a
    process that SIGSTOP stopped in a call."""
    workloads = {name: Workload(script) for name, script in others.items()}
    stopped = workloads["stopped"] = Workload(f"launch vecadd 1 fn=cuLaunchKernel {asleep}")
    tool = Tool("-p", ",".join(str(workload.pid) for workload in workloads.values()), "-i", "1", "-d", "6.5")
    for workload in workloads.values():
        workload.go()
    time.sleep(0.5)
    os.kill(stopped.pid, signal.SIGSTOP)
    tool.finish()
    os.kill(stopped.pid, signal.SIGCONT)
    rows = {name: [row["diagnosis"] for row in about(tool, workload.pid) if row["rule"] == "stuck"] for name, workload in workloads.items()}
    equal({name: found for name, found in rows.items() if found}, {}, "verdicts")
    check({row["rule"] for row in about(tool, workloads["waits"].pid)} == {"hangs"}, "unexpected rule for the wait")
    check(tops.rows(tool, "pid"), "no rows")
