# SPDX-License-Identifier: Apache-2.0
"""cudagap: where the time of threads that call went, against what they say of it themselves (standin/gaps): each part to
2% or 5 ms, however long it took on this machine; and the parts add up to the time that the clock says."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import harness
import system
from containers import Cgroup, hierarchies, need_hierarchy, own
from gaps import Gaps, check_sums, at_least, blocked, case, near, sums_by_thread, queued, sum_of, within
from harness import check, equal, wait_until
from programs import Tool, Workload, kill_at_end

def same(row, said, part, what):
    """What held it up, how long it waited for a CPU, how long it lived; what is left over is what it did around that."""
    held = said["held_ns"] - said["cpu_ns"] - said["queued_ns"]
    # It may be held up by the same before and after, as by a lock where it joins another thread.
    more = said["wall_ns"] - said["held_ns"] + said["around_ns"]
    within(row[part], held, {"around_ns": more}, f"{part} of {what}")
    within(sum_of(row, queued), said["all_queued_ns"], said, f"wait for a CPU of {what}")
    within(row["wall_ns"], said["wall_ns"], said, f"wall of {what}")
    rest = sum_of(row, blocked) - row[part]
    check(rest <= more + 5e6, f"blocked by anything else: {rest}, {what}")


def trace(gaps, *arguments, **options):
    tool = Tool("-p", gaps.pid, "--by", "thread", *arguments, **options)
    gaps.go()
    said = gaps.report()
    return sums_by_thread(tool.finish()), said, tool


reasons = {"lock": "lock_ns", "sleep": "sleep_ns", "poll": "poll_ns", "pipe": "pipe_ns", "socket": "socket_ns",
           "child": "child_ns", "fault": "fault_ns", "terminal": "other_ns"}


@case(each={f"{reason}, {count}": (reason, count) for reason in reasons for count in (1, 64)},
      long=[f"{reason}, 64" for reason in reasons if reason not in ("lock", "pipe")])
def held_up(which):
    reason, count = which
    threads, said, _ = trace(Gaps(reason, 300, count))
    equal(set(threads), set(said), "threads")
    for tid, row in threads.items():
        same(row, said[tid], reasons[reason], f"{reason}, thread {tid} of {count}")


def they_are_the_terminals(driver):
    """A list of devices in which those of a driver have the number of pseudo-terminals."""
    system.private_mounts()
    pathlib.Path("devices").write_text(f"Character devices:\n136 {driver}\n\nBlock devices:\n")
    system.mount(os.path.abspath("devices"), "/proc/devices", None, system.MS_BIND)


@case(each={"nvidia": "nvidia-uvm", "amd": "kfd"})
def the_gpus_driver(name):
    """Only its devices count as such."""
    threads, said, _ = trace(Gaps("terminal", 300), preexec=lambda: they_are_the_terminals(name))
    (tid, row), = threads.items()
    same(row, said[tid], "driver_ns", "a device of the driver")


@case(each={"read": ("file", "disk_ns", "DISK"), "mapped": ("mapped", "fault_ns", "FAULT")})
def a_slow_file(which):
    """Its name is told, and where the thread waited for it, as the gap has ended."""
    reason, part, word = which
    file, folder = harness.here / "data", harness.here / "slow"
    file.write_bytes(b"x" * 4096)
    folder.mkdir()
    server = subprocess.Popen([sys.executable, pathlib.Path(__file__).parent / "hanging_files.py", folder, file],
                              stdout=subprocess.PIPE)
    harness.at_end.append(lambda: (server.kill(), server.wait(), subprocess.run(["umount", "-l", folder])))
    equal(server.stdout.readline(), b"up\n", "the file system is there")
    gaps = Gaps(reason, 0, 1, folder / "data")
    tool, lines, files = (Tool("-p", gaps.pid, *more, losses=True) for more in (
        ["--by", "thread"], ["-U", "-l", "100ms"], ["--files"]))
    status = (folder / "data").stat()
    server.send_signal(signal.SIGSTOP)
    gaps.go()
    time.sleep(0.4)
    server.send_signal(signal.SIGCONT)
    wait_until(lambda: lines.events, "the gap is told")
    (gaps.folder / "end").touch()
    said = gaps.report()
    (tid, row), = sums_by_thread(tool.finish()).items()
    check(said[tid]["held_ns"] > 2e8, f"the file was slow: {said}")
    same(row, said[tid], part, "a slow file")
    gap, = lines.finish().events
    name = "data" if reason == "file" else "slow/data"  # the kernel's entry of a mount's root has no name
    equal((gap["block_reason"], gap["block_file"]), (part.removesuffix("_ns"), name), f"{gap}")
    within(gap["block_ns"], said[tid]["held_ns"] - said[tid]["cpu_ns"] - said[tid]["queued_ns"], said[tid], "longest block")
    check(re.fullmatch(rf"{word} \d+\.\d ms on {name}.*", gap["wakers"][0]), f"its line: {gap['wakers']}")
    check(any("folio" in frame or "fuse" in frame or "page" in frame for frame in gap["frames"]), f"{gap['frames']}")
    of_file, = [row for row in files.finish().rows if row.get("file") == "data"]
    equal((of_file["inode"], of_file["device"]), (status.st_ino, os.major(status.st_dev) << 20 | os.minor(status.st_dev)), "which")
    check(gap["block_ns"] - 5e6 <= of_file["blocked_ns"] <= row[part], f"for how long: {of_file}, of {row}, {gap}")
    check(of_file["p50_ns"] <= of_file["p95_ns"] <= of_file["blocked_ns"] * 1.07, f"of the longest: {of_file}")
    check("read_bytes" not in of_file and "written_bytes" not in of_file, f"it is on no disk: {of_file}")
    equal(of_file["average_ns"], of_file["blocked_ns"] // of_file["blocks"], "average")


@case
def stopped():
    """By job control while it computes: that is no page fault."""
    gaps = Gaps("cpu", 300)
    tool = Tool("-p", gaps.pid, "--by", "thread")
    gaps.go()
    time.sleep(0.1)
    before = time.monotonic_ns()
    os.kill(gaps.pid, signal.SIGSTOP)
    since = time.monotonic_ns()
    time.sleep(0.3)
    until = time.monotonic_ns()
    os.kill(gaps.pid, signal.SIGCONT)
    after = time.monotonic_ns()
    said = gaps.report()
    (tid, row), = sums_by_thread(tool.finish()).items()
    # It stops and goes on where it has a CPU.
    check(until - since - said[tid]["all_queued_ns"] - 5e6 <= row["stopped_ns"] <= after - before + 5e6, f"stopped: {row}")
    within(sum_of(row, queued), said[tid]["all_queued_ns"], said[tid], "wait for a CPU")
    on_cpu(row, said[tid])


@case(each={"stopped": None, "frozen": "v2"})
def suspended_in_a_call(hierarchy):
    """That is no part of its waits for the GPU."""
    workload = Workload("launch vecadd 1; touch {dir}/waits; repeat 100; sync 1 block_us=20000; end; launch vecadd 1", "workload-driver")
    cgroup = Cgroup(hierarchy, f"{own}frozen-{workload.pid}").add(workload.pid) if hierarchy else None

    def suspend(on):
        if cgroup:
            pathlib.Path(cgroup.path, "cgroup.freeze").write_text(str(int(on)))
        else:
            os.kill(workload.pid, signal.SIGSTOP if on else signal.SIGCONT)
    tool = Tool("-p", workload.pid, "--by", "thread")
    workload.go()
    wait_until((harness.here / "waits").exists, "it waits")
    suspend(True)
    time.sleep(1)
    suspend(False)
    workload.wait()
    (_, row), = sums_by_thread(tool.finish()).items()
    check(row["stopped_ns"] >= 8e8, f"suspended: {row}")
    check(row["wait_ns"] >= 1.8e9 and row["other_ns"] < 2e8, f"its waits: {row}")


def on_cpu(row, said):
    """What the hypervisor took from a guest while it ran is not in the kernel's account (CONFIG_PARAVIRT_TIME_ACCOUNTING),
    which has the time of a switch with another thread than the tool has, too: 24 ms in 720 have been seen."""
    check(abs(row["cpu_ns"] - said["cpu_ns"]) <= 2e7 + 0.02 * said["wall_ns"] + said["around_ns"], f"time on a CPU: {row}, {said}")


def on_one_cpu():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def burners(count, preexec):
    for _ in range(count):
        kill_at_end(subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=preexec))


@case(alone=True)
def waiting_for_a_cpu():
    """Beside three that burn the same one."""
    burners(3, on_one_cpu)
    threads, said, _ = trace(Gaps("cpu", 300, preexec=on_one_cpu))
    (tid, row), = threads.items()
    check(said[tid]["queued_ns"] > 3e8, f"it waited: {said}")
    within(row["runq_ns"], said[tid]["all_queued_ns"], said[tid], "wait for a CPU")
    on_cpu(row, said[tid])
    within(row["wall_ns"], said[tid]["wall_ns"], said[tid], "wall")
    equal(row["throttled_ns"], 0, "nothing is throttled")


def give_quotas():
    """To cgroups below the root of the second version, for as long as the case lasts."""
    given = pathlib.Path(need_hierarchy("v2"), "cgroup.subtree_control")
    if "cpu" in given.read_text().split():
        return
    try:
        given.write_text("+cpu")
    except OSError as error:
        raise harness.Skip(f"cgroups have no quotas here: {error}")
    harness.at_end.append(lambda: given.write_text("-cpu"))  # after what is made later is removed


class Quota:
    """A cgroup with a fifth of a CPU, of the version that this machine has quotas in."""

    def __init__(self):
        first = "cpu" in hierarchies()
        if not first:
            give_quotas()
        self.group = Cgroup("cpu" if first else "v2", "gpusnoop-test-quota")
        files = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"} if first else {"cpu.max": "20000 100000"}
        for name, value in files.items():
            pathlib.Path(self.group.path, name).write_text(value)

    def throttled_ns(self):
        name, number = re.search(r"(throttled_time|throttled_usec) (\d+)", pathlib.Path(self.group.path, "cpu.stat").read_text()).groups()
        return int(number) * (1000 if name == "throttled_usec" else 1)


@case(alone=True, each={"alone": 0, "beside another": 1})
def throttled(others):
    """What its cgroup's quota costs it is told apart from what others on the same CPU do, who have that once the quota is
    there again: the kernel counts the first for the cgroup, and the sum of both for the thread."""
    quota = Quota()
    burners(others, on_one_cpu)
    gaps = Gaps("cpu", 200, preexec=lambda: (on_one_cpu(), quota.group.join()))
    tool = Tool("-p", gaps.pid, "--by", "thread")
    before = quota.throttled_ns()
    gaps.go()
    said = gaps.report()
    (tid, row), = sums_by_thread(tool.finish()).items()
    check(row["throttled_ns"] > 5e7, f"it was throttled, if less where others take its CPU: {row}")
    # Of its cgroup is also the thread that waits for its end.
    within(quota.throttled_ns() - before, row["throttled_ns"], said[tid], "throttled, by the cgroup")
    within(sum_of(row, queued), said[tid]["all_queued_ns"], said[tid], "throttled, and wait for a CPU")
    on_cpu(row, said[tid])


script = """
launch vecadd 5 block_us=40000; copy 3 fn=cuMemcpyHtoD_v2 block_us=50000; sync 4 fn=cuStreamSynchronize block_us=60000
alloc a 4096 block_us=70000; lookup vecadd; sleep 200
"""


@case(each={"1": 1, "64": 64}, long=["64"])
def in_calls(count):
    """However a call is held up, its time is the call's, but for waits for a CPU."""
    workload = Workload(f"threads {count}; {script.replace('alloc a', 'alloc .a')} end" if count > 1 else script,
                        "workload-driver")
    tool = Tool("-p", workload.pid, "--by", "thread")
    workload.go()
    truth = workload.truth()
    threads = sums_by_thread(tool.finish())
    kinds = {"kernel": "launch_ns", "copy": "copy_ns", "sync": "wait_ns", "alloc": "memory_ns"}
    least = {"launch_ns": 2e8, "memory_ns": 7e7}
    called = {call["tid"] for call in truth}
    check(len(called) == count and called <= set(threads), f"threads: {set(threads)}, those that called: {called}")
    for call in truth:
        row, part = threads[call["tid"]], kinds[call["kind"]]
        # How long launches take, the truth does not say; and a thread's first copy allocates.
        known = part not in ("launch_ns", "memory_ns")
        slept, took = (call["slept_ns"], call["duration_ns"]) if known else (least[part], row["wall_ns"])
        check(slept - 5e6 <= row[part] <= took + 5e6, f"{part}: {row}, {call}")
    for tid in called:  # the time is up so long after the call, on a CPU or not
        off = abs(threads[tid]["sleep_ns"] - 2e8)
        check(off <= 5e6 + threads[tid]["runq_ns"], f"sleep: {threads[tid]}")


