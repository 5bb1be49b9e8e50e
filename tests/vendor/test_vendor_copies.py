# SPDX-License-Identifier: Apache-2.0
"""cudamemcpy on NVIDIA's libraries: each copying function is probed, and its arguments are read correctly."""
import re

from copies import bare, case, count, table
from harness import check, equal
from programs import Tool
from vendor import Caller, check_probes, driver, drivers, each, exports, runtime, runtimes

copying = re.compile(r"cu(Memcpy|Memset|MemPrefetch|MemDiscardAndPrefetch)\w*")

by_function = ("function", "kind")


def expected(truth, results):
    out = {}
    for call in truth:
        n = call["count"]
        measures = {"errors": n, "failed_bytes": n * call["bytes"]} if results and call["result"] else \
            {"copies": n * call["copies"], "calls": n, "bytes": n * call["bytes"]}
        out.update({(call["function"], call["kind"], measure): value for measure, value in measures.items()})
    return out


def counted(tool):
    return {key: n for key, n in count(tool, by_function).items() if key[2] not in ("small", "synchronous")}


@case(each=each(drivers))
def every_copying_function_is_known(version):
    """The probe table contains all copying functions that the driver exports, and the test program calls each of
    them."""
    exported = {name for name in exports(driver(version)) if copying.fullmatch(name)}
    known = {row.name for row in table() if row.layer == "driver"}
    # The table has no rows for functions that take 32-bit addresses, or for those of CUDA 3.1, since no program calls
    # them.
    old = {name for name in exported if name + "_v2" in exported and name not in known}
    equal(exported - known - old, {name for name in exported if "GetAttribute" in name}, "functions without a row")
    called = {call["function"] for call in Caller(driver(version)).ask("copies 1")}
    equal(called, exported & known, "functions called")


@case(each=each(drivers), asan=True)
def sizes_and_failures(version):
    """Counts, latency mode and failures, from three tools at once."""
    caller = Caller(driver(version))
    arguments = ("-p", caller.pid, "--by", "api,kind", "-r", 0)
    table_, latency, failed = Tool(*arguments), Tool(*arguments, "-l"), Tool(*arguments, "-x")
    truth = caller.ask("copies 20")
    caller.end()
    check(sum(call["result"] == 3 for call in truth) > 60, "too few calls fail with CUDA_ERROR_NOT_INITIALIZED")
    equal(counted(table_.finish()), expected(truth, False), f"{table_}")
    equal(counted(latency.finish()), expected(truth, True), f"{latency}")
    equal(counted(failed.finish()), expected([call for call in truth if call["result"]], True), f"{failed}")


@case(each=each(drivers))
def all_probes_attach(version):
    check_probes(driver(version), drivers[version], {row.name for row in table() if row.layer == "driver"})


@case(each=each(runtimes))
def at_the_runtime(version):
    """Without a driver the runtime refuses all copies."""
    caller = Caller(runtime(version))
    arguments = ("-p", caller.pid, "--api", "runtime", "--by", "api,kind", "-r", 0)
    table_, latency = Tool(*arguments), Tool(*arguments, "-l")
    truth = caller.ask("copies 10")
    caller.end()
    check(len({bare(call["function"]) for call in truth}) >= 12, f"unexpected functions called: {truth}")
    equal({call["result"] for call in truth}, {35}, "results")
    equal(counted(table_.finish()), expected(truth, False), f"{table_}")
    equal(counted(latency.finish()), expected(truth, True), f"{latency}")
