# SPDX-License-Identifier: Apache-2.0
"""Runs the cases, each in a process of its own: none can hang the run, and what one leaves behind is found and told.

Several cases run at once, and what would see or disturb the others says so itself, by must_be_alone(): a tool that
traces everybody, a look at what others may have put into the system, a cgroup. Such a case is broken off there and
starts again when all others have ended. So nothing has to be marked; `alone` saves the first try, or says that a case
loads the machine, or measures times.

Cases at the same time have stand-ins of their own: whoever attaches to a file locks the memory of all processes that
map it, and a tool that asks just then whether an address is the host's is told to come back later.

A case is a function with @case that fails by raising and skips by raising Skip. One line per case, and how many have
ended of all; what takes long is named while it runs, and the time of each file's cases stands at the end:
    ok NAME (0.8 s) [7/640]        FAIL NAME: reason [8/640]        skip NAME: reason [9/640]

`make test` leaves out what is `long`: the sanitizers' builds, and what differs from another case in a way to attach or an
option only. `make test-all` runs that as well.

Where time is short, as in CI, GPUSNOOP_LEAVE_OUT leaves out the long cases that have it in their names, and says so.

`gpu` marks what means the same on a real device, whose driver gives no result to order and takes its own time: those
cases tests/gpu/run takes there, with GPUSNOOP_DEVICE set. Every program of theirs is then the one that opens a driver.
"""
import collections
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
import system

root = pathlib.Path(__file__).resolve().parents[2]
build = pathlib.Path(os.environ.get("BUILD", root / "build")).resolve()
standin = build / "standin"
AT_ONCE = 2 * len(os.sched_getaffinity(0))  # cases: they wait more than they compute
SECOND_TRIES = 5                            # what is wrong in more cases than these is not the machine's noise

# A slow machine takes so many times as long as the cases think.
patience = float(os.environ.get("GPUSNOOP_PATIENCE", 1))

here = None                         # folder of the running case
binary = build / "cudalaunch"       # what Tool starts: the tool of the case
at_end = []                         # called when the case ends, however it does
others_run = False                  # other cases, at the same time
on_device = "GPUSNOOP_DEVICE" in os.environ

Case = collections.namedtuple("Case", "name function arguments timeout binary alone long gpu")
cases = []


class Skip(Exception):
    pass


class Failure(AssertionError):
    pass


class NotAlone(BaseException):
    """Nothing that a case itself may catch."""


def must_be_alone():
    if others_run:
        raise NotAlone


def case(function=None, *, each=None, timeout=180, asan=False, alone=(), long=(), gpu=(), tool="cudalaunch"):
    """Registers a case of a tool; with `each`, a dict of names to values, one case per value, which is the function's
    argument. `asan`: once more with the sanitizers' build of the tool. `alone`: while no other case runs. `long`: not in
    make test. `gpu`: on a device, too. These may be some of `each`."""
    if function is None:
        return lambda f: case(f, each=each, timeout=timeout, asan=asan, alone=alone, long=long, gpu=gpu, tool=tool)
    module = function.__module__.removeprefix("test_")
    variants = {f"[{name}]": (value,) for name, value in each.items()} if each is not None else {"": ()}
    for some in filter(lambda some: some is not True, (alone, long, gpu)):
        missing = {f"[{name}]" for name in some} - set(variants)
        assert not missing, f"{module}.{function.__name__} has no {missing}"
    for suffix, arguments in variants.items():
        name = f"{module}.{function.__name__}{suffix}"
        by_itself, is_long, on_gpu = (some is True or suffix[1:-1] in some for some in (alone, long, gpu))
        cases.append(Case(name, function, arguments, timeout, build / tool, by_itself, is_long, on_gpu))
        if asan and (build / "asan" / tool).exists():
            cases.append(Case(name + "[asan]", function, arguments, 3 * timeout, build / "asan" / tool, by_itself, True, False))
    return function


def all_but(names, *kept):
    """For `long`, where the rest is proven without the kernel: what tables and histograms show of calls is in
    unit/columns."""
    assert set(kept) <= set(names), set(kept) - set(names)
    return [name for name in names if name not in kept]


def all_but_one_in(n, names):
    """For `long`, where cases differ in an option only."""
    return [name for number, name in enumerate(names) if number % n]


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


def diagnostics(directory):
    """Diagnostics of the case's programs."""
    texts = ((path.name, path.read_text(errors="replace")) for path in sorted(directory.glob("*.err")))
    return "".join(f"{name}: {text[-2000:]}\n" for name, text in texts if text)


def run_case(chosen, directory, report):
    """In the case's own process: writes {"result", "reason", "details"} to `report` and exits."""
    global here, binary
    here, binary = directory, chosen.binary
    os.chdir(directory)
    os.environ["CACHE_DIRECTORY"] = str(directory / "names")  # no case knows what another has found
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
        for number in signal.SIGINT, signal.SIGHUP:  # also behind & and nohup
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
    if left and out["result"] not in ("FAIL", "alone"):
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
    if not all(c.binary.exists() for c in cases) or not (standin / "workload-dlopen").exists():
        return f"not everything is built in {build}: make tools standin"
    if not on_device and not leftovers.bpftool():
        return "no bpftool"
    return None