@case
def the_gpu_is_busy():
    """Nothing holds the thread up: it waits for the device nearly all of the time."""
    workload = Workload("repeat 30; launch vecadd 5; sync 1 block_us=20000; end", "workload-driver")
    tool = Tool("-p", workload.pid)
    workload.go().wait()
    row, = tool.finish().rows
    check_sums([row])
    check(row["wait_ns"] > 0.8 * row["wall_ns"] and sum_of(row, blocked) < 0.05 * row["wall_ns"], f"{row}")


@case
def jumped_out_of_a_call():
    """Time after a call that was left without a return is not part of that call: the thread leaves its CPU further up
    its stack."""
    script = "leave 50; deeper 8192; sync 1 block_us=60000000; end; end; sleep 400; launch vecadd 1"
    workload = Workload(script, "workload-driver")
    tool = Tool("-p", workload.pid, losses=True)
    workload.go().wait()
    row, = tool.finish().rows
    check_sums([row])
    equal(tool.lost, {"calls_left": 1}, "losses")
    check(row["wait_ns"] > 0, "the call waits until it is left")
    at_least(row["sleep_ns"], 4e8, "the sleep after it")


@case
def intervals():
    """What goes on is told as far as it has come; all that is told is the thread's life, once."""
    threads, said, tool = trace(Gaps("sleep", 1200, 3), "-i", "0.2")
    check(len(tool.rows) >= 15, f"each thread, each time: {len(tool.rows)}")
    for tid, row in threads.items():
        same(row, said[tid], "sleep_ns", f"thread {tid}, in parts")
    for row in tool.rows:
        check(row["wall_ns"] <= row["interval_ns"] + 5e6, f"no more than there was: {row}")
    whole = [row for row in tool.rows if row["sleep_ns"] == row["wall_ns"]]
    for row in whole:
        near(row["wall_ns"], row["interval_ns"], "wall of a thread that was there all the time")
    check(len(whole) >= 9, f"there are some: {len(whole)}")


