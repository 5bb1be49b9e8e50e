# SPDX-License-Identifier: Apache-2.0
"""A program under CUPTI and under the tools at once: what both count must be equal, function by function."""
import collections
import contextlib
import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import machine
import processes

places = ["/usr/local/cuda/extras/CUPTI/lib64/libcupti.so*", "/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*",
          "/usr/local/cuda*/lib*/libcupti.so*", "/usr/local/cuda*/targets/x86_64-linux/lib/libcupti.so*",
          "/usr/lib/x86_64-linux-gnu/libcupti.so*", "/opt/cuda/extras/CUPTI/lib64/libcupti.so*"]
wheels = ["nvidia/cuda_cupti/lib/libcupti.so*", "nvidia/cu1?/lib/libcupti.so*"]

tools = {"cudalaunch": ["-l", "--by", "pid,api,kernel"], "cudamemcpy": ["-l", "--by", "pid,api,kind"],
         "cudasync": ["--by", "pid,api"], "gpualloc": ["--by", "pid,api,kind"], "gpualloc -e": [],
         "cudagraph": ["--by", "pid,api"]}
# Which fields of a tool's rows say how often a function was called, and how often in vain. A row of "gpualloc -e" is a call.
called = {"cudalaunch": ("launches", "captured", "graph_launches", "host_functions"),
          "cudamemcpy": ("calls", "errors", "captured"), "cudasync": ("calls",), "gpualloc": ("allocs", "failures", "captured"),
          "gpualloc -e": ("calls",),
          "cudagraph": ("launches", "captured", "captures", "instantiates", "updates", "uploads", "parameter_sets", "destroyed",
                        "errors")}
failed = {"cudalaunch": ("errors",), "cudamemcpy": ("errors",), "cudasync": ("errors", "not_ready"), "gpualloc": ("failures",),
          "gpualloc -e": ("failures",), "cudagraph": ("errors",)}
# Kinds of the probe table that a tool has to count: what it leaves out is a difference, too.
kinds = {"cudalaunch": "LAUNCH|LAUNCH_LEGACY|GRAPH_LAUNCH|HOST_FUNC", "cudamemcpy": "COPY|COPY_BATCH|COPY_BATCH_3D",
         "cudasync": "WAIT", "gpualloc": "ALLOC|REGISTER_HOST|PHYSICAL_NEW", "gpualloc -e": "FREE|PHYSICAL_FREE",
         "cudagraph": "GRAPH_LAUNCH|CAPTURE_END|GRAPH_INSTANTIATE|GRAPH_UPDATE|GRAPH_UPLOAD|GRAPH_SET|EXEC_DESTROY"}
# Of these the tool's rows have other functions, too, which it counts by half: what fails, or what is freed by others.
of_kinds = ("gpualloc", "gpualloc -e", "cudagraph")
# CUPTI's names for what gpualloc holds; others are no records of CUPTI's.
memories = {"device": "device", "pool": "device", "array": "array", "managed": "managed", "pinned": "pinned"}


class Unseen(Exception):
    """Why there is no comparison."""


class Failed(Unseen):
    """The same, and it is the tools' fault."""


def find(given, python):
    """CUPTI's file; None if there is none."""
    if given:
        return pathlib.Path(given).resolve()
    patterns = [f"{folder}/{wheel}" for folder in machine.site_folders(python) for wheel in wheels] + places
    return next((pathlib.Path(path).resolve() for pattern in patterns for path in sorted(glob.glob(pattern))), None)


def counted_by(root):
    """The functions of the driver that each tool counts, as the probe table has them."""
    text = "".join(path.read_text() for path in sorted((root / "src/attach").glob("probe_table*.cpp")))
    rows = re.findall(r'\{"(cu(?!da)\w+)(?:\[(_\w+)\])?", KIND_(\w+),', text)
    return {tool: {name + suffix for name, variant, kind in rows if re.fullmatch(wanted, kind)
                   for suffix in {"", variant}} for tool, wanted in kinds.items()}


def until(condition, what, seconds, error=Failed):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise error(f"not within {seconds} s: {what}")
        time.sleep(0.01)


