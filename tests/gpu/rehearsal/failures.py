# SPDX-License-Identifier: Apache-2.0
"""failures.py STANDIN: checks that tests/gpu/run reports failures. Each check causes one failure, with scripts in place
of the tools. Needs neither BPF nor a device. Ends with "N passed, N failed"."""
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


def error_of(kind, function, *arguments):
    """The message of the exception of this type that the function raises."""
    try:
        value = function(*arguments)
        list(value) if hasattr(value, "__next__") else None
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


def equal(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


class Checks(list):
    """A check() that records the arguments of its calls."""

    def __call__(self, *words):
        self.append(words)


def checks_of(function, *arguments):
    """Arguments of the check() calls of a function, which is called with check() as its last argument."""
    results = Checks()
    function(*arguments, results)
    return results


class Folder:
    """A build folder in which tools and programs are scripts."""

    def __init__(self, path):
        self.path = path
        (path / "standin").mkdir()
        (path / "gpu").mkdir()
        (path / "gpu/witness.so").symlink_to(standin / "libcuda.so.1")  # any loadable library
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
def what_a_machine_lacks():
    equal(machine.output_of("sleep", "9", seconds=0.1), (None, "", "did not finish within 0.1 s"))
    equal(machine.missing_module("no-python-at-all", "torch"), "no-python-at-all has no torch")
    equal(machine.site_folders("no-python-at-all"), [])
    with folder() as one:
        (one.path / "empty").touch()
        equal(machine.first_line(f"{one.path}/empty"), None)
        one.program("cudalaunch", "echo no kernel >&2", "exit 3")
        equal(machine.bpf(one.path), (None, "--info exited with 3: no kernel"))


# --- processes ---

@case
def processes_that_ignore_sigint_are_killed():
    program = subprocess.Popen(["sh", "-c", "trap '' INT; echo; while :; do sleep 0.05; done"], stdout=subprocess.PIPE)
    program.stdout.readline()
    bench.end([program], 0.2)
    equal(program.returncode, -signal.SIGKILL)


@case
def tool_waits_for_a_library():
    waiting = "yet; waiting for one\nTracing waits\n"
    with folder() as one:
        messages = one.path / "messages"
        for text, is_tracing in (("", False), ("Tracing waits", True), (waiting, False),
                                 (waiting + "process 1 maps a CUDA library now; tracing", True)):
            messages.write_text(text)
            equal(bench.is_tracing(messages), is_tracing)


@case
def expectation_times_out():
    equal(error_of(bench.Wrong, bench.until, lambda: False, "anything", 0), "not within 0.0 s: anything")


# --- the driver ---

@case
def functions_that_cuGetProcAddress_does_not_return():
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
def names_in_inner_objects():
    text = ctypes.create_string_buffer(objects.NAME)
    inner = (ctypes.c_uint64 * 16)(*[0] * 5, ctypes.addressof(text))
    outer = (ctypes.c_uint64 * 64)(2**64 - 8, 5, 1 << 40, ctypes.addressof(inner))
    equal(objects.place(ctypes.addressof(outer)), [24, 40])
    outer[3] = 0
    equal(objects.place(ctypes.addressof(outer)), None)


@case
def driver_initialization_fails():
    with mock.patch.object(ctypes, "CDLL", lambda path: mock.Mock(cuInit=lambda flags: 100)):
        equal(error_of(SystemExit, objects.found, "any"), "cuInit returned 100")


# --- NVML ---

def nvml_output(*lines):
    with folder() as one:
        (one.path / "nvml").write_text("\n".join(lines) + "\n")
        return machine.json_of(here.parent / "nvml.py", str(nvml), "77", env=os.environ | {"STANDIN_NVML": str(one.path / "nvml")})


@case
def values_unknown_to_nvml():
    equal(nvml_output("fail init 9"), (None, "nvmlInit_v2 returned 9"))
    nothing = {"bytes": None, "sm_percent": None, "monitors": None}
    for lines in (["process 78 5000"], ["process 77 unknown"], ["fail compute 0 3", "fail samples 0 3"], ["gpm 2 5", "fail gpm 0 3"]):
        report, why = nvml_output("device 0", "name Card", *lines)
        equal((why, {key: report["devices"][0][key] for key in nothing}), (None, nothing))


# --- findings ---

@case
def missing_requirements_of_findings():
    with folder() as one:
        bare = one.given._replace(driver="/no/driver", nvml="/no/nvml", python="no-python-at-all")
        assert "/no/nvml" in error_of(bench.Missing, findings.devices, bare)
        assert "/no/driver" in error_of(bench.Missing, findings.names, bare)
        with mock.patch.object(machine, "libraries", lambda name: []):
            equal(error_of(bench.Missing, findings.placement, bare), "the driver's file was not found")
        with mock.patch.object(findings.glob, "glob", lambda pattern: []):
            assert error_of(bench.Missing, findings.registrations, bare).startswith("no program or library with kernels")
        with mock.patch.object(machine, "first_line", lambda path: None):
            for one_finding in (findings.ioctls, findings.xid):
                equal(error_of(bench.Missing, one_finding, bare), "NVIDIA's kernel driver is not loaded")


@case
def kernel_name_at_another_offset():
    with mock.patch.object(machine, "json_of", lambda *_: ({"CUfunction": [16, 8]}, None)):
        assert error_of(bench.Wrong, findings.names, findings.Given(None, None, None, None)).endswith("but it is at [16, 8]")


@case
def damaged_program():
    with folder() as one:
        (one.path / "gpu/launcher-static").write_bytes(b"\x7fELF")
        one.program("inspect", "echo inspect: damaged >&2", "exit 1")
        assert error_of(bench.Wrong, findings.registrations, one.given).endswith("launcher-static: inspect: damaged")


@case
def memory_not_listed_by_nvml():
    with folder() as one, mock.patch.dict(os.environ, {"STANDIN_NVML": str(one.path / "nvml")}):
        one.workload()
        (one.path / "nvml").write_text("device 0\nname Card\n")
        one.tool("gpualloc", {"live_bytes": 100000000 + 50 * 70000})
        equal(error_of(bench.Missing, findings.memory, one.given), "NVML reports no memory for this process")


@case
def hang_without_nvml():
    with folder() as one:
        one.workload()
        one.tool("cudasync", {"waiting": 1})
        one.tool("cudatop", {"by": "diagnosis", "rule": "hangs", "diagnosis": "waits"})
        found = dict(findings.hang(one.given._replace(nvml="/no/nvml")))
        equal((found["SM% of the spinning process, by NVML"], found["GPU of the spinning process, by cudatop"]), ("not sampled", "unknown"))
        equal(found["GPUs of the spinning process, by NVML"], "none")


@case
def spinning_program_exits_early():
    with folder() as one:
        one.program("standin/workload-dlopen", "folder=${1#*touch }", 'folder=${folder%%/up*}', 'touch "$folder/up"',
                    'while [ ! -e "$folder/go" ]; do sleep 0.01; done', "exit 5")
        for tool in "cudasync", "cudatop":
            one.tool(tool, {"waiting": 1}, {"by": "diagnosis", "rule": "hangs", "diagnosis": "waits"})
        with mock.patch.object(findings, "nvml_report", lambda *_: subprocess.run(["sleep", "0.3"]) and {"devices": []}):
            equal(error_of(bench.Wrong, findings.hang, one.given), "the spinning program exited early, with 5")


@case
def failing_findings():
    def wrong(given):
        yield "first", 1
        raise bench.Wrong("not as expected")

    def broken(given):
        raise KeyError("calls")

    results = Checks()
    equal(findings.found_by(wrong, None, results, None), [{"check": "findings.wrong", "what": "first", "value": 1}])
    findings.found_by(broken, None, results, None)
    equal(results, [("findings.wrong", "FAIL", "not as expected"), ("findings.broken", "FAIL", "KeyError('calls')")])


# --- costs and cases ---

@case
def costs_that_cannot_be_measured():
    with folder() as one:
        failing = one.program("standin/workload-dlopen", "exit 3")
        equal(checks_of(costs.measured, costs.loads[0], one.given, 1, 1), [("costs.launch", "FAIL", f"{failing} exited with 3")])
        equal(checks_of(costs.measured, costs.training, one.given._replace(python="no-python-at-all"), 1, 1),
              [("costs.training", "skip", "no-python-at-all has no torch")])


@case
def cases_end_unexpectedly():
    with folder() as one, mock.patch.object(run, "root", one.path):
        results = Checks()
        run.cases([], None, results, lambda name: True)
        equal(results, [("cases", "FAIL", "exited with 2")])


@case
def invalid_options():
    for options, words in ((["--only", "nothing"], "unknown part nothing:"), (["--rounds", "0"], "must be at least 1")):
        done = subprocess.run([sys.executable, "-B", here.parent / "run", *options], capture_output=True, text=True)
        equal((done.returncode, words in done.stderr), (2, True))
    with mock.patch.object(os, "geteuid", lambda: 1000), contextlib.redirect_stderr(open(os.devnull, "w")):
        equal(error_of(SystemExit, run.options), "2")


# --- the witness ---

def no_comparison(one, command, kind=witness.NoComparison, env={}, forks=False, seconds=60):
    return error_of(kind, lambda: witness.run(one.path, "any", command, env, forks, seconds))


report = {"version": 1, "failure": "", "calls": {}}


def writes(**changed):
    """A shell line that writes a report like the witness's."""
    return f"""echo '{json.dumps(report | changed)}' | sed "s/^{{/{{\\"pid\\": $$, /" >"$WITNESS_FOLDER/$$.json" """


@case
def missing_cupti():
    with mock.patch.object(witness.glob, "glob", lambda pattern: []):
        results, given = Checks(), findings.Given(None, None, None, sys.executable)
        equal(witnessed.run(None, given, None, None, results, lambda name: True, None), (None, {}))
        equal(witnessed.run(None, None, None, None, None, lambda name: False, None), (None, {}))
        assert results[0][:2] == ("witness", "skip") and results[0][2].startswith("no libcupti.so")


@case
def programs_without_a_witness_report():
    with folder() as one:
        one.tools()
        equal(no_comparison(one, [one.program("program", "echo no device", "exit 3")]),
              "the program exited with 3, 0 witness reports: no device")
        equal(no_comparison(one, [one.program("program", writes(failure="no rights"))]), "no rights")
        children = one.program("program", writes(), """echo '{"pid": 1}' >"$1/truth" """)
        equal(no_comparison(one, [children, "{folder}"], forks=True), "no witness report from 1 children")
        equal(no_comparison(one, ["sleep", "60"], env={"LD_PRELOAD": [driver]}, seconds=0.3),
              "the program did not exit within 0.3 s")


@case
def failing_tools():
    with folder() as one:
        one.tools()
        program = one.program("program", writes())
        one.tool("cudasync", then="echo no memory >&2; exit 1")
        assert no_comparison(one, [program], bench.Wrong).startswith("cudasync exited with 1: ")
        (one.path / "gpualloc").unlink()
        assert "gpualloc" in no_comparison(one, [program], FileNotFoundError)


@case
def failing_comparisons():
    """If a tool or the workload fails, the check fails. If another program fails, the check is skipped."""
    for name, error, result in (("torch_eager", witness.NoComparison("x"), "skip"), ("workload", witness.NoComparison("x"), "FAIL"),
                                ("torch_eager", bench.Wrong("x"), "FAIL"), ("torch_eager", KeyError("x"), "FAIL")):
        with mock.patch.object(witness, "compare", mock.Mock(side_effect=error)):
            results = checks_of(witnessed.comparison, None, None, None, (name, [], {}, None))
            equal([words[:2] for words in results], [(f"witness.{name}", result)])
    equal(checks_of(witnessed.comparison, None, None, None, ("torch_eager", [], {}, "no torch")),
          [("witness.torch_eager", "skip", "no torch")])
    lost = {"cupti": 1, "compared": 5, "differences": [], "lost": ["cudatop lost 3"]}
    with mock.patch.object(witness, "compare", lambda *_, **__: lost):
        equal(checks_of(witnessed.comparison, None, None, None, ("workload", [], {}, None)),
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