@case
def per_process():
    """Threads add up, and their time does."""
    gaps = Gaps("sleep", 300, 8)
    tool = Tool("-p", gaps.pid)
    gaps.go()
    said = gaps.report()
    row, = tool.finish().rows
    check_sums([row])
    equal((row["pid"], row["threads"]), (gaps.pid, 8), "whose they are")
    least, more = (sum(one[key] for one in said.values()) for key in ("wall_ns", "around_ns"))
    within(row["wall_ns"], least, {"around_ns": more}, "wall of all threads")


@case
def ends():
    """Who is killed while it is held up has its time up to then; who execs in a thread begins anew."""
    gaps = Gaps("sleep", 60000)
    tool = Tool("-p", gaps.pid, "--by", "thread")
    begin = time.monotonic_ns()
    gaps.go()
    time.sleep(0.4)
    gaps.process.kill()
    gaps.process.wait()
    lived = time.monotonic_ns() - begin
    row, = sums_by_thread(tool.finish()).values()
    check(3.9e8 <= row["wall_ns"] <= lived, f"lived {lived}: {row}")
    workload = Workload("launch vecadd 1; sleep 200; exec; sync 1 block_us=100000; sleep 100; end", "workload-driver")
    tool = Tool("-p", workload.pid)
    workload.go().wait()
    rows = tool.finish().rows
    check_sums(rows)
    at_least(sum(row["sleep_ns"] for row in rows), 3e8, "sleep of both programs")
    at_least(sum(row["wait_ns"] for row in rows), 1e8, "wait of the second")