def traced(build, folder, whom):
    """The tools, once they trace."""
    running = []
    try:
        for tool, options in tools.items():
            with open(folder / f"{tool}.out", "w") as out, open(folder / f"{tool}.err", "w") as error:
                name, *more = tool.split()
                running.append(subprocess.Popen([build / name, *more, *options, "--json", *whom], stdin=subprocess.DEVNULL,
                                                stdout=out, stderr=error))
        for tool, process in zip(tools, running):
            said = folder / f"{tool}.err"
            until(lambda: processes.traces(said) or process.poll() is not None, f"{tool} traces", 60)
    except BaseException:
        processes.end(running)
        raise
    return running


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(build, cupti, command, env, forks, seconds=300):
    """The reports of the witness, one of each process, the rows of each tool by its name, and the truth if the program
    writes one. The program opens the driver and calls nothing before it can read a line, or there is the file go in the
    folder that stands for {folder} in its arguments and variables. `forks`: its children count, too, and so the tools trace
    everybody."""
    with tempfile.TemporaryDirectory(prefix="gpusnoop-witness-") as name:
        folder, running = pathlib.Path(name), []
        extra = {"CUDA_INJECTION64_PATH": str(build / "gpu/witness.so"), "WITNESS_CUPTI": str(cupti), "WITNESS_FOLDER": name}
        extra |= {variable: value.replace("{folder}", name) for variable, value in env.items()}
        try:
            with open(folder / "said", "w") as said:
                program = subprocess.Popen([str(word).replace("{folder}", name) for word in command], stdin=subprocess.PIPE,
                                           stdout=said, stderr=said, text=True, env=os.environ | extra)
            running.append(program)
            opened = lambda: "libcuda.so" in pathlib.Path(f"/proc/{program.pid}/maps").read_text()
            until(lambda: program.poll() is not None or opened(), "the program opens the driver", 60, Unseen)
            running += traced(build, folder, [] if forks else ["-p", str(program.pid)])
            (folder / "go").touch()
            with contextlib.suppress(BrokenPipeError):
                program.communicate("5\n", seconds)
            if forks:
                processes.end(running[1:])
            for process in running[1:]:
                until(lambda: process.poll() is not None, f"{process.args[0]} ends", 60)
            reports = [json.loads(path.read_text()) for path in folder.glob("[0-9]*.json")]
            if program.returncode or program.pid not in (report["pid"] for report in reports):
                last = (folder / "said").read_text(errors="replace").strip().splitlines()[-1:] or ["nothing was said"]
                raise Unseen(f"the program ended with {program.returncode}, {len(reports)} reports of the witness: {last[0][:300]}")
            for report in reports:
                if report["failure"]:
                    raise Unseen(report["failure"])
            for tool, process in zip(tools, running[1:]):
                if process.returncode:
                    raise Failed(f"{tool} ended with {process.returncode}: {(folder / f'{tool}.err').read_text()[-300:].strip()}")
            truth, pids = lines(folder / "truth"), {report["pid"] for report in reports} if forks else {program.pid}
            if forks and (silent := {row["pid"] for row in truth} - pids):
                raise Unseen(f"of {len(silent)} children there is no report of the witness")
            rows = {tool: [row for row in lines(folder / f"{tool}.out") if row["type"] == "lost" or row.get("pid") in pids]
                    for tool in tools}
            return [report for report in reports if report["pid"] in pids], rows, truth
        except subprocess.TimeoutExpired:
            raise Unseen(f"the program did not end within {seconds} s")
        finally:
            processes.end(running)


def summed(values):
    """Of reports: numbers are added, by their names."""
    if all(isinstance(value, dict) for value in values):
        return {key: summed([value[key] for value in values if key in value]) for key in dict.fromkeys(k for v in values for k in v)}
    return sum(values)


def sums(rows, key, *measures):
    """{key: [sum of each tuple of fields]}, without what is nothing."""
    out = collections.defaultdict(lambda: [0] * len(measures))
    for row in rows:
        for i, fields in enumerate(measures):
            out[key(row)][i] += sum(row.get(field, 0) for field in fields)
    return {name: values for name, values in out.items() if any(values)}


