# SPDX-License-Identifier: Apache-2.0
"""Fallbacks if the kernel refuses BPF programs: the tool tries the next way of attaching, then runs without optional
features, and reports each refusal. A preloaded library (standin/kernel) refuses selected system calls; everything else
is real."""
import ctypes
import os
import struct

import copies
import harness
import system
import truth
import waits
from harness import case, check, equal
from programs import Tool, Workload, ignore_and_block_signals

script = """
launch vecadd 101 grid=3,2; copy 17 bytes=70001; copy 5 fn=cudaMemset bytes=99; alloc a 10007; free a; sync 7
launch saxpy 53; copy 3 fn=cudaMemcpyAsync bytes=11 kind=1 stream=1
"""
too_large = "7 BPF program is too large. Processed 1000001 insn"


def refusing(*lines):
    return {"LD_PRELOAD": str(harness.standin / "refuse.so"), "REFUSE": "\n".join(lines)}


def run(*arguments, refuse):
    workload = Workload(script)
    tool = Tool("-p", workload.pid, *arguments, env=refusing(*refuse))
    workload.go().wait()
    return tool.finish(), workload


def attached_by(tool):
    return {record["tier"] for record in tool.of_type("attached")}


def remarks(tool):
    return {remark for record in tool.of_type("attached") for remark in record.get("remarks", [])}


def same_launches(tool, workload):
    truth.same_counts(tool, [call for call in workload.truth() if call["kind"] == "kernel"], by=("kernel",))


def best():
    tool = Tool("-p", os.getpid(), "-d", 0.01)
    return attached_by(tool.finish()).pop()


@case
def session_programs_refused():
    """If programs that only sessions need are refused, the tool attaches by multi."""
    if best() != "session":
        raise harness.Skip("this kernel has no sessions")
    tool, workload = run("-l", "--by", "kernel", refuse=["program launch_session 22 R3 is no R3"])
    equal(attached_by(tool), {"multi"}, "tier")
    sentence = ('attaching by multi instead of session: the kernel refused the BPF program launch_session: the verifier '
                'reports "R3 is no R3"')
    equal(remarks(tool), {sentence}, "remarks in JSON")
    check(sentence in tool.error, f"no message on standard error: {tool.error}")
    same_launches(tool, workload)


@case
def sessions_and_multi_refused():
    """If the attach types of sessions and uprobe_multi are refused, the tool attaches by tracefs."""
    tool, workload = run("-l", "--by", "kernel", refuse=["program launch_*@57 22 no", "program launch_*@48 22 no"])
    equal(attached_by(tool), {"tracefs"}, "tier")
    same_launches(tool, workload)


def run_refused(*arguments, refuse):
    """Runs a tool that must exit with 1, print a message and a hint on standard error, and print nothing else."""
    tool = Tool(*arguments, json=False, banner=False, env=refusing(*refuse), attaches=False)
    tool.finish(1)
    equal(tool.text, "", "standard output")
    lines = tool.error.splitlines()
    equal([line.split(":")[0] for line in lines], [harness.binary.name, "hint"], f"messages: {tool.error}")
    return lines[0]


@case(tool="cudamemcpy")
def optional_program_refused():
    """Without an optional program, other counts are exact, and the best tier is used."""
    tool, workload = run(refuse=[f"program batch_* {too_large}"])
    equal(attached_by(tool), {best()}, "tier")
    equal(len(remarks(tool)), 1, f"{remarks(tool)}")
    sentence = remarks(tool).pop()
    check(sentence.startswith("copies in batches are not counted: the kernel refused the BPF program batch_"), sentence)
    check(sentence.endswith("the verifier gave up after 1000001 instructions"), sentence)
    copies.same(tool, workload.truth(), by=("kind",))


@case(tool="cudatop", each={"copies": ("copy", ("copies", "h2d_bytes", "d2h_bytes", "small_percent", "copies_per_second")),
                            "waits": ("wait", ("waits", "blocked_ns", "polls", "blocked_percent")),
                            "memory": ("alloc", ("live_bytes", "allocs", "frees", "allocation_failures"))})
def columns_without_data(row):
    """Columns whose program was refused are missing instead of 0; others are exact."""
    program, keys = row
    tool, workload = run(0.5, refuse=[f"program {program}_* {too_large}"])
    for key in keys:
        equal({key in r for r in tool.rows}, {False}, f"whether {key} exists")
    what = {"copy": "copies", "wait": "waits", "alloc": "memory"}[program]
    check(any(remark.startswith(f"{what} ") and "unknown" in remark for remark in remarks(tool)), f"{remarks(tool)}")
    launches = [call for call in workload.truth() if call["kind"] == "kernel"]
    equal(sum(r["launches"] for r in tool.rows), sum(call["count"] for call in launches), "launches")


@case(tool="cudasync")
def no_way_of_attaching_is_left():
    sentence = run_refused("-d", 1, refuse=["program wait_* 22 R3 is no R3"])
    check(sentence.endswith(': the verifier reports "R3 is no R3"'), sentence)