@case
def columns():
    """Those that have nothing in any row are left out, unless they are asked for."""
    def headers(*arguments):
        gaps = Gaps("sleep", 300)
        tool = Tool("-p", gaps.pid, *arguments, json=False)
        gaps.go().report()
        lines = [line.split() for line in tool.finish().text.splitlines()]
        return dict(zip(*lines[-2:]))
    usual = headers()
    check({"PID", "COMM", "THREADS", "WALL(s)", "SLEEP%", "SWITCH/s"} <= set(usual), f"usual ones: {usual}")
    check(not {"LOCK%", "DISK%", "COPY%"} & set(usual), f"without what is empty: {usual}")
    check(float(usual["SLEEP%"]) > 90, f"it slept: {usual}")
    more = headers("--columns", "+COPY%")
    equal(more["COPY%"], "0.0", "a column that is asked for is there, and 0")


def without_type(name):
    """The kernel's types without that one, for it has another name."""
    system.private_mounts()
    path = "/sys/kernel/btf/vmlinux"
    other = name[:-1] + b"_"
    pathlib.Path("btf").write_bytes(pathlib.Path(path).read_bytes().replace(b"\0" + name + b"\0", b"\0" + other + b"\0"))
    system.mount(os.path.abspath("btf"), path, None, system.MS_BIND)


@case(each={"sched_switch": b"btf_trace_sched_switch", "SCHED_INFO": b"sched_info"})
def what_the_kernel_lacks(name):
    gaps = Gaps("sleep", 0)
    tool = Tool("-p", gaps.pid, json=False, banner=False, preexec=lambda: without_type(name)).finish(1)
    first, hint = tool.error.splitlines()
    word = "sched_switch" if b"switch" in name else "CONFIG_SCHED_INFO"
    check(word in first and hint.startswith("hint: "), f"it says what is missing: {tool.error}")