def start(chosen, folder):
    """A process that supervises one case with the stand-in in this folder, and the descriptor that its result comes
    from: strays are told apart by whose descendants they are."""
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
            out = {"result": "FAIL", "reason": f"nobody supervised it: {error!r}", "details": traceback.format_exc()}
        with open(write, "w") as file:
            json.dump(out | {"seconds": time.monotonic() - begin}, file)
    finally:
        os._exit(0)


def run(wanted, folders):
    """Each case and its result, as they end; as many at once as there are folders. What takes long is told."""
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
            yield chosen, json.loads(text or '{"result": "FAIL", "reason": "nobody supervised it", "details": ""}')


def results(wanted, at_once):
    """First those that may run together, then the others."""
    blocked = obstacle()
    if blocked:
        yield from ((chosen, {"result": "skip", "reason": blocked}) for chosen in wanted)
        return
    together = [chosen for chosen in wanted if at_once > 1 and not chosen.alone and not on_device]
    alone = {chosen.name for chosen in wanted} - {chosen.name for chosen in together}
    twice = []
    with tempfile.TemporaryDirectory(prefix="gpusnoop-test-standins-") as copies:
        os.chmod(copies, 0o755)
        folders = [pathlib.Path(copies) / str(number) / standin.name for number in range(at_once if together else 0)]
        for folder in folders:
            shutil.copytree(standin, folder, symlinks=True, ignore=shutil.ignore_patterns("obj"))
        for chosen, out in run(together, folders):
            if out["result"] == "alone":
                alone.add(chosen.name)
                twice.append(chosen.name)
            else:
                yield chosen, out
    if twice:
        print(f"begun in vain, for want of alone=True: {', '.join(twice)}", flush=True)
    yield from run([chosen for chosen in wanted if chosen.name in alone], [standin])


def choose(patterns, which, alone):
    """The cases whose name contains one of the patterns, or all; of those without patterns, "short", "long" or None, and
    those that are marked alone, those that are not, or (None) both. On a device, of all these those marked gpu."""
    if on_device:
        return [c for c in cases if c.gpu and (not patterns or any(fnmatch.fnmatch(c.name, f"*{p}*") for p in patterns))]
    if patterns:
        return [c for c in cases if any(p in c.name or fnmatch.fnmatch(c.name, p) for p in patterns)]
    return [c for c in cases if which in (None, "long" if c.long else "short") and alone in (None, c.alone)]


def result_line(chosen, out, place):
    if out["result"] == "ok":
        return f"ok {chosen.name} ({out['seconds']:.1f} s) {place}\n"
    text = f"{out['result']} {chosen.name}: {' '.join(out['reason'].split())[:2000]} {place}\n"
    if out.get("details") and out["result"] in ("FAIL", "UNSTEADY"):
        text += "".join(f"    {line[:2000]}\n" for line in out["details"].splitlines())
    return text


def run_all(*patterns, which=None, alone=None, at_once=AT_ONCE):
    """Runs what choose() says; 1 if any failed. A case that fails is told at once; with GPUSNOOP_SECOND_TRY, for machines
    that others use, too, it is run again by itself when the rest is done, and that counts."""
    counts, groups, unsteady = collections.Counter(), collections.Counter(), []
    wanted = choose(patterns, which, alone)
    if left_out := [chosen for chosen in wanted if which == "long" and os.environ.get("GPUSNOOP_LEAVE_OUT", "\n") in chosen.name]:
        wanted = [chosen for chosen in wanted if chosen not in left_out]
        print(f"left out, and tried by make test-all: {', '.join(chosen.name for chosen in left_out)}")

    def count(chosen, out):
        counts[out["result"]] += 1
        groups[chosen.name.partition(".")[0]] += out.get("seconds", 0)
        print(result_line(chosen, out, f"[{counts.total()}/{len(wanted)}]"), end="", flush=True)

    for chosen, out in results(wanted, at_once):
        if out["result"] == "FAIL" and "GPUSNOOP_SECOND_TRY" in os.environ and len(unsteady) < SECOND_TRIES:
            unsteady.append(chosen)
            print(result_line(chosen, out | {"result": "UNSTEADY"}, "[to be run again]"), end="", flush=True)
        else:
            count(chosen, out)
    for chosen, out in run(unsteady, [standin]):
        count(chosen, out)
    if unsteady:
        print(f"run twice, for they failed at first: {', '.join(chosen.name for chosen in unsteady)}")
    if len(groups) > 1:
        print("seconds, several at once: " + ", ".join(f"{name} {s:.0f}" for name, s in groups.most_common()))
    if not (build / "asan").exists() and not patterns and which != "short" and not on_device:
        counts["skip"] += 1
        print(f"skip asan: there is no {build / 'asan'}")
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] or not wanted else 0
