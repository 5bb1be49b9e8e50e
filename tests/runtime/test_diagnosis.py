# SPDX-License-Identifier: Apache-2.0
"""cudatop's verdicts on processes with a problem and on processes just below a threshold, on its screen and with
--why."""
import os
import pathlib
import re
import signal
import subprocess
import time

import harness
import tops
from harness import check, equal, wait_until
from programs import Workload
from test_alloc_nvml import Nvml, library
from test_top_screen import Screen
from tops import Tool, case

copies = "copy 500 bytes={bytes} fn={fn} gap_us=100"
# Scripts that run forever, and their verdict: rule, severities, text; None for no verdict. Scripts of a group run at
# the same time, so at most one of them may keep a CPU busy.
together = {
    "waits": {
        "hung": ("launch vecadd 5; sync 1 fn=cudaDeviceSynchronize block_us=60000000", "hangs", {"warning", "alarm"},
                 r"waiting for the GPU for \d+(\.\d)? s; no launches since"),
        "hung_in_a_copy": ("background; name NCCL-Service; sleep 60000; end; copy 1 fn=cudaMemcpy block_us=60000000", "hangs", {"warning", "alarm"},
                           r"waiting for a synchronous copy for \d+(\.\d)? s; no launches since; it uses NCCL: ncclwait --ras .*"),
        "one_thread_waits": ("background; sync 1 fn=cuCtxSynchronize block_us=60000000; end; forever; launch vecadd 1 grid=64 gap_us=2000; end",
                             None, None, None),
        "spins": ("sync 1 fn=cuCtxSynchronize delay_us=500000; launch vecadd 1", "spins", {"note"},
                  r"busy-waiting for the GPU \d+% of the time, burning \d+% of a CPU"),
        "sleeps_in_waits": ("sync 1 fn=cuCtxSynchronize block_us=500000; launch vecadd 1", None, None, None),
    },
    "failures": {
        "waits_fail": ("sync 1 fn=cudaStreamSynchronize stream=1 result=700; sleep 50", "wait", {"alarm"},
                       r"all \d+ waits fail: CUDA_ERROR_ILLEGAL_ADDRESS"),
        "few_waits_fail": ("sync 1 fn=cuStreamSynchronize result=719; sync 9 fn=cuStreamSynchronize; sleep 50", "wait", {"warning"},
                           r"\d+ of \d+ waits fail: CUDA_ERROR_LAUNCH_FAILED"),
        "refused": ("alloc all 17179869184 result=2; sleep 50", "refused", {"alarm"},
                    r"all \d+ allocations fail: OUT_OF_MEMORY \(last request: 16 GiB\)"),
        "wrong_frees": ("alloc a 1000; free a; free a again result=1; sleep 50", "memory", {"warning"},
                        r"\d+ of \d+ allocations and frees fail: CUDA_ERROR_INVALID_VALUE"),
        "copies_fail": ("copy 1 fn=cuMemcpyHtoD_v2 result=700; sleep 50", "copy", {"alarm"},
                        r"all \d+ copies fail: CUDA_ERROR_ILLEGAL_ADDRESS"),
        "calls_after_shutdown": ("alloc a 1000; free a; free a again result=4; sync 1 fn=cuStreamSynchronize result=4; "
                                 "copy 1 fn=cuMemcpyHtoD_v2 result=4; sleep 50", None, None, None),
        "instantiations_fail": ("graph instantiate G X result=2; graph launch Y 1; sleep 50", "graph", {"alarm"},
                                r"(all )?\d+ (of \d+ )?graph captures and instantiations fail: CUDA_ERROR_OUT_OF_MEMORY"),
    },
    "memory_and_polls": {
        "grows": ("alloc result 8388608; sleep 100", "grows", {"note"}, r"allocates [\d.]+ MiB/s of device memory and frees nothing"),
        "grows_and_frees": ("alloc result 8388608; alloc other 65536; free other; sleep 100", None, None, None),
        "polls": ("sync 5000 fn=cuStreamQuery result=600; launch vecadd 1 grid=64", "polls", {"note", "warning"},
                  r"polls for completion \d+k? times/s"),
        "polls_at_times": ("sync 100 fn=cuStreamQuery result=600; sleep 100", None, None, None),
    },
    "copies": {
        "small_copies": (copies.format(bytes=2048, fn="cuMemcpyHtoD_v2"), "copies", {"warning"},
                         r"\d+k? copies/s, all under 64 KiB, all synchronous"),
        "large_copies": (copies.format(bytes=65536, fn="cuMemcpyHtoD_v2"), None, None, None),
        "small_copies_without_waiting": (copies.format(bytes=2048, fn="cuMemcpyHtoDAsync_v2"), "copies", {"note"},
                                         r"\d+k? copies/s, all under 64 KiB, none synchronous"),
    },
    "graphs": {
        "captures": ("capture begin; launch vecadd 50 stream=1; capture end; graph 1; sleep 50", "captures", {"warning"},
                     r"rebuilds graphs \(re-capture storm\): \d+\.\d captures/s, \d+\.\d instantiations/s; \d+k? launches/s recorded, \d+k?/s executed"),
        "instantiates": ("graph instantiate G X; graph launch X 1; graph execdestroy X; sleep 50", "captures", {"warning"},
                         r"instantiates graphs \d+\.\d times/s; 0 launches/s recorded, \d+k?/s executed"),
        "captures_at_times": ("capture begin; launch vecadd 500 stream=1; capture end; graph 100; sleep 1000", None, None, None),
        "captured_once": ("capture begin; launch vecadd 5000 stream=1; capture end; forever; graph 1; sleep 10; end", None, None, None),
    },
    "launches": {
        "launches": ("launch vecadd 100 grid=8,2,2 gap_us=1000; sync 1", None, None, None),
        "small_launches": ("launch vecadd 100 grid=31 gap_us=1000; launch saxpy 5 grid=32; sync 1", "blocks", {"note"},
                           r"tiny grids: 9[0-9]% of \d+k? launches/s have under 32 blocks, too few to fill a GPU"),
        "many_small_launches": ("launch vecadd 100 grid=31 gap_us=1000; launch saxpy 15 grid=32; sync 1", None, None, None),
        "few_small_launches": ("launch vecadd 10; sleep 200", None, None, None),
        "small_launches_in_memory": ("launch vecadd 100 fn=cuLaunchKernelEx gap_us=1000", None, None, None),
    },
}
incidents = {name: incident for some in together.values() for name, incident in some.items()}


