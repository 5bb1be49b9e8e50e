# SPDX-License-Identifier: Apache-2.0
"""Requests that cannot work are refused immediately: an exit status, a sentence with the reason, and nothing
attached."""
import os
import shutil
import subprocess
import sys

import harness
import system
from harness import case, check, equal, wait_until
from programs import Tool, Workload, copy_for_all, kill_at_end
from test_hostile import no_control_bytes
from truth import same_counts


def refused(arguments, code, *words, preexec=None):
    """The tool exits with `code` and prints a sentence that contains these words."""
    tool = Tool(*arguments, json=False, banner=False, preexec=preexec, attaches=False)
    check_reason(tool.finish(code, seconds=20), code, words)


def check_reason(tool, code, words):
    equal(tool.text, "", f"standard output of {tool}")
    first, *rest = tool.error.splitlines() or [""]
    check(first.startswith(f"{harness.binary.name}: "), f"{tool} began its message without its name: {tool.error}")
    for word in words:
        check(tool.error.count(word) < 2 or not word.startswith("/"), f"{tool} repeats {word!r}: {tool.error}")
        check(word.lower() in tool.error.lower(), f"{tool} does not mention {word!r}: {tool.error}")
    # After the sentence, at most a hint.
    follow = f"Try '{harness.binary.name} --help'." if code == 2 else "hint: "
    check(len(rest) <= 1 and all(line.startswith(follow) for line in rest), f"{tool} printed more than a sentence and a hint: {tool.error}")
    check(len(first) < 400 and "terminate" not in first, f"{tool} printed too much, or crashed: {first}")


# tests/unit/run covers all invalid options. Here, one per tool is tested in a real process.
usage = {"cudatop": (["-x"], "-x", "error"), "cudalaunch": (["-p", "firefox"], "-p"), "cudamemcpy": (["--by", "colour"], "colour", "kind"),
         "cudasync": (["-l", "nan"], "-l"), "gpualloc": (["-o", "5"], "-o", "--leaks"), "cudagraph": (["--warm-up", "5"], "--storms"),
         "nvioctl": (["--api", "driver"], "--api"), "cudagap": (["-L"], "-L", "--by thread"),
         "ncclwait": (["-L"], "-L", "--by rank"), "gpuspend": (["-L"], "-L", "threads do not hold GPUs")}


def usage_error(name, arguments, *words):
    def run():
        refused(arguments, 2, *words)
    run.__module__, run.__name__ = "test_refusals", f"usage_error[{name}]"
    case(run, tool=name, asan=True)


for name, row in usage.items():
    usage_error(name, *row)


@case
def name_instead_of_a_pid():
    """The message suggests -n, and a matching process if one uses CUDA."""
    tag = f"q{os.getpid():x}"[:8]
    workload = Workload(f"name {tag}-a; touch {{dir}}/named; wait {{dir}}/end").go()
    wait_until((harness.here / "named").exists, "the thread has its name")
    kill_at_end(subprocess.Popen([shutil.copy("/bin/sleep", harness.here / f"{tag}-b"), "600"]))
    message = refused_text(["-p", tag])
    check(f"'{tag}'; to select by name: -n {tag}; process {workload.pid} ({tag}-a) maps CUDA\n" in message, message)
    check(refused_text(["-p", "no\x1b[2Jname"]).endswith("-n NAME\nTry 'cudalaunch --help'.\n"), "the message repeats a name with control characters")
    check("-n " not in refused_text(["-p", "1x"]), "the message about a mistyped number suggests -n")


def refused_text(arguments):
    tool = Tool(*arguments, json=False, banner=False, attaches=False).finish(2)
    no_control_bytes(tool)
    return tool.error


@case(asan=True)
def help_and_version():
    """Ordinary users can use them, too; standard error stays empty."""
    for words, text in (["--help"], "--latency"), (["-h"], "Examples:"), (["-V"], "0."), (["--version"], "cudalaunch"):
        for preexec in (None, lambda: os.setuid(65534)):
            done = subprocess.run([copy_for_all(harness.binary), *words], preexec_fn=preexec, capture_output=True,
                                  text=True, timeout=60)
            equal((done.returncode, done.stderr), (0, ""), f"{words}")
            check(text in done.stdout, f"{words}: {done.stdout}")


def use_copy():
    harness.binary = copy_for_all(harness.binary)


@case
def an_ordinary_user():
    use_copy()
    refused([], 1, "root", "CAP_SYS_ADMIN", preexec=lambda: os.setuid(65534))
    if shutil.which("setpriv"):
        done = subprocess.run(["setpriv", "--bounding-set=-sys_admin,-bpf,-perfmon", "--inh-caps=-all", harness.binary],
                              capture_output=True, text=True, timeout=60)
        equal((done.returncode, done.stdout), (1, ""), "root without the capabilities for tracing")
        check("CAP_SYS_ADMIN" in done.stderr, f"no reason: {done.stderr}")


