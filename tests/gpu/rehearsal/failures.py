# SPDX-License-Identifier: Apache-2.0
"""failures.py STANDIN: what goes wrong around the script of a real device is told: one check for each way, with tools that
do as they are told here. Neither BPF nor a device is needed. Ends with "N passed, N failed"."""
import contextlib
import ctypes
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import traceback
from unittest import mock

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent))

import bench  # noqa: E402
import costs  # noqa: E402
import exports  # noqa: E402
import findings  # noqa: E402
import machine  # noqa: E402
import objects  # noqa: E402
import processes  # noqa: E402
import witness  # noqa: E402
import witnessed  # noqa: E402

loader = importlib.machinery.SourceFileLoader("run", str(here.parent / "run"))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)

standin = pathlib.Path(sys.argv[1]).resolve()
driver, nvml = standin / "libcuda.so.1", standin / "nvml/libnvidia-ml.so.1"
checks = []


def case(function):
    checks.append(function)
    return function


def told(kind, function, *arguments):
    """What is said where this goes wrong in this way."""
    try:
        value = function(*arguments)
        list(value) if hasattr(value, "__next__") else None
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


def equal(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def checked(function, *arguments):
    """What it tells check(), which is its last argument but for those that it may leave out."""
    said = []
    function(*arguments, lambda *words: said.append(words))
    return said


class Folder:
    """A build folder with tools and programs that are scripts."""

    def __init__(self, path):
        self.path = path
        (path / "standin").mkdir()
        (path / "gpu").mkdir()
        (path / "gpu/witness.so").symlink_to(standin / "libcuda.so.1")  # anything that can be loaded
        self.given = findings.Given(path, str(driver), str(nvml), sys.executable)

    def program(self, name, *lines):
        (self.path / name).write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
        (self.path / name).chmod(0o755)
        return self.path / name

    def tool(self, name, *rows, then="exec sleep 60"):
        self.program(name, "echo Tracing all >&2", *(f"echo '{json.dumps(row)}'" for row in rows), then)

    def tools(self):
        for name in {tool.split()[0] for tool in witness.tools}:
            self.tool(name, then="exit 0")

    def workload(self):
        (self.path / "standin/workload-dlopen").symlink_to(standin / "workload-dlopen")
        (self.path / "standin/libcuda.so.1").symlink_to(driver)


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="gpusnoop-failures-") as name:
        yield Folder(pathlib.Path(name))


# --- the machine ---

@case
def a_program_that_does_not_end():
    equal(machine.output_of("sleep", "9", seconds=0.1), (None, "", "no end after 0.1 s"))


@case
def a_file_without_a_line():
    with folder() as one:
        (one.path / "empty").touch()
        equal(machine.first_line(f"{one.path}/*"), None)


@case
def a_tool_that_breaks():
    with folder() as one:
        one.program("cudalaunch", "echo no kernel >&2", "exit 3")
        equal(machine.bpf(one.path), (None, "--info ended with 3: no kernel"))


@case
def no_such_python():
    equal(machine.missing_module("no-python-at-all", "torch"), "no-python-at-all has no torch")
    equal(machine.site_folders("no-python-at-all"), [])


@case
def who_does_not_heed_an_interrupt():
    program = subprocess.Popen(["sh", "-c", "trap '' INT; echo; while :; do sleep 0.05; done"], stdout=subprocess.PIPE)
    program.stdout.readline()
    processes.end([program], 0.2)
    equal(program.returncode, -signal.SIGKILL)


@case
def a_tool_that_waits_for_a_library():
    with folder() as one:
        said = one.path / "said"
        for text, traces in (("", False), ("Tracing waits", True), ("has loaded no CUDA library yet; waiting for one\nTracing", False),
                             ("yet; waiting for one\nTracing waits\nprocess 1 maps a CUDA library now; tracing", True)):
            said.write_text(text)
            equal(processes.traces(said), traces)


# --- the driver ---

@case
def functions_that_are_not_handed_out():
    class Driver:
        def cuInit(self, flags):
            return 0

        def cuGetProcAddress(self, name, found, version, flags):
            found._obj.value = {b"cuMemcpy": 16, b"cuLaunchKernel": 32, b"cuGraphLaunch": 48}.get(name, 0)
            return name == b"cuGraphLaunch"

    handed, elsewhere = exports.handed_out(Driver(), {"cuMemcpy": 16, "cuMemcpy_ptds": 16})
    equal((handed.pop("cuMemcpy"), set(handed.values()), elsewhere), (["cuMemcpy", "cuMemcpy_ptds"], {None}, ["cuLaunchKernel"]))
    equal(exports.exported(ctypes.CDLL(str(driver)), ["cuNoSuchThing"]), {})


@case
def names_in_other_places():
    text = ctypes.create_string_buffer(objects.NAME)
    inner = (ctypes.c_uint64 * 16)(*[0] * 5, ctypes.addressof(text))
    outer = (ctypes.c_uint64 * 64)(2**64 - 8, 5, 1 << 40, ctypes.addressof(inner))
    equal(objects.place(ctypes.addressof(outer)), [24, 40])
    outer[3] = 0
    equal(objects.place(ctypes.addressof(outer)), None)