def verdicts_on(tool, pid):
    return [row for row in tool.rows if row["by"] == "diagnosis" and row["pid"] == pid]


@case(each=together, alone=True)
def one_rule_per_process(some):
    """Each process is reported by exactly the expected rule, or by none."""
    before = "graph create G; graph add G kernel 4; graph instantiate G Y;"
    workloads = {name: Workload(f"{before if 'graph instantiate' in script else ''} forever; {script}; end")
                 for name, (script, *_) in some.items()}
    tool = Tool("-p", ",".join(str(workload.pid) for workload in workloads.values()), "-i", "1", "-d", "4.5")
    for workload in workloads.values():
        workload.go()
    tool.finish()
    for name, (_, rule, severities, words) in some.items():
        pid = workloads[name].pid
        found = verdicts_on(tool, pid)
        equal({row["rule"] for row in found}, {rule} if rule else set(), f"{name}: rules with a verdict: {found}")
        rows = [row for row in tops.rows(tool, "pid") if row["pid"] == pid]
        check(rows, f"{name}: no rows: {tool.rows}")
        if "result=" in some[name][0] and "result=600" not in some[name][0]:
            check(any(row["errors"] for row in rows), f"{name}: no errors are counted: {rows}")
        equal({row.get("trouble") for row in rows} - {None}, {rule} if rule else set(), f"{name}: trouble in its rows")
        for row in found:
            check(row["severity"] in severities, f"{name}: unexpected severity: {found}")
            check(re.match(words, row["diagnosis"]), f"{name}: {row['diagnosis']} is not {words}")
            check(row["next"].split()[0] in ("cudasync", "cudamemcpy", "gpualloc", "cudagraph", "cudalaunch"),
                  f"{name}: unexpected next command: {row}")
            equal((row["comm"], row["pid"]), ("workload", pid), f"{name}: process")


@case(alone=True)
def rules_that_need_latency():
    """Verdicts that need results or durations of launches exist only with -l."""
    wanted = {"launch saxpy 3 grid=64 result=719; sleep 20": ("launch", "all .* launches fail: CUDA_ERROR_LAUNCH_FAILED"),
              "launch vecadd 1000 grid=64 delay_us=200":
              ("launches", r"launch-bound: one thread spends \d+% of its time in launch calls")}
    workloads = [Workload(f"forever; {script}; end") for script in wanted]
    pids = ",".join(str(workload.pid) for workload in workloads)
    without, tool = (Tool("-p", pids, "-i", "1", "-d", "4", *more) for more in ([], ["-l"]))
    for workload in workloads:
        workload.go()
    without.finish(), tool.finish()
    for workload, (rule, words) in zip(workloads, wanted.values()):
        equal(verdicts_on(without, workload.pid), [], f"{rule}: verdicts without -l")
        found = verdicts_on(tool, workload.pid)
        equal({row["rule"] for row in found}, {rule}, f"{rule}: verdicts with -l")
        check(all(re.match(words, row["diagnosis"]) for row in found), f"the text is not '{words}': {found}")


