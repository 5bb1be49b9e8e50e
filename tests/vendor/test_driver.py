# SPDX-License-Identifier: Apache-2.0
"""cudalaunch on NVIDIA's libcuda. Without a device it refuses every launch, but symbols, code and argument locations
are the same as on any machine."""
import collections
import json
import os
import re
import subprocess
import sys

import harness
from compare import same_events, same_failures, same_table
from harness import case, check, equal
from programs import Tool
from vendor import Caller, check_probes, driver, drivers, each, exports, placements, results

each_driver = each(drivers)
launching = re.compile(r"cu(Launch|GraphLaunch|StreamAddCallback)\w*")


@case(each=each_driver)
def placement_of_all_functions(version):
    """Nearly all exported functions can be probed without single-stepping."""
    names = [name for name in exports(driver(version)) if re.match("cu[A-Z]", name)]
    places = collections.Counter((one["delta"], one["emulated"]) for one in placements(driver(version), names))
    print(f"   {version}: " + ", ".join(f"{n} at +{delta}{'' if emulated else ' single-stepped'}"
                                        for (delta, emulated), n in places.most_common()))
    check(places[drivers[version], True] >= 0.98 * len(names), f"unexpected placements of {len(names)} functions: {dict(places)}")


@case(each=each_driver)
def placement_of_probes(version):
    check_probes(driver(version), drivers[version])


@case(each=each_driver)
def injects_the_witness(version):
    """cuInit() loads the witness from $CUDA_INJECTION64_PATH. CUPTI needs a device, so here it is an invalid file, and
    the witness must report that it cannot be loaded. tests/gpu tests the witness with CUPTI."""
    path, cupti = harness.build / "gpu/witness.so", harness.here / "libcupti.so"
    check(path.exists(), f"{path} does not exist: run make gpu-parts")
    cupti.write_text("none")
    environment = os.environ | {"CUDA_INJECTION64_PATH": str(path), "WITNESS_CUPTI": str(cupti), "WITNESS_FOLDER": str(harness.here)}
    program = subprocess.Popen([sys.executable, "-c", f"import ctypes; ctypes.CDLL('{driver(version)}').cuInit(0)"], env=environment)
    equal(program.wait(60), 0, "exit status")
    record = json.loads((harness.here / f"{program.pid}.json").read_text())
    equal((record["pid"], "too short" in record["failure"]), (program.pid, True), f"{record}")


@case(each=each_driver)
def every_launching_function_is_called(version):
    """The other cases cover all exported launching functions, including new ones."""
    exported = {name for name in exports(driver(version)) if launching.fullmatch(name)}
    equal({call["function"] for call in Caller(driver(version)).calls()}, exported, "launching functions")


@case(each=each_driver)
def addresses_are_exported(version):
    """cuGetProcAddress() returns addresses of exported functions, which are probed."""
    names = sorted(name for name in exports(driver(version)) if re.match("cu[A-Z]", name))
    answer, = Caller(driver(version)).ask("addresses " + " ".join(names))
    print(f"   {version}: {answer['given']} addresses for {len(names)} names")
    equal(answer["foreign"], [], "functions with an address that is not exported")
    check(answer["given"] > 10000, f"only {answer['given']} addresses returned")


@case(each=each_driver, asan=True)
def calls(version):
    """Counts, counts with latencies and errors, failures, and lines, from four tools at once: each function has several
    entry and return probes."""
    caller = Caller(driver(version))
    table, timed, failed, lines = (Tool("-p", caller.pid, *mode) for mode in ([], ["-l"], ["-x"], ["-e", "-l"]))
    truth = caller.calls_of_all_results(20)
    caller.end()
    same_table(table.finish(), truth, errors=False)
    same_table(timed.finish(), truth)
    for row in timed.rows:
        check(0 < row["latency_p50_ns"] <= row["latency_p99_ns"] and row["latency_max_ns"] <= row["latency_total_ns"],
              f"inconsistent latencies in {row}")
    same_failures(failed.finish(), truth, results)
    same_events(lines.finish(), truth, results)


@case(each=each(("session", "multi", "tracefs", "perf")))
def each_tier(tier):
    """A second tool starts after the first one exited. The first one's clean-up must not affect the second one."""
    caller = Caller(driver("535"))
    tool = Tool("-p", caller.pid, "--attach", tier)
    truth = caller.calls(50)
    same_table(tool.stop(), truth, errors=False)
    tool = Tool("-p", caller.pid, "--attach", tier, "-e", "-l")
    truth = caller.calls_of_all_results(50)
    same_events(tool.stop(), truth, results)
    caller.end()
