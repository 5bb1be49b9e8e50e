# SPDX-License-Identifier: Apache-2.0
"""cudasync on NVIDIA's libcuda, which refuses every call before cuInit(): each call is counted as an error."""
import functools
from collections import Counter

import harness
import waits
from harness import check, equal
from programs import Tool
from vendor import Caller, check_probes, driver, drivers, each, exports

case = functools.partial(harness.case, tool="cudasync")
each_driver = each(drivers)
functions = {*waits.driver_syncs, *waits.driver_copies, *waits.driver_frees, *waits.not_called["driver"]}


def exported(version):
    return sorted(functions & exports(driver(version)))


@case(each=each_driver)
def probes_all_exported_functions(version):
    equal(check_probes(driver(version), drivers[version], functions), len(functions), "functions in the table")


waiting = {"cuCtxSynchronize": "context", "cuStreamSynchronize": "stream", "cuEventSynchronize": "event",
           "cuMemcpyDtoH_v2": "copy", "cuMemFree_v2": "free"}


@case(each={f"{version}-{function}": (version, function) for version in drivers for function in waiting})
def hung_before_tracing(of):
    """Reports threads that sleep or spin in NVIDIA's code, which has no symbols."""
    version, function = of
    caller = Caller(driver(version))
    for how in "", " spin":
        caller.ask(f"hang {function}{how}")
    tool = Tool("-p", caller.pid, "--by", "api,wait", "-i", "0.5", "-d", "1.6").finish()
    caller.process.kill()
    equal({(row["function"], row["wait"], row["source"]) for row in tool.rows}, {(function, waiting[function], "stacks")},
          "pending calls")
    equal((tool.rows[-1]["waiting"], tool.rows[-1]["waiting_earlier"]), (2, 2), f"waiting threads: {tool.rows[-1]}")


@case(each=each_driver)
def hung_in_other_calls_before_tracing(version):
    """Calls that are not waits are not reported as waiting."""
    caller = Caller(driver(version))
    for function in "cuMemAlloc_v2", "cuStreamQuery", "cuLaunchKernel", "cuCtxGetDevice":
        caller.ask(f"hang {function}")
    tool = Tool("-p", caller.pid, "-i", "0.5", "-d", "1.6").finish()
    caller.process.kill()
    equal(tool.rows, [], "waits")


@case(each=each_driver)
def raw_calls(version):
    caller = Caller(driver(version))
    table, failed = (Tool("-p", caller.pid, "--by", "api,wait", *more) for more in ([], ["-x"]))
    lines = Tool("-p", caller.pid, "-e")
    truth = caller.ask(f"raw 5 {' '.join(exported(version))}")
    caller.end()
    equal({call["function"] for call in truth}, set(exported(version)), "functions called")
    not_initialized = 3
    check(sum(call["result"] == not_initialized for call in truth) > 0.8 * len(truth), f"unexpected results: {truth}")
    calls, errors, results = Counter(), Counter(), Counter()
    for call in truth:
        calls[call["function"]] += call["count"]
        if call["result"]:
            errors[call["function"]] += call["count"]
            results[call["function"], call["result"]] += call["count"]
    rows = {row["function"]: row for row in table.finish().rows}
    equal({name: row["calls"] for name, row in rows.items()}, dict(calls), "calls")
    equal({name: row["errors"] for name, row in rows.items() if row["errors"]}, dict(errors), "errors")
    equal({row["waiting"] for row in rows.values()}, {0}, "threads still waiting")
    equal({(row["function"], row["result_code"]): row["calls"] for row in failed.finish().rows}, dict(results), "failures")
    equal(Counter(event["function"] for event in lines.finish().events), calls, "lines")
