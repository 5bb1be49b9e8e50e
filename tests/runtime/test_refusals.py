# SPDX-License-Identifier: Apache-2.0
"""What cannot work is refused at once: the exit status, one sentence that says why, and nothing attached."""
import os
import shutil
import subprocess
import sys

import harness
import system
from harness import case, check, equal, wait_until
from programs import Tool, Workload, kill_at_end
from test_hostile import no_control_bytes
from truth import same_counts


def refused(arguments, code, *words, preexec=None):
    """The tool ends with `code` and says a sentence with these words in it."""
    tool = Tool(*arguments, json=False, banner=False, preexec=preexec, attaches=False)
    said_why(tool.finish(code, seconds=20), code, words)


def said_why(tool, code, words):
    equal(tool.text, "", f"standard output of {tool}")
    first, *rest = tool.error.splitlines() or [""]
    check(first.startswith(f"{harness.binary.name}: "), f"{tool} says: {tool.error}")
    for word in words:
        check(tool.error.count(word) < 2 or not word.startswith("/"), f"{tool} says it twice: {tool.error}")
        check(word.lower() in tool.error.lower(), f"{tool} does not mention {word!r}: {tool.error}")
    # The sentence, and what to do about it.
    follow = f"Try '{harness.binary.name} --help'." if code == 2 else "hint: "
    check(len(rest) <= 1 and all(line.startswith(follow) for line in rest), f"{tool} says: {tool.error}")
    check(len(first) < 400 and "terminate" not in first, f"{tool} says: {first}")


# All mistakes are tried in tests/unit/run; here is what a process makes of one.
usage = {"cudatop": (["-x"], "-x", "error"), "cudalaunch": (["-p", "firefox"], "-p"), "cudamemcpy": (["--by", "colour"], "colour", "kind"),
         "cudasync": (["-l", "nan"], "-l"), "gpualloc": (["-o", "5"], "-o", "--leaks"), "cudagraph": (["--warm-up", "5"], "--storms"),
         "nvioctl": (["--api", "driver"], "--api"), "cudagap": (["-L"], "-L", "--by thread"),
         "ncclwait": (["-L"], "-L", "--by rank"), "gpuspend": (["-L"], "-L", "holds no GPU")}


def usage_error(name, arguments, *words):
    def run():
        refused(arguments, 2, *words)
    run.__module__, run.__name__ = "test_refusals", f"usage_error[{name}]"
    case(run, tool=name, asan=True)


for name, row in usage.items():
    usage_error(name, *row)


@case
def a_name_for_a_pid():
    """The sentence has the option for names, and the process that may be meant, if it uses CUDA."""
    tag = f"q{os.getpid():x}"[:8]
    workload = Workload(f"name {tag}-a; touch {{dir}}/named; wait {{dir}}/end").go()
    wait_until((harness.here / "named").exists, "it has its name")
    kill_at_end(subprocess.Popen([shutil.copy("/bin/sleep", harness.here / f"{tag}-b"), "600"]))
    said = refused_text(["-p", tag])
    check(f"'{tag}'; for a name there is -n: -n {tag}; process {workload.pid} ({tag}-a) maps CUDA\n" in said, said)
    check(refused_text(["-p", "no\x1b[2Jname"]).endswith("-n NAME\nTry 'cudalaunch --help'.\n"), "what the shell would take apart")
    check("-n " not in refused_text(["-p", "1x"]), "a number that is mistyped")


def refused_text(arguments):
    tool = Tool(*arguments, json=False, banner=False, attaches=False).finish(2)
    no_control_bytes(tool)
    return tool.error


@case(asan=True)
def help_and_version():
    """Also for ordinary users: they print to standard output, and nothing else."""
    for words, text in (["--help"], "--latency"), (["-h"], "Examples:"), (["-V"], "0."), (["--version"], "cudalaunch"):
        for preexec in (None, lambda: os.setuid(65534)):
            done = subprocess.run([copy_for_all(), *words], preexec_fn=preexec, capture_output=True, text=True, timeout=60)
            equal((done.returncode, done.stderr), (0, ""), f"{words}")
            check(text in done.stdout, f"{words}: {done.stdout}")


def copy_for_all():
    """The folder that the tool was built in may be closed to ordinary users."""
    copy = harness.here / "cudalaunch"
    if not copy.exists():
        shutil.copy(harness.binary, copy)
    return copy


def use_copy():
    harness.binary = copy_for_all()


@case
def an_ordinary_user():
    use_copy()
    refused([], 1, "root", "CAP_SYS_ADMIN", preexec=lambda: os.setuid(65534))
    if shutil.which("setpriv"):
        done = subprocess.run(["setpriv", "--bounding-set=-sys_admin,-bpf,-perfmon", "--inh-caps=-all", harness.binary],
                              capture_output=True, text=True, timeout=60)
        equal((done.returncode, done.stdout), (1, ""), "root without what tracing takes")
        check("CAP_SYS_ADMIN" in done.stderr, f"says why: {done.stderr}")


@case
def root_of_a_user_namespace():
    """It has all capabilities, over nothing that matters here."""
    use_copy()
    done = subprocess.run(["unshare", "-U", "-r", "true"], capture_output=True)
    if done.returncode:
        raise harness.Skip("no user namespaces here")
    done = subprocess.run(["unshare", "-U", "-r", harness.binary, "-d", "1"], capture_output=True, text=True, timeout=60)
    equal((done.returncode, done.stdout), (1, ""), "root of a user namespace")
    check("root" in done.stderr and done.stderr.startswith("cudalaunch: "), f"says why: {done.stderr}")
    check(len(done.stderr.splitlines()) <= 2, f"says it in a sentence: {done.stderr}")


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
    equal((done.returncode, done.stdout), (1, ""), "in a container with process ids of its own")
    check("container" in done.stderr and "pid" in done.stderr, f"says why: {done.stderr}")


@case(asan=True)
def processes_that_are_none():
    ended = subprocess.Popen(["true"])
    ended.wait()
    refused(["-p", ended.pid], 1, "no process", str(ended.pid))
    refused(["-p", f"{os.getpid()},{ended.pid}"], 1, "no process", str(ended.pid))
    refused(["-t", ended.pid], 1, "no thread", str(ended.pid))
    zombie = subprocess.Popen(["true"])
    wait_until(lambda: system.stat_fields(zombie.pid)[0] == "Z", "the process has ended")
    tool = Tool("-p", zombie.pid, json=False, banner=False)
    check(tool.process.wait(20) in (0, 1), f"a zombie is no reason to wait: {tool.error}")
    zombie.wait()


@case
def a_thread_for_a_process():
    workload = Workload("threads 1; wait {dir}/end; end")
    workload.go()
    tid, = workload.threads(1)
    refused(["-p", tid], 1, "thread", str(tid), f"-p {workload.pid}", f"-t {tid}")
    (harness.here / "end").touch()
    workload.wait()


def mapped(path):
    """A process that maps this file as a program would."""
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
def libraries_that_are_none():
    """The sentence names the file; and who traces everything is not disturbed by them."""
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
    """Sections and dynamic symbols are gone: nothing can be found in it, and nothing is."""
    path = harness.here / "libcuda.so.1"
    source = harness.here / "empty.c"
    source.write_text("int nothing_of_cuda;\n")
    if subprocess.run(["cc", "-shared", "-nostdlib", "-o", path, source], capture_output=True).returncode:
        raise harness.Skip("no C compiler")
    subprocess.run(["strip", path], check=True)
    refused(["-p", mapped(path).pid], 1, str(path), "functions")
