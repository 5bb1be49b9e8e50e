# SPDX-License-Identifier: Apache-2.0
"""Kernel names of stripped programs that started before the tool: from the registrations in their code, and from their
memory. Each name is reported with its source."""
import os
import subprocess

import harness
from harness import case, equal
from programs import Tool, Workload
from test_names import demangled, every_kernel, known_before
from truth import same_counts


def running(form, seconds=6, strip=False):
    """A program that has its handles already, and makes calls for this number of seconds once "start" exists."""
    folder = harness.here if strip else None
    if strip:
        subprocess.run(["strip", "-o", harness.here / form, harness.standin / form], check=True)
    workload = Workload(known_before + f"repeat {seconds * 10}; {every_kernel}; sleep 100; end", form, folder=folder,
                        env={"LD_LIBRARY_PATH": str(harness.standin)})
    workload.go()
    harness.wait_until((harness.here / "up").exists, "the handles are created")
    return workload


def stripped(form):
    return running(form, strip=True)


def sources(tool, **fields):
    return {(row["kernel"], row["name_source"]) for row in tool.rows
            if "kernel" in row and all(row[k] == v for k, v in fields.items())}


def traced(workload, *arguments, cache=None):
    """Traces the program from here to its exit. Returns the tool and the truth."""
    folder = cache or harness.here / "cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ["CACHE_DIRECTORY"] = str(folder)
    tool = Tool("-p", workload.pid, "-i", 1, *arguments)
    (harness.here / "start").touch()
    truth = workload.truth()
    return tool.finish(), truth


def last_sources(tool):
    return sources(tool, time=max(row["time"] for row in tool.rows))


@case(asan=True)
def a_static_runtime_stripped():
    """The runtime cannot be probed, and all handles existed before tracing: names come from the driver's objects, for
    kernels whose registrations were found in the program."""
    tool, truth = traced(running("workload-static-stripped"))
    same_counts(tool, truth, api="driver", by=())
    equal(last_sources(tool), {(name, "object") for name in demangled}, "names and their sources")


@case
def a_run_of_two_seconds():
    """With -p, files are scanned from the start."""
    workload = stripped("workload")
    tool = Tool("-p", workload.pid, "--api", "runtime", "-d", 2)
    (harness.here / "start").touch()
    tool.finish()
    workload.process.kill()
    equal(sources(tool), {(name, "registration") for name in demangled}, "names and their sources")


@case(each={"correlation": (True, "driver"), "symbol": (False, "runtime")})
def each_source(how):
    """In a stripped program, the host stubs with which the runtime is called have no symbols."""
    strip, api = how
    source = "correlation" if strip else "symbol"
    tool, _ = traced(running("workload", strip=strip), "--api", api)
    equal(last_sources(tool), {(name, source) for name in demangled}, "names and their sources")


@case
def handles_of_runtime_13():
    """These handles are opaque and existed before tracing: they are found in the program's variables."""
    tool, _ = traced(stripped("workload13"), "--api", "runtime")
    equal(last_sources(tool), {(name, "handle") for name in demangled}, "names and their sources")


@case
def a_run_with_one_report():
    """All launches come before the file is scanned. The tool must name the kernels when the scan ends, since the
    process has exited by the time of the only report."""
    workload = Workload(known_before + f"{every_kernel}; sleep 2500", "workload-static-stripped",
                        env={"LD_LIBRARY_PATH": str(harness.standin)})
    workload.go()
    harness.wait_until((harness.here / "up").exists, "the handles are created")
    tool = Tool("-p", workload.pid, "--no-cache")
    (harness.here / "start").touch()
    same_counts(tool, workload.truth(), api="driver", by=())
    equal(sources(tool.finish()), {(name, "object") for name in demangled}, "names and their sources")


@case
def in_events():
    """-e: the first events have a handle, later ones the name."""
    tool, _ = traced(stripped("workload"), "--api", "runtime", "-e")
    last = tool.events[-15:]
    equal({(event.get("kernel"), event.get("name_source")) for event in last},
          {(name, "registration") for name in demangled}, "names and their sources")


@case
def names_are_cached():
    """Names are cached by build-id for the next run; only the owner can read the cache."""
    folder = harness.here / "kept"
    tool, _ = traced(stripped("workload"), "--api", "runtime", cache=folder)
    equal(last_sources(tool), {(name, "registration") for name in demangled}, "names and their sources")
    file, = folder.iterdir()
    equal(file.stat().st_mode & 0o777, 0o600, "mode")