def compared(theirs, rows, truth, table):
    """What is counted by both: {(what, name): [theirs, ours]}, a count or several; 0 of one that does not have it."""
    both = {}

    def add(what, witness, ours):
        for name in sorted({*witness, *ours}):
            both[what, name] = [witness.get(name, 0), ours.get(name, 0)]

    rows = {tool: [row for row in some if row["type"] in ("row", "event")] for tool, some in rows.items()}
    rows["gpualloc -e"] = [{**row, "calls": 1, "failures": row["result_code"] != 0} for row in rows["gpualloc -e"]]
    calls = {name: [call["count"], call["failed"]] for name, call in theirs["calls"].items()}
    for tool in tools:
        ours = sums(rows[tool], lambda row: row.get("function"), called[tool], failed[tool])
        if tool in of_kinds:
            ours = {name: value for name, value in ours.items() if name in table[tool]}
        add(f"{tool}: calls, failed", {name: calls[name] for name in calls if name in table[tool] or name in ours}, ours)

    launches = rows["cudalaunch"]
    if truth:  # has both names of each kernel
        plain = {call["kernel"]: call["demangled"] for call in truth if call["type"] == "call" and call["kernel"]}
        named = collections.Counter()
        for name, count in theirs["launches"].items():
            named[plain.get(name, name)] += count
        ours = sums((row for row in launches if "launches" in row), lambda row: row.get("kernel"), ("launches", "captured"),
                    ("errors",))
        add("launches that succeed", named, {name: n - bad for name, (n, bad) in ours.items() if n - bad})
    if not any(row.get("graph_launches_unknown") for row in launches):
        ran = sum(row["launches"] - row["errors"] if "launches" in row else row.get("graph_kernels", 0) for row in launches)
        add("kernels that ran", {"all": theirs["kernels"]}, {"all": ran})

    copies = rows["cudamemcpy"]
    measures = ("copies",), ("bytes",)
    records = {kind: [n["count"], n["bytes"]] for kind, n in theirs["copies"].items()}
    add("copies, bytes", records, sums((row for row in copies if row["kind"] not in ("set", "prefetch")),
                                       lambda row: row["kind"].lower(), *measures))
    sets = theirs["sets"]
    add("sets, bytes", {"all": [sets["count"], sets["bytes"]]} if sets["count"] else {},
        sums((row for row in copies if row["kind"] == "set"), lambda row: "all", *measures))
    for what, fields in (("allocated", ("allocs", "allocated_bytes")), ("released", ("frees", "freed_bytes"))):
        add(f"{what}: count, bytes", {kind: [n["count"], n["bytes"]] for kind, n in theirs[what].items()},
            sums(rows["gpualloc"], lambda row: memories.get(row["kind"], row["kind"]), *((field,) for field in fields)))
    return both


def losses(theirs, rows):
    """What makes a comparison worth less, in words."""
    told = [f"the witness has {theirs[key]} {what}" for key, what in
            (("dropped_records", "records dropped"), ("unknown_records", "records unknown to it"),
             ("calls_beyond", "calls of functions with numbers unknown to it")) if theirs[key]]
    return told + [f"{tool} lost {json.dumps({k: v for k, v in row.items() if isinstance(v, int) and k not in ('schema', 'monotonic_ns')})}"
                   for tool, some in rows.items() for row in some if row["type"] == "lost"]


def compare(root, build, cupti, command, env, forks):
    """What a check of the report is made of."""
    reports, rows, truth = run(build, cupti, command, env, forks)
    version = reports[0]["version"]
    theirs = summed([{key: value for key, value in report.items() if key not in ("pid", "version", "failure")} for report in reports])
    both = compared(theirs, rows, truth, counted_by(root))
    return {"cupti": version, "processes": len(reports), "compared": len(both), "lost": losses(theirs, rows),
            "differences": [{"what": what, "name": name, "witness": witness, "tools": ours}
                            for (what, name), (witness, ours) in both.items() if witness != ours]}


def names(root, cupti):
    """The functions that we count and this CUPTI has no name for, and its version; needs no device. For a process of its
    own, as it loads the library."""
    import ctypes
    library, version, name, known = ctypes.CDLL(str(cupti)), ctypes.c_uint32(), ctypes.c_char_p(), set()
    library.cuptiGetVersion(ctypes.byref(version))
    for function in range(1, 4096):
        if library.cuptiGetCallbackName(1, function, ctypes.byref(name)) == 0 and name.value:
            known.add(name.value.decode())
    return {"version": version.value, "functions": len(known),
            "unknown": sorted(name for some in counted_by(root).values() for name in some if name not in known)}


if __name__ == "__main__":
    print(json.dumps(names(pathlib.Path(sys.argv[1]), sys.argv[2])))