@case
def root_of_a_user_namespace():
    """This user has all capabilities, but only in the namespace."""
    use_copy()
    done = subprocess.run(["unshare", "-U", "-r", "true"], capture_output=True)
    if done.returncode:
        raise harness.Skip("no user namespaces here")
    done = subprocess.run(["unshare", "-U", "-r", harness.binary, "-d", "1"], capture_output=True, text=True, timeout=60)
    equal((done.returncode, done.stdout), (1, ""), "root of a user namespace")
    check("root" in done.stderr and done.stderr.startswith("cudalaunch: "), f"no reason: {done.stderr}")
    check(len(done.stderr.splitlines()) <= 2, f"more than a sentence and a hint: {done.stderr}")


def without_btf():
    system.private_mounts()
    system.mount("none", "/sys/kernel/btf", "tmpfs")


@case
def a_kernel_without_btf():
    refused([], 1, "BTF", "CONFIG_DEBUG_INFO_BTF", preexec=without_btf)


@case
def another_pid_namespace():
    done = subprocess.run(["unshare", "-p", "-f", "--mount-proc", harness.binary, "-p", "1"], capture_output=True, text=True,
                          timeout=60)
    equal((done.returncode, done.stdout), (1, ""), "in another pid namespace")
    check("container" in done.stderr and "pid" in done.stderr, f"no reason: {done.stderr}")


@case(asan=True)
def processes_that_do_not_exist():
    ended = subprocess.Popen(["true"])
    ended.wait()
    refused(["-p", ended.pid], 1, "no process", str(ended.pid))
    refused(["-p", f"{os.getpid()},{ended.pid}"], 1, "no process", str(ended.pid))
    refused(["-t", ended.pid], 1, "no thread", str(ended.pid))
    zombie = subprocess.Popen(["true"])
    wait_until(lambda: system.stat_fields(zombie.pid)[0] == "Z", "the process has exited")
    tool = Tool("-p", zombie.pid, json=False, banner=False)
    check(tool.process.wait(20) in (0, 1), f"the tool waits for a zombie: {tool.error}")
    zombie.wait()


@case
def thread_instead_of_a_process():
    workload = Workload("threads 1; wait {dir}/end; end")
    workload.go()
    tid, = workload.threads(1)
    refused(["-p", tid], 1, "thread", str(tid), f"-p {workload.pid}", f"-t {tid}")
    (harness.here / "end").touch()
    workload.wait()


def mapped(path):
    """A process that maps this file as executable."""
    code = ("import mmap, os, sys, time; f = os.open(sys.argv[1], os.O_RDONLY)\n"
            "m = mmap.mmap(f, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC); print(); time.sleep(60)")
    process = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
    harness.at_end.append(lambda: (process.kill(), process.wait()))
    process.stdout.readline()
    return process


def patched(data, offset, new):
    return data[:offset] + new + data[offset + len(new):]


broken = {
    "no_elf": lambda driver: b"#!/bin/sh\necho this is no library\n",
    "a_header_only": lambda driver: driver[:64],
    "truncated": lambda driver: driver[:len(driver) // 2],
    "nearly_nothing": lambda driver: driver[:7],
    "another_machine": lambda driver: patched(driver, 18, b"\xb7\0"),
    "32_bits": lambda driver: patched(driver, 4, b"\1"),
    "wild_tables": lambda driver: patched(patched(driver, 32, b"\xff" * 8), 40, b"\xf0" * 8),
    "zeros": lambda driver: bytes(len(driver)),
    "another_library": lambda driver: (harness.standin / "libcudart.so.12").read_bytes(),
}


@case(asan=True, alone=True)
def invalid_libraries():
    """The message names the file. A system-wide run is not affected by such files."""
    driver = (harness.standin / "libcuda.so.1").read_bytes()
    paths = [harness.here / name / "libcuda.so.1" for name in broken]
    for path, make in zip(paths, broken.values()):
        path.parent.mkdir()
        path.write_bytes(make(driver))
        refused(["-p", mapped(path).pid], 1, str(path))
    workload = Workload("launch vecadd 101")
    tool = Tool("--by", "pid,kernel", "-v")
    workload.go()
    truth = workload.truth()
    same_counts(tool.stop(), truth, by=("pid", "kernel"))
    for path in paths:
        check(str(path) in tool.error, f"-v names {path}: {tool.error}")


@case
def a_library_without_symbols():
    """The file contains no CUDA function."""
    path = harness.here / "libcuda.so.1"
    source = harness.here / "empty.c"
    source.write_text("int nothing_of_cuda;\n")
    if subprocess.run(["cc", "-shared", "-nostdlib", "-o", path, source], capture_output=True).returncode:
        raise harness.Skip("no C compiler")
    subprocess.run(["strip", path], check=True)
    refused(["-p", mapped(path).pid], 1, str(path), "functions")
