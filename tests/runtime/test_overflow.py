# SPDX-License-Identifier: Apache-2.0
"""More rows than the kernel's table holds: calls are sent to user space one by one, or merged into coarser rows."""
import json
import os
import re
import signal
import subprocess

import harness
import leftovers
import system
from harness import case, check, equal, wait_until
from programs import Tool, Workload, trace
from truth import Rows, expected, same_counts

# 100 kernels of three sizes each.
script = "\n".join(f"launch kernel_{i} {i % 7 + 2} grid={i + 1},{g}; launch kernel_{i} 1 block={i % 40 * 20 + 32}"
                   for i in range(100) for g in (1, 100))


@case(each={"entry": [], "latency": ["-l"], "failed": ["-x"]}, asan=True)
def totals_stay_exact(mode):
    steps = script + "\n" + "\n".join(f"launch kernel_{i} 3 result={600 + i}" for i in range(100))
    tool, truth = trace(steps, "--table-rows", 16, *mode, form="workload-driver")
    same_counts(tool, truth, errors=bool(mode), failed_only="-x" in mode)


@case
def many_threads():
    tool, truth = trace("threads 40; launch vecadd 101; launch saxpy 11 grid=5; end", "--table-rows", 16, "--by",
                        "thread,kernel")
    same_counts(tool, truth, by=("tid", "kernel"))


@case
def several_intervals():
    """The table stays full; later calls are counted, too."""
    workload = Workload("repeat 3\n" + script + "\nsleep 300; end", "workload-driver")
    tool = Tool("-p", workload.pid, "--table-rows", 16, "-i", "0.2")
    workload.go()
    same_counts(tool.finish(), workload.truth())


@case(each={"json": True, "text": False})
def full_table_and_full_buffer(json):
    """While the tool is stopped, calls without a row fill half of the ring buffer. A coarse row counts all further
    calls that have no row."""
    many = "\n".join(f"launch kernel_{i} 500" for i in range(100))
    workload = Workload(many + "\ntouch {dir}/done; wait {dir}/end; launch kernel_0 10", "workload-driver")
    tool = Tool("-p", workload.pid, "--table-rows", 16, "--ring-mb", 1, "-r", 0, json=json, losses=True)
    os.kill(tool.pid, signal.SIGSTOP)
    wait_until(lambda: system.stat_fields(tool.pid)[0] == "T", "the tool has stopped")
    workload.go()
    done = workload.go_file.parent / "done"
    wait_until(done.exists, "the calls are made")
    os.kill(tool.pid, signal.SIGCONT)
    (done.parent / "end").touch()
    truth = workload.truth()
    tool.finish()
    if json:
        # Names may be lost, too: they use the same buffer.
        equal(set(tool.lost) - {"names_lost"}, {"calls_coarse"}, "losses")
        counted_calls, coarse = sum(row["launches"] for row in tool.rows), tool.lost["calls_coarse"]
        counted = Rows(truth).count(tool.rows, ("kernel",))
        for key, n in expected(truth, ("kernel",)).items():
            check(counted.get(key, 0) <= n, f"{key}: {counted.get(key)} counted, {n} made")
    else:
        lines = [line.split() for line in tool.lines if "kernel_" in line or " 0x" in line]
        counted_calls = sum(int(words[0]) for words in lines)
        coarse = sum(int(line.split()[1]) for line in tool.error.splitlines() if "used up its share" in line)
    check(coarse > 10000, f"only {coarse} calls in the coarse row")
    equal(counted_calls, 50010, "calls")


def rows_in_kernel(tool):
    number, = (m["id"] for m in leftovers.show("map") if m["id"] in leftovers.ids_held(tool.pid, "map_id")
               and m.get("name") == "calls")
    dump = subprocess.run([leftovers.bpftool(), "--json", "map", "dump", "id", str(number)], capture_output=True, text=True)
    return len(json.loads(dump.stdout))


