# SPDX-License-Identifier: Apache-2.0
"""gpualloc on NVIDIA's libraries, which refuse every call without a device. gpualloc must count each call as a failure,
and report no memory as held."""
import functools
import re
from collections import Counter, namedtuple

import harness
from harness import check, equal
from programs import Tool
from vendor import Caller, check_probes, driver, drivers, each, exports, runtime, runtimes

case = functools.partial(harness.case, tool="gpualloc")

Row = namedtuple("Row", "name layer kind arguments")
kinds = {"ALLOC", "REGISTER_HOST", "PHYSICAL_NEW", "MAP", "TRIM", "FREE", "PHYSICAL_FREE", "PHYSICAL_RETAIN", "UNMAP"}
others = {"CONTEXT_DESTROY", "CONTEXT_RELEASE", "CAPTURE_BEGIN", "CAPTURE_END", "STREAM_NEW", "STREAM_DESTROY",
          "CONTEXT_CREATE", "CONTEXT_NEW", "CONTEXT_SET", "CONTEXT_PUSH", "CONTEXT_POP", "DEVICE_SET"}
table_line = re.compile(r'\{"(cu\w+)(?:\[(_\w+)\])?", KIND_(\w+),\s*(\{?[^}]*)\}')


@functools.cache
def table():
    """The functions of the probe table that gpualloc probes, including variants."""
    rows = []
    text = "".join(path.read_text() for path in sorted((harness.root / "src/attach").glob("probe_table*.cpp")))
    for name, variant, kind, rest in table_line.findall(text):
        layer = "runtime" if name.startswith("cuda") else "driver"
        for suffix in ("", variant) if variant else ("",):
            if kind in kinds | others and not (kind.startswith("CAPTURE") and layer == "runtime"):
                rows.append(Row(name + suffix, layer, kind, rest))
    return rows


def rows_of(layer, library):
    exported = exports(library)
    return {row.name: row for row in table() if row.layer == layer and row.kind in kinds and row.name in exported}


def counted(row):
    """True if gpualloc counts a call with a pointer to zeros as first argument, and 0 as all others. It does not count
    frees of a null pointer, nor failed calls that take a reference to memory."""
    return row.kind != "PHYSICAL_RETAIN" and not (row.kind == "FREE" and "(address" not in row.arguments)


def unreadable(row):
    """True if the function reads a structure through a pointer other than its first argument: here, that pointer is
    null."""
    return re.search(r", [^,]*\*\{|channel_bits|array_3d", row.arguments) is not None


libraries = {version: (layer, version) for layer, some in (("driver", drivers), ("runtime", runtimes)) for version in some}


@case(each=libraries, asan=True)
def probes_all_exported_functions(chosen):
    layer, version = chosen
    library, offset = (driver(version), drivers[version]) if layer == "driver" else (runtime(version), 0)
    functions = {row.name for row in table() if row.layer == layer}
    equal(check_probes(library, offset, functions, "--api", layer), len(functions), "functions in the table")


def refused_calls(library, layer, arguments=()):
    """Compares rows, failures and lines (three tools at once) of all functions that this library has."""
    functions = rows_of(layer, library)
    caller = Caller(library)
    rows, failed = (Tool("-p", caller.pid, "--by", "api", "-r", 0, *arguments, *more, losses=True) for more in ([], ["-x"]))
    lines = Tool("-p", caller.pid, "-e", *arguments, losses=True)
    truth = caller.ask(f"raw 5 {' '.join(sorted(functions))}")
    caller.end()
    equal({call["function"] for call in truth}, set(functions), "functions called")
    failures, results = Counter(), Counter()
    for call in truth:
        if call["result"] and counted(functions[call["function"]]):
            failures[call["function"]] += call["count"]
            results[call["function"], call["result"]] += call["count"]
    for tool in rows, failed, lines:
        tool.finish()
        lost = sum(call["count"] for call in truth if unreadable(functions[call["function"]]))
        equal(tool.lost, {"arguments_unreadable": lost} if lost else {}, f"losses of {tool}")
    equal({row["function"]: row["failures"] for row in rows.rows if row["failures"]}, dict(failures), "failures by function")
    equal({(row["function"], row["result_code"]): row["failures"] for row in failed.rows}, dict(results), "results")
    equal(Counter((e["function"], e["result_code"]) for e in lines.events if e["result_code"]), results, "lines")
    for row in rows.rows:
        equal([row[name] for name in ("live_allocations", "live_bytes", "allocs", "frees", "out_of_memory", "released")], [0] * 6,
              f"held memory: {row}")
    return truth


@case(each=each(drivers))
def driver_calls(version):
    truth = refused_calls(driver(version), "driver")
    not_initialized = sum(call["result"] == 3 for call in truth)
    check(not_initialized > 0.8 * len(truth), f"unexpected results: {truth}")


@case(each=each(runtimes))
def runtime_calls(version):
    truth = refused_calls(runtime(version), "runtime", ("--api", "runtime"))
    check(sum(call["result"] == 35 for call in truth) > 0.8 * len(truth), f"unexpected results: {truth}")