@case(alone=True)
def small_copies_name_their_caller():
    """The verdict names the function that makes most small copies, from sampled stacks, and --why prints the stack. One
    allocation in an interval of 2 s is not growth."""
    workload = Workload("forever; copy 500 bytes=2048 fn=cudaMemcpy delay_us=50 gap_us=50; end")
    tool, why = Tool("-p", workload.pid, "-i", "2", "-d", "4.5"), Tool("-p", workload.pid, "--why", "-d", "4.5s", json=False)
    workload.go()
    tool.finish(), why.finish()
    found = verdicts_on(tool, workload.pid)
    equal({row["rule"] for row in found}, {"copies"}, f"rules with a verdict: {found}")
    check(found and all(re.search(r"all synchronous, from workload::\S.* \(workload\)$", row["diagnosis"]) for row in found),
          f"no function in the text: {found}")
    check(re.search(r"^ +cudaMemcpy\+0x\w+ \(libcudart", why.text, re.M), f"no stack: {why.text}")


def waited_for_a_cpu(pid):
    """Seconds that the first thread waited for a CPU, and how often it got one (schedstat)."""
    _, waited, turns = map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split())
    return waited / 1e9, turns


@case(each={"alone": 0, "beside_two": 2, "beside_four": 4}, alone=True)
def cpu_wait(others):
    """Checks a launching thread's CPU wait, and the verdict on it, while the thread shares a CPU with `others` busy
    processes."""
    one = lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for _ in range(others):
        harness.at_end.append(subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=one).kill)
    workload = Workload("forever; launch vecadd 10 grid=64 delay_us=500; sleep 2; end", preexec=one)
    tool = Tool("-p", workload.pid, "-i", "1", "-d", "6.5")
    workload.go()
    time.sleep(1)
    waited, turns = waited_for_a_cpu(workload.pid)
    began = time.monotonic()
    tool.finish()
    seconds = time.monotonic() - began
    waited, turns = (after - before for after, before in zip(waited_for_a_cpu(workload.pid), (waited, turns)))
    share = 100 * waited / seconds
    rows = [row for row in tops.rows(tool, "pid") if "runqueue_percent" in row]
    check(len(rows) >= 4, f"too few rows with runqueue_percent: {rows}")
    mean = lambda key: sum(row[key] for row in rows) / len(rows)
    check(abs(mean("runqueue_percent") - share) < 8, f"{rows}: {share:.1f}% according to the kernel")
    check(0.7 * turns / seconds - 5 < mean("switches_per_second") < 1.4 * turns / seconds + 5,
          f"{rows}: {turns / seconds:.1f}/s according to the kernel")
    found = [row for row in verdicts_on(tool, workload.pid) if row["rule"] == "starves"]
    if not others:
        return equal(found, [], f"verdicts without other processes: {rows}")
    check(found, f"no verdict with {others} other processes: {rows}")
    for row in found:
        words = re.fullmatch(r"CUDA thread is ready but gets no CPU \d+% of the time: (\d+) runnable threads "
                             r"on (\d+) CPUs; the process may use 1 CPU", row["diagnosis"])
        check(words and int(words[2]) == os.sysconf("SC_NPROCESSORS_ONLN"), f"unexpected text of the verdict: {row}")
        check(int(words[1]) >= others, f"too few runnable threads: {row}")
    severity = "warning" if share > 65 else "note" if share < 55 else found[-1]["severity"]
    equal(found[-1]["severity"], severity, f"severity at {share:.0f}%")