@case(each={"entry": [], "latency": ["-l"], "intervals": ["-i", "0.3"]}, timeout=180)
def rows_are_freed(mode):
    """A process makes twelve times as many rows as the table holds, a few at a time. The tool frees rows when the
    table fills up, so that later calls have rows and do not need the ring buffer. Every call counts once."""
    rows, batch, batches = 64, 60, 13
    steps = [f"launch always {i + 1}; launch kernel_{i * batch + j} {j % 3 + 1}" + (f"; touch {{dir}}/done{i}; wait {{dir}}/on{i}"
             if j + 1 == batch else "") for i in range(batches) for j in range(batch)]
    workload = Workload("\n".join([*steps, "launch hot 3", "touch {dir}/hot; wait {dir}/on", "launch hot 50000; launch always 70"]),
                        "workload-driver")
    tool = Tool("-p", workload.pid, "--table-rows", rows, "--ring-mb", 1, *mode)
    workload.go()
    for i in range(batches):
        wait_until((harness.here / f"done{i}").exists, f"batch {i}")
        wait_until(lambda: rows_in_kernel(tool) < rows * 3 / 4, "rows are freed", 20)
        (harness.here / f"on{i}").touch()
    wait_until((harness.here / "hot").exists, "the last kernel's first calls")
    wait_until(lambda: rows_in_kernel(tool) < rows * 3 / 4, "rows are freed", 20)
    # Rows disappear before the tool has finished this pass and has set the new total of rows.
    wait_until(lambda: system.stat_fields(tool.pid)[0] == "S", "the tool sleeps until the next pass")
    os.kill(tool.pid, signal.SIGSTOP)
    wait_until(lambda: system.stat_fields(tool.pid)[0] == "T", "the tool has stopped")
    (harness.here / "on").touch()
    truth = workload.truth()
    os.kill(tool.pid, signal.SIGCONT)
    same_counts(tool.finish(), truth)


@case(each={"json": True, "text": False}, timeout=180)
def a_report_with_too_many_rows(json):
    """Rows beyond the limit are merged into one, and the number of their calls is reported."""
    threads, kernels, limit = 400, 170, 65536
    script = f"threads {threads}; " + "; ".join(f"launch kernel_{i} 1" for i in range(kernels)) + "; end"
    tool, _ = trace(script, "--table-rows", 1 << 17, "--by", "thread,kernel", "-r", 0, json=json, losses=True,
                    form="workload-driver")
    made = threads * kernels
    if json:
        equal(tool.lost, {"calls_merged": made - limit}, "reported losses")
        merged, = (row for row in tool.rows if row["tid"] == 0)
        equal((len(tool.rows), merged["launches"]), (limit + 1, made - limit), "rows, and calls of the merged row")
        equal(sum(row["launches"] for row in tool.rows), made, "launches")
    else:
        merged = re.findall(r"cudalaunch: (\d+) calls were merged into coarser rows", tool.error)
        equal([int(number) for number in merged], [made - limit], f"reported losses: {tool.error}")


@case(each={"entry": [], "latency": ["-l"]})
def a_list_of_devices_that_is_too_long(mode):
    """A call lists more devices than the BPF programs read: launches on the other devices are reported as lost."""
    workload = Workload("launch many 7 fn=cuLaunchCooperativeKernelMultiDevice devices=100 grid=3; launch few 5 "
                        "fn=cuLaunchCooperativeKernelMultiDevice devices=16", "workload-driver")
    tool = Tool("-p", workload.pid, *mode, losses=True)
    workload.go().wait()
    rows = {row["kernel"]: row["launches"] for row in tool.finish().rows}
    equal(rows["few"], 80, "launches by the calls with 16 devices")
    equal(rows["many"] + sum(tool.lost.values()), 700, f"launches and losses ({tool.lost})")


@case(alone=True)
def many_processes():
    """Rows of a process are freed when it exits."""
    known = Workload("")  # maps the library, so that it is probed
    tool = Tool("--table-rows", 16, "--by", "pid,kernel")
    truth = []
    for i in range(15):
        workloads = [Workload(f"launch vecadd {10 + i}; launch saxpy 3; sleep 20", warm=False) for _ in range(2)]
        truth += [call for workload in workloads for call in workload.truth()]
    known.go().wait()
    same_counts(tool.stop(), truth, by=("pid", "kernel"))
