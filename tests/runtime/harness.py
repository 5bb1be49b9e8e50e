# SPDX-License-Identifier: Apache-2.0
"""Runner of the runtime cases. Each case runs in its own process, so that none can hang the run. A case fails if it
leaves processes, BPF programs or cgroups behind.

Several cases run at once. An action that would observe or disturb other cases (tracing all processes, inspecting
system-wide state, creating a shared cgroup) calls must_be_alone(), which aborts the case and restarts it after all
others have ended. So marking cases is optional: `alone` avoids the aborted first run, and is needed for cases that load
the machine or measure times.

Cases use copies of the stand-in in the temporary folder, so that they work in every checkout: other users may not be
able to access it, and LD_PRELOAD splits its value at spaces. Cases that run at the same time use separate copies:
attaching a probe to a file locks the address space of every process that maps the file. A tool that looks up an address
in such a process at that moment must retry later.

A case is a function with @case. It fails by raising an exception, and is skipped by raising Skip. Each case prints a
line with its progress; cases that take long are named while they run, and the seconds per file are printed at the end:
    ok NAME (0.8 s) [7/640]        FAIL NAME: reason [8/640]        skip NAME: reason [9/640]

`make test` runs the cases listed in short.py. CI also runs the others, except the `long` ones: sanitized builds, and cases
that take long or repeat another one with a different way of attaching or another option. `make test-all` runs all cases,
and `make smoke TOOL=X` three cases of a tool, also listed there.

`gpu` marks cases that also work with a real GPU, i.e. without injected errors and without control over durations.
tests/gpu/run runs them with GPUSNOOP_DEVICE set; their workload is then always the one that opens the driver by
dlopen().
"""
import collections
import contextlib
import fnmatch
import json
import os
import pathlib
import selectors
import shutil
import signal
import sys
import tempfile
import time
import traceback

import cgroupfs
import leftovers
import short
import system

root = pathlib.Path(__file__).resolve().parents[2]
build = pathlib.Path(os.environ.get("BUILD", root / "build")).resolve()
standin = build / "standin"
AT_ONCE = 2 * len(os.sched_getaffinity(0))  # number of concurrent cases: two per CPU, since cases mostly wait

# Factor by which all timeouts are multiplied, for slow machines.
patience = float(os.environ.get("GPUSNOOP_PATIENCE", 1))

here = None                         # folder of the running case
binary = build / "cudalaunch"       # the case's tool, which Tool starts
at_end = []                         # functions called when the case ends, even if it fails
others_run = False                  # True if other cases may run at the same time
on_device = "GPUSNOOP_DEVICE" in os.environ

Case = collections.namedtuple("Case", "name function arguments timeout binary alone level gpu")
cases = []


class Skip(Exception):
    pass


class Failure(AssertionError):
    pass


class NotAlone(BaseException):
    """Aborts a case that must run alone. A BaseException, so that no case catches it."""


def level(name, is_long):
    return "short" if any(short.is_listed(name, listed) for listed in short.names()) else "long" if is_long else "medium"


def must_be_alone():
    if others_run:
        raise NotAlone


def case(function=None, *, each=None, timeout=180, asan=False, alone=(), long=(), gpu=(), tool="cudalaunch"):
    """Registers a case of a tool. `each`: a dict of names to values; registers one case per value, which becomes the
    function's argument. `asan`: also run the sanitized build of the tool. `alone`: run while no other case does.
    `long`: only part of make test-all. `gpu`: also run on a device. `alone`, `long` and `gpu` may list names in
    `each`."""
    if function is None:
        return lambda f: case(f, each=each, timeout=timeout, asan=asan, alone=alone, long=long, gpu=gpu, tool=tool)
    module = function.__module__.removeprefix("test_")
    variants = {f"[{name}]": (value,) for name, value in each.items()} if each is not None else {"": ()}
    for some in filter(lambda some: some is not True, (alone, long, gpu)):
        missing = {f"[{name}]" for name in some} - set(variants)
        assert not missing, f"{module}.{function.__name__} has no {missing}"
    for suffix, arguments in variants.items():
        name = f"{module}.{function.__name__}{suffix}"
        is_alone, is_long, on_gpu = (some is True or suffix[1:-1] in some for some in (alone, long, gpu))
        cases.append(Case(name, function, arguments, timeout, build / tool, is_alone, level(name, is_long), on_gpu))
        if asan and (build / "asan" / tool).exists():
            cases.append(Case(name + "[asan]", function, arguments, 3 * timeout, build / "asan" / tool, is_alone, "long",
                              False))
    return function


def all_but(names, *kept):
    """For `long`: all names except `kept`, whose cases run in CI. tests/unit/golden covers the columns, JSON keys
    and histograms of the omitted cases."""
    assert set(kept) <= set(names), set(kept) - set(names)
    return [name for name in names if name not in kept]


