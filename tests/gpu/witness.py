# SPDX-License-Identifier: Apache-2.0
"""Runs a program under CUPTI and the tools at the same time. Both must count the same number of calls of each
function."""
import collections
import contextlib
import glob
import json
import pathlib
import re
import subprocess
import sys

import machine
from bench import Wrong, bench, end, until

places = ["/usr/local/cuda/extras/CUPTI/lib64/libcupti.so*", "/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*",
          "/usr/local/cuda*/lib*/libcupti.so*", "/usr/local/cuda*/targets/x86_64-linux/lib/libcupti.so*",
          "/usr/lib/x86_64-linux-gnu/libcupti.so*", "/opt/cuda/extras/CUPTI/lib64/libcupti.so*"]
wheels = ["nvidia/cuda_cupti/lib/libcupti.so*", "nvidia/cu1?/lib/libcupti.so*"]

tools = {"cudalaunch": ["-l", "--by", "pid,api,kernel"], "cudamemcpy": ["-l", "--by", "pid,api,kind"],
         "cudasync": ["--by", "pid,api"], "gpualloc": ["--by", "pid,api,kind"], "gpualloc -e": [],
         "cudagraph": ["--by", "pid,api"]}
# Fields of a tool's rows that count calls and failed calls. Each row of "gpualloc -e" is a call.
call_fields = {"cudalaunch": ("launches", "captured", "graph_launches", "host_functions"),
          "cudamemcpy": ("calls", "errors", "captured"), "cudasync": ("calls",), "gpualloc": ("allocs", "failures", "captured"),
          "gpualloc -e": ("calls",),
          "cudagraph": ("launches", "captured", "captures", "instantiates", "updates", "uploads", "parameter_sets", "destroyed",
                        "errors")}
failure_fields = {"cudalaunch": ("errors",), "cudamemcpy": ("errors",), "cudasync": ("errors", "not_ready"), "gpualloc": ("failures",),
          "gpualloc -e": ("failures",), "cudagraph": ("errors",)}
# Kinds of functions in the probe table that each tool must count. If CUPTI reports a function of these kinds and the
# tool does not count it, that is a difference.
probe_kinds = {"cudalaunch": "LAUNCH|LAUNCH_LEGACY|GRAPH_LAUNCH|HOST_FUNC", "cudamemcpy": "COPY|COPY_BATCH|COPY_BATCH_3D",
         "cudasync": "WAIT", "gpualloc": "ALLOC|REGISTER_HOST|PHYSICAL_NEW", "gpualloc -e": "FREE|PHYSICAL_FREE",
         "cudagraph": "GRAPH_LAUNCH|CAPTURE_END|GRAPH_INSTANTIATE|GRAPH_UPDATE|GRAPH_UPLOAD|GRAPH_SET|EXEC_DESTROY"}
# These tools also print rows for functions of other kinds, but count only some of their calls (failures, or frees of
# other memory). Those functions are not compared.
tools_limited_to_kinds = ("gpualloc", "gpualloc -e", "cudagraph")
# gpualloc's kinds of memory, and CUPTI's name for each. CUPTI has no records of other kinds.
memories = {"device": "device", "pool": "device", "array": "array", "managed": "managed", "pinned": "pinned"}


class NoComparison(Exception):
    """A program could not be compared; the text is the reason."""


def find(given, python):
    """Path of CUPTI; None if it is not installed."""
    if given:
        return pathlib.Path(given).resolve()
    patterns = [f"{folder}/{wheel}" for folder in machine.site_folders(python) for wheel in wheels] + places
    return next((pathlib.Path(path).resolve() for pattern in patterns for path in sorted(glob.glob(pattern))), None)


def counted_by(root):
    """Driver functions that each tool counts, from the probe table."""
    text = "".join(path.read_text() for path in sorted((root / "src/attach").glob("probe_table*.cpp")))
    rows = re.findall(r'\{"(cu(?!da)\w+)(?:\[(_\w+)\])?", KIND_(\w+),', text)
    return {tool: {name + suffix for name, variant, kind in rows if re.fullmatch(wanted, kind)
                   for suffix in {"", variant}} for tool, wanted in probe_kinds.items()}