@case(alone=True, asan=True)
def why():
    """--why prints a verdict once, with the stack; without a problem it prints that there is none."""
    hung = Workload("name solver; launch vecadd 1; sync 1 fn=cudaDeviceSynchronize block_us=60000000")
    well = Workload("forever; launch vecadd 10 grid=64; sleep 20; end")
    tools = [Tool("-p", workload.pid, "--why", "-d", "8s", json=json) for workload in (hung, well) for json in (False, True)]
    idle, busy = [Nvml("device 0", f"utilization {percent}", f"process {well.pid} 1048576", name=f"nvml{percent}").tool(
        "-p", well.pid, "--why", "-d", "8s") for percent in (3, 97)]
    hung.go(), well.go()
    for tool in (*tools, idle, busy):
        tool.finish()
    row, = idle.rows
    equal((row["rule"], row["severity"], row["next"]), ("idle", "note", f"cudagap -p {well.pid} --why"), "verdict from NVML")
    check(re.fullmatch(r"GPU only 3% busy: .* (\d+)% of the time, .*", row["diagnosis"]), f"unexpected text of the verdict: {row}")
    equal(busy.rows[0]["severity"], "none", f"verdict on a busy GPU: {busy.rows}")
    of_hung, of_hung_json, of_well, of_well_json = tools
    check(re.search(rf"!? +{hung.pid} solver +waiting for the GPU for \d\.\d s; no launches since$", of_hung.text, re.M),
          f"unexpected text of the verdict: {of_hung.text}")
    check(re.search(r"^ +cudaDeviceSynchronize\+", of_hung.text, re.M), f"no stack: {of_hung.text}")
    check(f"    next: cudasync -p {hung.pid} -U" in of_hung.lines, f"unexpected next command: {of_hung.text}")
    row, = of_hung_json.rows
    equal((row["rule"], row["tid"], row["severity"]), ("hangs", hung.pid, "warning"), "verdict in JSON")
    check(any("cudaDeviceSynchronize" in line for line in row["details"]), f"no stack in details: {row}")
    check("no problem found in" in of_well.text, f"verdict on a healthy process: {of_well.text}")
    for tool in of_hung, of_well:
        check("no use of a GPU" not in tool.text, f"the tool saw no use of a GPU: {tool.text}")
    row, = of_well_json.rows
    equal((row["severity"], row.get("rule"), row.get("pid")), ("none", None, None), "JSON without a problem")


@case
def stopped_in_a_wait():
    """A stopped process is reported as stopped, not as hanging. After it continues, the stopped time does not count as
    a hang."""
    workload = Workload("launch vecadd 1; touch {dir}/waits; sync 1 fn=cudaDeviceSynchronize block_us=30000000")
    tool = Tool("-p", workload.pid, "-i", "0.5", "-d", "60")
    workload.go()
    wait_until((harness.here / "waits").exists, "the workload waits")
    rows = lambda rule: [row for row in verdicts_on(tool, workload.pid) if row["rule"] == rule]
    os.kill(workload.pid, signal.SIGSTOP)
    stopped = wait_until(lambda: rows("stopped"), "a verdict that it is stopped")[0]
    check(re.fullmatch(r"stopped by a signal while waiting for the GPU; the wait began \d\.\d s ago", stopped["diagnosis"]), f"{stopped}")
    equal((stopped["severity"], stopped["tid"]), ("warning", workload.pid), f"{stopped}")
    equal(rows("hangs"), [], "verdicts of hangs")
    os.kill(workload.pid, signal.SIGCONT)
    hangs = wait_until(lambda: rows("hangs"), "a verdict that it hangs")[0]
    words = re.fullmatch(r"waiting for the GPU for (\d+\.\d) s; no launches since; also stopped or frozen for (\d+\.\d) s \(not included\)", hangs["diagnosis"])
    check(words and float(words[1]) >= 2 and float(words[2]) >= 1, f"{hangs}")
    tool.stop()


@case(each={"80x24": (80, 24, 0), "120x40": (120, 40, 0), "68_processes": (80, 24, 62)}, alone=True)
def first_screen(size):
    """Processes with a problem are on the first screen, within seconds and without a key press, among many healthy
    ones."""
    columns, lines, others = size
    wanted = {"sweep": "all .* waits fail: CUDA_ERROR_ILLEGAL_ADDRESS", "loader": ".* copies/s, all under 64 KiB",
              "notebook": "allocates .* and frees"}
    scripts = {"sweep": incidents["waits_fail"][0], "loader": incidents["small_copies"][0], "notebook": incidents["grows"][0]}
    well = [Workload("wait {go}; forever; launch vecadd 1; sleep 500; end", "workload-driver", start=False) for _ in range(others)]
    programs = {name: Workload(f"name {name}; forever; {script}; end") for name, script in scripts.items()}
    for workload in [*[one.ready() for one in well], *programs.values()]:
        workload.go()
    began = time.monotonic()
    with Screen(interval=1, columns=columns, lines=lines) as screen:
        for name, words in wanted.items():
            screen.wait_for(lambda text: re.search(rf"^(!!|!|\.) +{name} {programs[name].pid} +{words}", text, re.M), f"{name}: {words}")
        took = time.monotonic() - began
        names = lambda: re.findall(r"^ *\d+ (\w+) +(\S+)", screen.text(), re.M)[:3]
        equal([name for name, _ in names()], ["sweep", "loader", "notebook"], "order by severity")
        equal([trouble for _, trouble in names()], ["!!wait", "!copies", ".grows"], "problems")
        screen.keys("!")
        screen.wait_for(f"next: gpualloc -p {programs['notebook'].pid} --leaks")
        screen.keys("q")
        screen.wait_for("LAUNCH/s")
        screen.quit()
    print(f"took {took:.1f} s")