causes = {
    "function": ("program launch_* 22 kfunc 'bpf_session_is_return' is referenced but wasn't resolved",
                 "it calls bpf_session_is_return, which this kernel lacks or has in a different form"),
    "helper": ("program launch_* 22 unknown func bpf_loop#181", "it calls bpf_loop, which this kernel lacks or has in a different form"),
    "too_large": (f"program launch_* {too_large}", "the verifier gave up after 1000001 instructions"),
    "verifier": ("program launch_* 13 invalid mem access 'scalar'",
                 "the verifier reports \"invalid mem access 'scalar'\""),
    "map": ("map threads 22", "the map threads cannot be created: Invalid argument"),
    "memory": ("map calls 12", "out of memory for the map calls"),
    "permission": ("program * 1", "BPF is not permitted here: Operation not permitted"),
}


@case(each=causes)
def each_cause_has_a_sentence(row):
    refuse, words = row
    sentence = run_refused("-d", 1, refuse=[refuse])
    check(sentence.startswith("cudalaunch: the kernel refused the BPF program"), sentence)
    check(sentence.endswith(words), sentence)


@case
def requested_tier_is_missing():
    """A tier named by --attach has no fallback."""
    tool = Tool("--attach", "session", "-l", "-d", 1, json=False, banner=False, env=refusing("program *@57 22"),
                attaches=False)
    tool.finish(1)
    lines = tool.error.splitlines()
    equal(lines[0], "cudalaunch: this kernel cannot attach by session", f"messages: {tool.error}")
    check(len(lines) == 2 and lines[1].startswith("hint: leave out --attach"), tool.error)


@case(tool="nvioctl")
def nvioctl_without_a_program():
    """nvioctl also omits programs that cannot be loaded."""
    tool = Tool("--attach", "tracepoint", "-p", os.getpid(), "-d", 0.2, env=refusing("program open_exit 22 no")).finish()
    equal(attached_by(tool), {"tracepoint"}, "tier")
    equal(remarks(tool), {'the kernel refused the BPF program open_exit: the verifier reports "no"'}, "remarks")


@case(each={"own": None, "as before 46ba0e49b642": ["link -1 9", "link [1-9]* 3"]})
def links_of_one_process(refuse):
    """On kernels that compare the target of a link with thread ids instead of process ids, links get no target, and the
    BPF programs filter by process."""
    system.need_tier("multi")
    threads = "threads 3; launch vecadd 101; end; launch saxpy 53"
    target, other = Workload(threads), Workload(threads)
    tool = Tool("-p", target.pid, "--by", "pid,kernel", "--attach", "multi", env=refusing(*refuse) if refuse else None)
    for workload in target, other:
        workload.go().wait()
    truth.same_counts(tool.finish(), target.truth(), by=("pid", "kernel"))


# Ids of bpf_probe_read(), bpf_probe_read_kernel() and their string variants, which a kernel in confidentiality mode
# lacks.
locked_down = [f"helper {number} 22" for number in (4, 45, 113, 115)]


@case
def a_kernel_that_is_locked_down():
    """No BPF program of the tool calls a helper in `locked_down`. Without precautions, libbpf replaces
    bpf_probe_read_user() by bpf_probe_read() if bpf_probe_read_kernel() is missing."""
    tool, workload = run("-l", "--by", "kernel", refuse=locked_down)
    equal((attached_by(tool), remarks(tool)), ({best()}, set()), "tier and remarks")
    same_launches(tool, workload)
    harness.binary = harness.binary.with_name("nvioctl")
    sentence = run_refused("-d", 1, refuse=locked_down)
    check("confidentiality" in sentence, sentence)


# Simulates a kernel that implements return probes by a system call (335), and applies the process's seccomp filter to
# it: the call fails with the error of the tool's own test filter (EDOM, 33).
kills_under_seccomp = ["call 335 33"]


def under_seccomp():
    """Preexec function: installs a seccomp filter that allows everything."""
    libc = ctypes.CDLL(None, use_errno=True)
    allow = (ctypes.c_uint64 * 1)(6 | 0x7fff0000 << 32)  # BPF_RET | BPF_K, SECCOMP_RET_ALLOW
    program = struct.pack("HxxxxxxP", 1, ctypes.addressof(allow))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


@case(each={"launches": ("cudalaunch", None), "waits": ("cudasync", None),
            "ignore_and_block_signals": ("cudalaunch", ignore_and_block_signals)})
def returns_that_kill(run_by):
    """On a kernel that implements return probes by a system call, processes under seccomp get no return probes. Other
    processes get them if they are traced by -p."""
    tool, preexec = run_by
    harness.binary = harness.binary.with_name(tool)
    free, filtered = Workload(script), Workload(script, preexec=under_seccomp)
    for arguments, what in ((["-p", free.pid], None), (["-p", filtered.pid], filtered)):
        needs = tool == "cudasync"
        if what and needs:
            sentence = run_refused(*arguments, refuse=kills_under_seccomp)
            check("return probes kill processes under seccomp" in sentence, sentence)
            filtered.go().wait()  # the process is not killed
            continue
        run = Tool(*arguments, *([] if needs else ["--by", "kernel"]), env=refusing(*kills_under_seccomp), preexec=preexec)
        equal("return probes kill" in run.error, what is not None, f"whether return probes are reported: {run.error}")
        (what or free).go().wait()
        run.finish()
        if not needs:
            same_launches(run, what or free)


@case(tool="cudasync")
def returns_that_do_not_kill():
    """Without a refused system call, the tool decides by this kernel's real behaviour: processes under seccomp survive,
    and their waits are counted."""
    filtered = Workload(script, preexec=under_seccomp)
    tool = Tool("-p", filtered.pid)
    filtered.go().wait()
    waits.same_waits(tool.finish(), filtered.truth(), by=("pid", "wait"))