@case
def a_driver_that_refuses():
    with mock.patch.object(ctypes, "CDLL", lambda path: mock.Mock(cuInit=lambda flags: 100)):
        equal(told(SystemExit, objects.found, "any"), "cuInit returned 100")


# --- NVML ---

def asked(*lines):
    with folder() as one:
        (one.path / "nvml").write_text("\n".join(lines) + "\n")
        return machine.json_of(here.parent / "nvml.py", str(nvml), "77", env=os.environ | {"STANDIN_NVML": str(one.path / "nvml")})


@case
def what_nvml_does_not_know():
    equal(asked("fail init 9"), (None, "nvmlInit_v2 returned 9"))
    nothing = {"bytes": None, "sm_percent": None, "monitors": None}
    for lines in (["process 78 5000"], ["process 77 unknown"], ["fail compute 0 3", "fail samples 0 3"], ["gpm 2 5", "fail gpm 0 3"]):
        said, why = asked("device 0", "name Card", *lines)
        equal((why, {key: said["devices"][0][key] for key in nothing}), (None, nothing))


# --- findings ---

@case
def what_does_not_come():
    equal(told(bench.Wrong, bench.until, lambda: False, "anything", 0), "not within 0.0 s: anything")


@case
def what_a_finding_needs():
    with folder() as one:
        bare = one.given._replace(driver="/no/driver", nvml="/no/nvml", python="no-python-at-all")
        assert "/no/nvml" in told(bench.Missing, findings.devices, bare)
        assert "/no/driver" in told(bench.Missing, findings.names, bare)
        with mock.patch.object(machine, "libraries", lambda name: []):
            equal(told(bench.Missing, findings.placement, bare), "the driver's file was not found")
        with mock.patch.object(findings.glob, "glob", lambda pattern: []):
            assert told(bench.Missing, findings.registrations, bare).startswith("no program or library with kernels")
        with mock.patch.object(machine, "first_line", lambda path: None):
            for one_finding in (findings.ioctls, findings.xid):
                equal(told(bench.Missing, one_finding, bare), "no driver of NVIDIA's in this kernel")


@case
def a_name_elsewhere():
    with mock.patch.object(machine, "json_of", lambda *_: ({"CUfunction": [16, 8]}, None)):
        assert told(bench.Wrong, findings.names, findings.Given(None, None, None, None)).endswith("but at [16, 8]")


@case
def a_damaged_program():
    with folder() as one:
        (one.path / "gpu/launcher-static").write_bytes(b"\x7fELF")
        one.program("scan", "echo scan: damaged >&2", "exit 1")
        assert told(bench.Wrong, findings.registrations, one.given).endswith("launcher-static: scan: damaged")


@case
def memory_that_nvml_does_not_list():
    with folder() as one, mock.patch.dict(os.environ, {"STANDIN_NVML": str(one.path / "nvml")}):
        one.workload()
        (one.path / "nvml").write_text("device 0\nname Card\n")
        one.tool("gpualloc", {"live_bytes": 100000000 + 50 * 70000})
        equal(told(bench.Missing, findings.memory, one.given), "NVML has no figure of this process")


@case
def a_hang_without_nvml():
    with folder() as one:
        one.workload()
        one.tool("cudasync", {"waiting": 1})
        one.tool("cudatop", {"by": "diagnosis", "rule": "hangs", "diagnosis": "waits"})
        found = dict(findings.hang(one.given._replace(nvml="/no/nvml")))
        equal((found["SM% of the process meanwhile, by NVML"], found["GPU of its process, by cudatop"]), ("not sampled", "not known"))
        equal(found["GPUs of its process, by NVML"], "none")


@case
def a_hang_that_ends():
    with folder() as one:
        one.program("standin/workload-dlopen", "folder=${1#*touch }", 'folder=${folder%%/up*}', 'touch "$folder/up"',
                    'while [ ! -e "$folder/go" ]; do sleep 0.01; done', "exit 5")
        for tool in "cudasync", "cudatop":
            one.tool(tool, {"waiting": 1}, {"by": "diagnosis", "rule": "hangs", "diagnosis": "waits"})
        with mock.patch.object(findings, "asked_of_nvml", lambda *_: subprocess.run(["sleep", "0.3"]) and {"devices": []}):
            equal(told(bench.Wrong, findings.hang, one.given), "the program that spins ended by itself, with 5")


@case
def a_finding_that_fails():
    def wrong(given):
        yield "first", 1
        raise bench.Wrong("it is not so")

    def broken(given):
        raise KeyError("calls")

    said = []
    equal(findings.found_by(wrong, None, lambda *words: said.append(words), None), [{"check": "findings.wrong", "what": "first", "value": 1}])
    findings.found_by(broken, None, lambda *words: said.append(words), None)
    equal(said, [("findings.wrong", "FAIL", "it is not so"), ("findings.broken", "FAIL", "KeyError('calls')")])


