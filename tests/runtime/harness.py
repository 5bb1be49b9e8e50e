# SPDX-License-Identifier: Apache-2.0
"""Runs the cases, each in a process of its own: none can hang the run, and what one leaves behind is found and told.

A case is a function with @case that fails by raising and skips by raising Skip. One line per case:
    ok NAME (0.8 s)        FAIL NAME: reason        skip NAME: reason
"""
import collections
import fnmatch
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import traceback

import cgroupfs
import leftovers
import system

root = pathlib.Path(__file__).resolve().parents[2]
build = pathlib.Path(os.environ.get("BUILD", root / "build")).resolve()
standin = build / "standin"

# A slow machine takes so many times as long as the cases think.
patience = float(os.environ.get("GPUSNOOP_PATIENCE", 1))

here = None                         # folder of the running case
binary = build / "cudalaunch"       # what Tool starts: the tool of the case
at_end = []                         # called when the case ends, however it does

Case = collections.namedtuple("Case", "name function arguments timeout binary")
cases = []


class Skip(Exception):
    pass


class Failure(AssertionError):
    pass


def case(function=None, *, each=None, timeout=90, asan=False, tool="cudalaunch"):
    """Registers a case of a tool; with `each`, a dict of names to values, one case per value, which is the function's
    argument. `asan`: once more with the sanitizers' build of the tool."""
    if function is None:
        return lambda f: case(f, each=each, timeout=timeout, asan=asan, tool=tool)
    module = function.__module__.removeprefix("test_")
    variants = {f"[{name}]": (value,) for name, value in each.items()} if each else {"": ()}
    for suffix, arguments in variants.items():
        name = f"{module}.{function.__name__}{suffix}"
        cases.append(Case(name, function, arguments, timeout, build / tool))
        if asan and (build / "asan" / tool).exists():
            cases.append(Case(name + "[asan]", function, arguments, 3 * timeout, build / "asan" / tool))
    return function


def equal(got, want, what=""):
    if got == want:
        return
    if isinstance(got, dict) and isinstance(want, dict):  # only where they differ: the rest may be hundreds of rows
        keys = [k for k in {**want, **got} if got.get(k) != want.get(k)]
        lines = [f"{k}: got {got.get(k)!r}, want {want.get(k)!r}" for k in keys]
        more = f"; and {len(lines) - 6} more" if len(lines) > 6 else ""
        raise Failure(f"{what}: " + "; ".join(lines[:6]) + more)
    raise Failure(f"{what}: got {got!r}, want {want!r}")


def check(condition, what):
    if not condition:
        raise Failure(what)


def wait_until(condition, what, seconds=20):
    """Its first true value. Only whether it becomes true is tested, so the time may be long."""
    seconds *= patience
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise Failure(f"not within {seconds} s: {what}")
        time.sleep(0.003)
    return value


def what_was_said(directory):
    """Diagnostics of the case's programs."""
    texts = ((path.name, path.read_text(errors="replace")) for path in sorted(directory.glob("*.err")))
    return "".join(f"{name}: {text[-2000:]}\n" for name, text in texts if text)


def run_case(chosen, directory, report):
    """In the case's own process: writes {"result", "reason", "details"} to `report` and exits."""
    global here, binary
    here, binary = directory, chosen.binary
    os.chdir(directory)
    out = {"result": "ok", "reason": "", "details": ""}
    try:
        chosen.function(*chosen.arguments)
    except Skip as reason:
        out.update(result="skip", reason=str(reason))
    except BaseException as error:
        out.update(result="FAIL", reason=f"{type(error).__name__}: {error}".removeprefix("Failure: "),
                   details=traceback.format_exc() + what_was_said(directory))
    for action in reversed(at_end):
        try:
            action()
        except Exception:
            out["details"] += traceback.format_exc()
    report.write_text(json.dumps(out))


def supervise(chosen):
    """Runs one case and cleans up behind it: result, reason, details."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="gpusnoop-test-"))
    os.chmod(directory, 0o755)  # a case may drop to an ordinary user
    report = pathlib.Path(tempfile.mkstemp(prefix="gpusnoop-result-")[1])
    programs_before = leftovers.programs()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            run_case(chosen, directory, report)
        finally:
            os._exit(0)
    out = {"result": "FAIL", "reason": "the case's process ended without a result", "details": ""}
    seconds = chosen.timeout * patience
    ended = system.wait_for_exit(child, seconds)
    strays = system.kill_descendants()
    if not ended:
        out["reason"] = f"no end after {seconds:.0f} s"
    elif text := report.read_text():
        out = json.loads(text)
    left = [f"process {name}" for name in strays] if ended else []
    left += leftovers.find(programs_before, {int(path.suffix[1:]) for path in directory.glob("tool.*")})
    left += cgroupfs.remove_left(directory)
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        left.append(f"a mount or file in {directory}")
    report.unlink()
    if left and out["result"] != "FAIL":
        out = {"result": "FAIL", "reason": "left behind: " + ", ".join(left), "details": out["details"]}
    elif left:
        out["details"] += "left behind: " + ", ".join(left) + "\n"
    return out


def obstacle():
    """Why no case can run here; None if they can."""
    if os.geteuid():
        return "needs root"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "this kernel has no BTF"
    if os.stat("/proc/self/ns/pid").st_ino != 0xEFFFFFFC:
        return "needs the host's pid namespace"
    if not all(c.binary.exists() for c in cases) or not (standin / "workload").exists():
        return f"not everything is built in {build}: make tools standin"
    if not leftovers.bpftool():
        return "no bpftool"
    return None


def run_all(*patterns):
    """The cases whose name contains one of the patterns, or all."""
    counts = collections.Counter()
    wanted = [c for c in cases if not patterns or any(p in c.name or fnmatch.fnmatch(c.name, p) for p in patterns)]
    system.adopt_orphans()
    blocked = obstacle()
    for chosen in wanted:
        start = time.monotonic()
        out = {"result": "skip", "reason": blocked} if blocked else supervise(chosen)
        counts[out["result"]] += 1
        if out["result"] == "ok":
            print(f"ok {chosen.name} ({time.monotonic() - start:.1f} s)", flush=True)
        else:
            print(f"{out['result']} {chosen.name}: {' '.join(out['reason'].split())}", flush=True)
        if out.get("details") and out["result"] == "FAIL":
            print("".join(f"    {line}\n" for line in out["details"].splitlines()), end="", flush=True)
    if not (build / "asan").exists() and not patterns:
        counts["skip"] += 1
        print(f"skip asan: there is no {build / 'asan'}")
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] or not wanted else 0