# Script of a program that has a problem and runs among many that have none, and the expected verdict. `hung` hangs
# before tracing begins.
nights = {
    "copies": ("forever; copy 100 bytes=2048 fn=cudaMemcpy delay_us=50 gap_us=50; end", r"\d+k? copies/s, all under 64 KiB"),
    "leak": ("forever; alloc result 8388608; launch vecadd 1; sleep 100; end", r"allocates [\d.]+ MiB/s of device memory and"),
    "hung": ("launch vecadd 5; touch {dir}/hangs; sync 1 fn=cudaDeviceSynchronize block_us=600000000",
             r"waiting for the GPU for over [\d.]+ s \(began before tracing\)"),
    "polls": ("forever; sync 5000 fn=cuEventQuery result=600 delay_us=3; launch scale 1; end", r"polls for completion \d+k? times/s"),
    "captures": ("forever; capture begin; launch vecadd 30 stream=1; capture end; graph 1; sleep 100; end",
                 r"rebuilds graphs \(re-capture storm\): [\d.]+ captures/s"),
    "neighbour": ("forever; launch vecadd 20 grid=64; sleep 10; end", r"shares GPU 0 with neighbour \({pid}\b"),
}


@case(each={**{night: (night, (80, 24)) for night in nights}, "copies_120x40": ("copies", (120, 40))}, alone=True)
def one_of_68_processes(what):
    """The verdict on one of 68 processes is on the first screen 3 s after the command, without a key press."""
    night, (columns, lines) = what
    script, words = nights[night]
    culprit = Workload(f"name {night}; {script}")
    well = [Workload("wait {go}; forever; launch vecadd 1; sleep 500; end", "workload-driver", start=False) for _ in range(67)]
    for workload in [*[one.ready() for one in well], culprit]:
        workload.go()
    # For `neighbour`, the verdict is about the process that is slowed down, and names the process that causes this.
    subject, wanted = (well[0], words.format(pid=culprit.pid)) if night == "neighbour" else (culprit, words)
    seen = re.compile(rf"^(!!|!|\.) +\S+ {subject.pid} +{wanted}", re.M)
    more = {}
    if night == "neighbour":
        more["nvml"] = harness.standin / library
        more["STANDIN_NVML"] = str(Nvml("device 0", *(f"process {one.pid} 1048576" for one in (culprit, subject))).path)
    if night == "hung":
        wait_until((harness.here / "hangs").exists, "the workload hangs")
    calm = os.getloadavg()[0] < os.cpu_count()
    began = time.monotonic()
    with Screen(interval=1, columns=columns, lines=lines, **more) as screen:
        screen.wait_for(seen.search, f"{night}: {seen.pattern}")
        took = time.monotonic() - began
        screen.quit()
    print(f"{night} {columns}x{lines}: {took:.1f} s after the command, load {os.getloadavg()[0]:.1f}")
    limit = 3.3 if calm else 12 * harness.patience  # the test reads the terminal only periodically
    check(took < limit, f"the verdict appeared after {took:.1f} s, not within {limit} s")


@case(alone=True)
def process_without_calls():
    """A process that maps the driver has a row before its first call, with the time that it has made no calls."""
    workload = Workload("dlopen; touch {up}; wait {go}; launch vecadd 7; wait {dir}/never", "workload-driver", warm=False).ready()
    tool = Tool("-p", workload.pid, "-i", "0.5")
    time.sleep(2.2 * harness.patience)
    workload.go()
    time.sleep(1)
    tool.stop()
    workload.process.kill()
    rows = tops.rows(tool, "pid")
    silent = [row for row in rows if not row["launches"]]
    check(len(silent) >= 3, f"too few rows before the call: {rows}")
    equal({(row["pid"], row["comm"]) for row in rows}, {(workload.pid, "workload-driver")}, "processes")
    equal(len({row["process_start_ns"] for row in rows if row["launches"]}), 1, "number of start times")
    equal(sum(row["launches"] for row in rows), 7, "launches")
    quiet = [row.get("quiet_seconds", 0) for row in silent]
    check(any(1 < seconds < 10 * harness.patience for seconds in quiet), f"unexpected seconds without calls: {quiet}")
    equal(len({(row["time"], row["pid"]) for row in rows}), len(rows), "number of intervals")