# --- costs and cases ---

@case
def programs_that_are_not_measured():
    with folder() as one:
        failing = one.program("standin/workload-dlopen", "exit 3")
        equal(checked(costs.measured, costs.loads[0], one.given, 1, 1), [("costs.launch", "FAIL", f"{failing} ended with 3")])
        equal(checked(costs.measured, costs.training, one.given._replace(python="no-python-at-all"), 1, 1),
              [("costs.training", "skip", "no-python-at-all has no torch")])
    equal(told(costs.Unmeasured, lambda: costs.until(lambda: False, seconds=0)), "no end within 0 s")


@case
def cases_that_break_off():
    with folder() as one, mock.patch.object(run, "root", one.path):
        said = []
        run.cases([], None, lambda *words: said.append(words), lambda name: True)
        equal(said, [("cases", "FAIL", "ended with 2")])


@case
def options_that_make_no_sense():
    for options, words in ((["--only", "nothing"], "nothing is none of findings,"), (["--rounds", "0"], "less than one round")):
        done = subprocess.run([sys.executable, "-B", here.parent / "run", *options], capture_output=True, text=True)
        equal((done.returncode, words in done.stderr), (2, True))
    with mock.patch.object(os, "geteuid", lambda: 1000), contextlib.redirect_stderr(open(os.devnull, "w")):
        equal(told(SystemExit, run.options), "2")


# --- the witness ---

def unseen(one, command, kind=witness.Unseen, env={}, forks=False, seconds=60):
    return told(kind, lambda: witness.run(one.path, "any", command, env, forks, seconds))


report = {"version": 1, "failure": "", "calls": {}}


def writes(**changed):
    """A line of a program that leaves a report of its own."""
    return f"""echo '{json.dumps(report | changed)}' | sed "s/^{{/{{\\"pid\\": $$, /" >"$WITNESS_FOLDER/$$.json" """


@case
def no_profiling_library():
    with mock.patch.object(witness.glob, "glob", lambda pattern: []):
        said = []
        equal(witnessed.run(None, findings.Given(None, None, None, sys.executable), None, None, lambda *words: said.append(words),
                            lambda name: True, None), (None, {}))
        equal(witnessed.run(None, None, None, None, None, lambda name: False, None), (None, {}))
        assert said[0][:2] == ("witness", "skip") and said[0][2].startswith("no libcupti.so")


@case
def programs_that_the_witness_does_not_see():
    with folder() as one:
        one.tools()
        equal(unseen(one, [one.program("program", "echo no device", "exit 3")]),
              "the program ended with 3, 0 reports of the witness: no device")
        equal(unseen(one, [one.program("program", writes(failure="no rights"))]), "no rights")
        children = one.program("program", writes(), """echo '{"pid": 1}' >"$1/truth" """)
        equal(unseen(one, [children, "{folder}"], forks=True), "of 1 children there is no report of the witness")
        equal(unseen(one, ["sleep", "60"], env={"LD_PRELOAD": str(driver)}, seconds=0.3), "the program did not end within 0.3 s")


@case
def tools_that_fail():
    with folder() as one:
        one.tools()
        program = one.program("program", writes())
        one.tool("cudasync", then="echo no memory >&2; exit 1")
        assert unseen(one, [program], witness.Failed).startswith("cudasync ended with 1: ")
        (one.path / "gpualloc").unlink()
        assert "gpualloc" in unseen(one, [program], FileNotFoundError)
    equal(told(witness.Failed, witness.until, lambda: False, "anything", 0), "not within 0 s: anything")


@case
def comparisons_that_fail():
    """What is not ours may have its reasons; the tools and our workload may not."""
    for name, error, result in (("torch_eager", witness.Unseen("x"), "skip"), ("workload", witness.Unseen("x"), "FAIL"),
                                ("torch_eager", witness.Failed("x"), "FAIL"), ("torch_eager", KeyError("x"), "FAIL")):
        with mock.patch.object(witness, "compare", mock.Mock(side_effect=error)):
            said = checked(witnessed.comparison, None, None, None, (name, [], {}, None))
            equal([words[:2] for words in said], [(f"witness.{name}", result)])
    equal(checked(witnessed.comparison, None, None, None, ("torch_eager", [], {}, "no torch")),
          [("witness.torch_eager", "skip", "no torch")])
    lost = {"cupti": 1, "compared": 5, "differences": [], "lost": ["cudatop lost 3"]}
    with mock.patch.object(witness, "compare", lambda *_, **__: lost):
        equal(checked(witnessed.comparison, None, None, None, ("workload", [], {}, None)),
              [("witness.workload", "FAIL", "1 of 5, cudatop lost 3")])


failed = 0
for check in checks:
    try:
        check()
    except BaseException as error:
        failed += 1
        print(f"FAIL gpu.{check.__name__}: {error}\n{traceback.format_exc()}")
        if isinstance(error, KeyboardInterrupt):
            raise
print(f"{len(checks) - failed} passed, {failed} failed")
sys.exit(failed > 0)