def preloaded(libraries, folder):
    """Value of LD_PRELOAD. The loader splits it at spaces and colons, so it names links in `folder` instead of paths
    that may contain these characters. A name without a folder is left to the loader."""
    names = []
    for library in map(pathlib.Path, libraries):
        if library.is_absolute():
            (folder / library.name).symlink_to(library)
            library = folder / library.name
        names.append(str(library))
    return ":".join(names)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(build, cupti, command, env, forks, seconds=300):
    """Returns the witness's reports (one per process), the rows of each tool by name, and the lines of the program's
    truth file, if it writes one. The program must open the driver, and then wait for a line of input or for the file
    {folder}/go before it makes calls. LD_PRELOAD is a list of libraries. `forks`: children are included, so the tools
    trace all processes. Raises Wrong if a tool fails."""
    with bench(build) as one:
        extra = {"CUDA_INJECTION64_PATH": build / "gpu/witness.so", "WITNESS_CUPTI": cupti, "WITNESS_FOLDER": "{folder}"}
        extra |= {name: preloaded(value, one.folder) if name == "LD_PRELOAD" else value for name, value in env.items()}
        program = one.start(command, "program", extra, stdin=subprocess.PIPE)
        opened = lambda: "libcuda.so" in pathlib.Path(f"/proc/{program.pid}/maps").read_text()
        try:
            until(lambda: program.poll() is not None or opened(), "the program opens the driver")
        except Wrong as reason:
            raise NoComparison(str(reason))
        scope = [] if forks else ["-p", program.pid]
        running = {tool: one.start([build / tool.split()[0], *tool.split()[1:], *options, "--json", *scope], tool)
                   for tool, options in tools.items()}
        for tool, process in running.items():
            one.wait_for_tool(tool, process)
        one.go()
        try:
            with contextlib.suppress(BrokenPipeError):
                program.communicate("5\n", seconds)
        except subprocess.TimeoutExpired:
            raise NoComparison(f"the program did not exit within {seconds} s")
        if forks:
            end(running.values())
        for tool, process in running.items():
            until(lambda: process.poll() is not None, f"{tool} exits")
        reports = [json.loads(path.read_text()) for path in one.folder.glob("[0-9]*.json")]
        if program.returncode or program.pid not in (report["pid"] for report in reports):
            output = "".join((one.folder / f"program.{kind}").read_text(errors="replace") for kind in ("out", "err"))
            last = output.strip().splitlines()[-1:] or ["no output"]
            raise NoComparison(f"the program exited with {program.returncode}, {len(reports)} witness reports: {last[0][:300]}")
        for report in reports:
            if report["failure"]:
                raise NoComparison(report["failure"])
        for tool, process in running.items():
            if process.returncode:
                raise Wrong(f"{tool} exited with {process.returncode}: {one.messages(tool)}")
        truth, pids = lines(one.folder / "truth"), {report["pid"] for report in reports} if forks else {program.pid}
        if forks and (silent := {row["pid"] for row in truth} - pids):
            raise NoComparison(f"no witness report from {len(silent)} children")
        rows = {tool: [row for row in lines(one.folder / f"{tool}.out") if row["type"] == "lost" or row.get("pid") in pids]
                for tool in tools}
        return [report for report in reports if report["pid"] in pids], rows, truth


def summed(values):
    """Adds up the numbers with equal names in several reports."""
    if all(isinstance(value, dict) for value in values):
        return {key: summed([value[key] for value in values if key in value]) for key in dict.fromkeys(k for v in values for k in v)}
    return sum(values)


def sums(rows, key, *measures):
    """{key: [sum of each tuple of fields]}, without keys whose sums are all 0."""
    out = collections.defaultdict(lambda: [0] * len(measures))
    for row in rows:
        for i, fields in enumerate(measures):
            out[key(row)][i] += sum(row.get(field, 0) for field in fields)
    return {name: values for name, values in out.items() if any(values)}


def compared(theirs, rows, truth, table):
    """All common counts: {(count, name): [CUPTI's, the tools']}; a side without this name counts as 0."""
    both = {}

    def add(count, witness, ours):
        for name in sorted({*witness, *ours}):
            both[count, name] = [witness.get(name, 0), ours.get(name, 0)]

    rows = {tool: [row for row in some if row["type"] in ("row", "event")] for tool, some in rows.items()}
    rows["gpualloc -e"] = [{**row, "calls": 1, "failures": row["result_code"] != 0} for row in rows["gpualloc -e"]]
    calls = {name: [call["count"], call["failed"]] for name, call in theirs["calls"].items()}
    for tool in tools:
        ours = sums(rows[tool], lambda row: row.get("function"), call_fields[tool], failure_fields[tool])
        if tool in tools_limited_to_kinds:
            ours = {name: value for name, value in ours.items() if name in table[tool]}
        add(f"{tool}: calls, failed", {name: calls[name] for name in calls if name in table[tool] or name in ours}, ours)

    launches = rows["cudalaunch"]
    if truth:  # contains the mangled and demangled name of each kernel
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
    for count, fields in (("allocated", ("allocs", "allocated_bytes")), ("released", ("frees", "freed_bytes"))):
        add(f"{count}: count, bytes", {kind: [n["count"], n["bytes"]] for kind, n in theirs[count].items()},
            sums(rows["gpualloc"], lambda row: memories.get(row["kind"], row["kind"]), *((field,) for field in fields)))
    return both


def losses(theirs, rows):
    """Losses that make a comparison incomplete, as sentences."""
    lost = [f"CUPTI: {theirs[key]} {text}" for key, text in
            (("dropped_records", "dropped records"), ("unknown_records", "unknown records"),
             ("calls_beyond", "calls of functions with unknown numbers")) if theirs[key]]
    return lost + [f"{tool} lost {json.dumps({k: v for k, v in row.items() if isinstance(v, int) and k not in ('schema', 'monotonic_ns')})}"
                   for tool, some in rows.items() for row in some if row["type"] == "lost"]


def compare(root, build, cupti, command, env, forks):
    """Runs and compares a program; returns its part of the report."""
    reports, rows, truth = run(build, cupti, command, env, forks)
    version = reports[0]["version"]
    theirs = summed([{key: value for key, value in report.items() if key not in ("pid", "version", "failure")} for report in reports])
    both = compared(theirs, rows, truth, counted_by(root))
    return {"cupti": version, "processes": len(reports), "compared": len(both), "lost": losses(theirs, rows),
            "differences": [{"what": what, "name": name, "witness": witness, "tools": ours}
                            for (what, name), (witness, ours) in both.items() if witness != ours]}


def names(root, cupti):
    """Version of CUPTI, and counted functions that it has no name for. Needs no device. Run it in a separate process,
    since it loads the library."""
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
