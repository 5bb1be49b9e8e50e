# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's libcudart, shared, and in programs built by nvcc. Without a device it refuses launches before it calls the
driver, so they are only visible at the runtime."""
from compare import same_events, same_failures, same_table
from harness import Skip, case, check, equal
from programs import Tool
from vendor import Caller, Program, driver, driver_folder, each, programs, runtime, runtime_results, runtimes

each_runtime = each(runtimes)
# {runtime: a driver that is new enough for it}; there is no device.
matching = {"11.8": "535", "12.4": "535", "13.0": "580"}


@case(each=each_runtime)
def without_a_driver(version):
    caller = Caller(runtime(version))
    table = Tool("-p", caller.pid, "--api", "runtime", "-l")
    lines = Tool("-p", caller.pid, "--api", "runtime", "-e", "-l")
    truth = caller.calls(10)
    caller.end()
    equal({call["result"] for call in truth}, {35}, "results")
    same_table(table.finish(), truth)
    same_events(lines.finish(), truth, runtime_results)


@case(each=each_runtime)
def with_a_driver(version):
    """The runtime calls the driver, but launches do not reach it."""
    driver(matching[version])
    caller = Caller(runtime(version), folder=driver_folder(matching[version]))
    failed = Tool("-p", caller.pid, "--api", "runtime", "-x")
    both = Tool("-p", caller.pid, "--api", "both", "-l")
    below = Tool("-p", caller.pid, "-l")
    truth = caller.calls(10)
    caller.end()
    equal({call["result"] for call in truth}, {100}, "results")
    same_failures(failed.finish(), truth, runtime_results)
    same_table(both.finish(), truth)
    equal({row["layer"] for row in both.rows}, {"runtime"}, "layers")
    equal(below.finish().rows, [], "launches at the driver")


def launcher(form):
    path = programs / f"launcher-{form}"
    if not path.exists():
        raise Skip("nvcc is not installed, or cannot use this machine's compiler")
    return Program([path])


@case(each=each(("static", "shared")))
def built_by_nvcc(form):
    """Kernels have names: the handle of a launch is the address of a host function with that name. The tools stop
    before the program, since they read its memory."""
    program = launcher(form)
    tools = [Tool("-p", program.pid, "--api", api, "-l") for api in ("runtime", "both")]
    lines = Tool("-p", program.pid, "--api", "runtime", "-e", "-l")
    truth = program.ask("30")
    check(len(truth) == 4 and all(call["result"] for call in truth), f"unexpected launches: {truth}")
    for tool in tools:
        same_table(tool.stop(), truth)
    same_events(lines.stop(), truth, runtime_results)
    program.end()


@case
def stripped_and_running():
    """Names are only in the registration code, so the tool may find them too late. Counts must be exact anyway."""
    program = launcher("shared-stripped")
    tool = Tool("-p", program.pid, "--api", "runtime", "-l")
    truth = program.ask("30")
    program.end()
    got = {tuple(row["grid"]): row["launches"] for row in tool.finish().rows}
    equal(got, {tuple(call["grid"]): call["count"] for call in truth}, "launches by grid, which differs between kernels")


@case(alone=True)
def stripped_and_started_later():
    """The tool learns the names when the program registers its kernels at startup. With -p or -n it might attach the
    probes too late."""
    first = launcher("shared-stripped")  # so that the runtime is already probed
    tool = Tool("--api", "runtime", "-l")
    program = launcher("shared-stripped")
    truth = program.ask("30")
    same_table(tool.stop(), truth)
    first.end()
    program.end()


@case
def stripped_and_static():
    """The runtime cannot be found in the program. The tool keeps waiting for a driver, and reports this."""
    program = launcher("static-stripped")
    tool = Tool("-p", program.pid, "--api", "runtime")
    check("waiting" in tool.error, tool.error)
    program.ask("30")
    program.end()
    equal(tool.finish().rows, [], "rows")