def all_but_one_in(n, names):
    """For `long`, if cases differ only in an option: every n-th name runs in CI, and all others are long."""
    return [name for number, name in enumerate(names) if number % n]


def equal(got, want, what=""):
    if got == want:
        return
    if isinstance(got, dict) and isinstance(want, dict):  # report only the differences: there may be hundreds of rows
        keys = [k for k in {**want, **got} if got.get(k) != want.get(k)]
        lines = [f"{k}: got {got.get(k)!r}, want {want.get(k)!r}" for k in keys]
        more = f"; and {len(lines) - 6} more" if len(lines) > 6 else ""
        raise Failure(f"{what}: " + "; ".join(lines[:6]) + more)
    raise Failure(f"{what}: got {got!r}, want {want!r}")


def check(condition, what):
    if not condition:
        raise Failure(what)


def wait_until(condition, what, seconds=20):
    """Polls condition() and returns its first true value. A long timeout costs nothing, since it elapses only if the
    case fails."""
    seconds *= patience
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise Failure(f"not within {seconds} s: {what}")
        time.sleep(0.003)
    return value


def diagnostics(directory):
    """Standard error of the case's programs."""
    texts = ((path.name, path.read_text(errors="replace")) for path in sorted(directory.glob("*.err")))
    return "".join(f"{name}: {text[-2000:]}\n" for name, text in texts if text)


def run_case(chosen, directory, report):
    """Runs in the case's own process: writes {"result", "reason", "details"} to `report`."""
    global here, binary
    here, binary = directory, chosen.binary
    os.chdir(directory)
    os.environ["CACHE_DIRECTORY"] = str(directory / "names")  # no cache is shared between cases
    out = {"result": "ok", "reason": "", "details": ""}
    try:
        chosen.function(*chosen.arguments)
    except Skip as reason:
        out.update(result="skip", reason=str(reason))
    except NotAlone:
        out.update(result="alone")
    except BaseException as error:
        out.update(result="FAIL", reason=f"{type(error).__name__}: {error}".removeprefix("Failure: "),
                   details=traceback.format_exc() + diagnostics(directory))
    for action in reversed(at_end):
        try:
            action()
        except Exception:
            out["details"] += traceback.format_exc()
    report.write_text(json.dumps(out))


def supervise(chosen):
    """Runs one case, cleans up after it, and returns result, reason and details."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="gpusnoop-test-"))
    os.chmod(directory, 0o755)  # a case may switch to an unprivileged user
    report = pathlib.Path(tempfile.mkstemp(prefix="gpusnoop-result-")[1])
    programs_before = leftovers.programs()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        for number in signal.SIGINT, signal.SIGHUP:  # these are ignored if the runner was started with & or nohup
            signal.signal(number, signal.SIG_DFL)
        try:
            run_case(chosen, directory, report)
        finally:
            os._exit(0)
    out = {"result": "FAIL", "reason": "the case's process ended without a result", "details": ""}
    seconds = chosen.timeout * patience
    ended = system.wait_for_exit(child, seconds)
    strays = system.kill_descendants()
    if not ended:
        out["reason"] = f"timed out after {seconds:.0f} s"
    elif text := report.read_text():
        out = json.loads(text)
    left = [f"process {name}" for name in strays] if ended else []
    left += leftovers.find(programs_before, {int(path.suffix[1:]) for path in directory.glob("tool.*")})
    left += cgroupfs.remove_left(directory)
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        left.append(f"a mount or file in {directory}")
    report.unlink()
    if left and out["result"] not in ("FAIL", "alone"):
        out = {"result": "FAIL", "reason": "left behind: " + ", ".join(left), "details": out["details"]}
    elif left:
        out["details"] += "left behind: " + ", ".join(left) + "\n"
    return out


def obstacle():
    """Reason why no case can run on this machine; None if they can."""
    if os.geteuid():
        return "needs root"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "this kernel has no BTF"
    if os.stat("/proc/self/ns/pid").st_ino != 0xEFFFFFFC:
        return "needs the host's pid namespace"
    if not all(c.binary.exists() for c in cases) or not (standin / "workload-dlopen").exists():
        return f"programs are missing in {build}; build them with: make tools standin"
    if not on_device and not leftovers.bpftool():
        return "no bpftool"
    return None


def start(chosen, folder):
    """Forks a process that supervises one case with the stand-in in this folder. Returns its pid and the descriptor of
    its result. A supervisor per case makes it clear which case left a process behind."""
    global standin
    result, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        return child, result
    try:
        standin = folder
        os.close(result)
        system.adopt_orphans()
        begin = time.monotonic()
        try:
            out = supervise(chosen)
        except Exception as error:
            out = {"result": "FAIL", "reason": f"its supervisor failed: {error!r}", "details": traceback.format_exc()}
        with open(write, "w") as file:
            json.dump(out | {"seconds": time.monotonic() - begin}, file)
    finally:
        os._exit(0)


def run(wanted, folders):
    """Yields each case and its result as it ends. Runs one case per folder at once, and prints which cases take
    long."""
    global others_run
    others_run = len(folders) > 1
    waiting, running, free = collections.deque(wanted), selectors.DefaultSelector(), list(folders)
    while waiting or running.get_map():
        while waiting and free:
            chosen, folder = waiting.popleft(), free.pop()
            child, result = start(chosen, folder)
            running.register(result, selectors.EVENT_READ, (chosen, child, folder, bytearray()))
        ended = running.select(20)
        if not ended:
            print(f"... {', '.join(key.data[0].name for key in running.get_map().values())}", flush=True)
        for key, _ in ended:
            chosen, child, folder, text = key.data
            if data := os.read(key.fd, 1 << 16):
                text += data
                continue
            running.unregister(key.fd)
            os.close(key.fd)
            os.waitpid(child, 0)
            free.append(folder)
            yield chosen, json.loads(text or '{"result": "FAIL", "reason": "its supervisor died", "details": ""}')


@contextlib.contextmanager
def copies_of_standin(number):
    """Yields folders with copies of the stand-in. On a device, the only folder is the stand-in's own."""
    if on_device:
        yield [standin]
        return
    with tempfile.TemporaryDirectory(prefix="gpusnoop-test-standins-") as copies:
        os.chmod(copies, 0o755)
        folders = [pathlib.Path(copies) / str(each) / standin.name for each in range(number)]
        for folder in folders:
            shutil.copytree(standin, folder, symlinks=True, ignore=shutil.ignore_patterns("obj"))
        yield folders


def results(wanted, at_once):
    """Yields the results: first of cases that may run together, then of the others."""
    blocked = obstacle()
    if blocked:
        yield from ((chosen, {"result": "skip", "reason": blocked}) for chosen in wanted)
        return
    together = [chosen for chosen in wanted if at_once > 1 and not chosen.alone and not on_device]
    alone = {chosen.name for chosen in wanted} - {chosen.name for chosen in together}
    aborted = []
    with copies_of_standin(at_once if together else 1) as folders:
        for chosen, out in run(together, folders):
            if out["result"] == "alone":
                alone.add(chosen.name)
                aborted.append(chosen.name)
            else:
                yield chosen, out
        if aborted:
            print(f"aborted and run again alone (alone=True avoids this): {', '.join(aborted)}", flush=True)
        yield from run([chosen for chosen in wanted if chosen.name in alone], folders[:1])


def choose(patterns, which, alone, smoke):
    """Cases whose name contains one of the patterns, or the smoke cases of a tool. Without either: those selected by
    `which` (a level, or None for all) and `alone` (True, False or None for both). On a device, only cases
    marked gpu."""
    if on_device:
        return [c for c in cases if c.gpu and (not patterns or any(fnmatch.fnmatch(c.name, f"*{p}*") for p in patterns))]
    if patterns:
        return [c for c in cases if any(p in c.name or fnmatch.fnmatch(c.name, p) for p in patterns)]
    if smoke:
        return [c for c in cases if c.name in short.SMOKE.get(smoke, "").split()]
    return [c for c in cases if which in (None, c.level) and alone in (None, c.alone)]


def short_cases_of(tools, files):
    """Names of the cases of make test that try one of the tools or are in one of the files (without test_)."""
    return [c.name for c in cases if c.level == "short" and (c.binary.name in tools or c.name.partition(".")[0] in files)]


def result_line(chosen, out, place):
    if out["result"] == "ok":
        return f"ok {chosen.name} ({out['seconds']:.1f} s) {place}\n"
    text = f"{out['result']} {chosen.name}: {' '.join(out['reason'].split())[:2000]} {place}\n"
    if out.get("details") and out["result"] == "FAIL":
        text += "".join(f"    {line[:2000]}\n" for line in out["details"].splitlines())
    return text


def run_all(*patterns, which=None, alone=None, smoke=None, at_once=AT_ONCE):
    """Runs the cases that choose() returns; returns 1 if any failed."""
    counts, seconds = collections.Counter(), {}
    wanted = choose(patterns, which, alone, smoke)
    for chosen, out in results(wanted, at_once):
        counts[out["result"]] += 1
        seconds[chosen.name] = out.get("seconds", 0)
        print(result_line(chosen, out, f"[{counts.total()}/{len(wanted)}]"), end="", flush=True)
    slowest = sorted(seconds, key=seconds.get, reverse=True)[:10]
    if len(seconds) > len(slowest):
        print("slowest cases: " + ", ".join(f"{name} {seconds[name]:.0f} s" for name in slowest))
    if not (build / "asan").exists() and not patterns and which == "long" and not on_device:
        counts["skip"] += 1
        print(f"skip asan: {build / 'asan'} is not built")
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] or not wanted else 0
