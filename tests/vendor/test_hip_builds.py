# SPDX-License-Identifier: Apache-2.0
"""AMD's libamdhip64 as built by Debian. Without a device it refuses every call, but code and argument locations are the
same as on any machine."""
import json
import re
import subprocess
from collections import Counter

import harness
from harness import case, check, equal
from hip import Calls
from programs import Tool
from test_vendor_names import scan
from vendor import each, exports, fetched_file, inspect, placements

# {version: (file, exported functions, functions whose probe is placed in another function, single-stepped functions)}.
# 8 functions of 7.2.4 forward to functions that do not exist (hipGraph...ExternalSemaphores...), and would jump to 0.
builds = {
    "5.2": ("libamdhip64.so.5.2.21153", 407, 0, 8),
    "5.7": ("libamdhip64.so.5.7.31921", 457, 0, 6),
    "6.4": ("libamdhip64.so.6.4.43484", 500, 431, 8),
    "7.2": ("libamdhip64.so.7.2.53211", 523, 457, 16),
}
runnable = each(("6.4", "7.2"))  # 5.2 and 5.7 need a library of their compiler


def library(version):
    return fetched_file(f"hip/{version}/{builds[version][0]}")


def sections(path):
    """[(name, start address, end address)]."""
    run = subprocess.run(["readelf", "-W", "-S", path], check=True, capture_output=True, text=True)
    lines = re.findall(r"\] (\S+) +\S+ +([0-9a-f]{16}) [0-9a-f]+ ([0-9a-f]+) ", run.stdout)
    return [(name, int(start, 16), int(start, 16) + int(size, 16)) for name, start, size in lines]


@case(each=each(builds))
def placement(version):
    """If a function only forwards to another one, its probe is placed in the other one. The library is read as a file,
    and is not loaded."""
    path = library(version)
    found = placements(path, exports(path))
    behind = sum(one["behind"] for one in found)
    stepped = [one["name"] for one in found if not one["emulated"]]
    equal((len(found), behind, len(stepped)), builds[version][1:],
          f"numbers of functions, of probes in another function, and of single-stepped probes ({stepped})")


name_paths = {"5.2": [0x88, 0x28], "5.7": [0x88, 0x28], "6.4": [0x28, 0x28], "7.2": [0x98, 0x28]}


@case(each=each(builds))
def offsets_of_names(version):
    """The location of the name in a hipFunction_t, as read from the code of each build."""
    equal(json.loads(inspect("name_path", library(version))), name_paths[version], "offsets to the name")


@case
def registered_kernels():
    """In a stripped library compiled by hip-clang, the handle of each kernel is a variable."""
    path = fetched_file("names/rocrand/librocrand.so.1")
    kernels, handles, total = scan(path)
    equal((total["read"], handles), (total["sites"], []), "registration calls that could be read, handle variables (only CUDA 13 has any)")
    check(total["sites"] >= 80 and len(kernels) * 100 >= total["sites"] * 99, f"too few kernels: {total}")
    data = [section for section in sections(path) if section[0] in (".data.rel.ro", ".data")]
    inside = [stub for stub in kernels if any(start <= stub < end for _, start, end in data)]
    equal(len(inside), len(kernels), "handles that are variables")
    check(all(name.startswith("_Z") for name in kernels.values()), f"unexpected names: {list(kernels.values())[:5]}")


made = [("hipMalloc", "&p", 4096), ("hipMemcpy", 4096, 8192, 100, 1), ("hipMemcpyAsync", 4096, 8192, 77, 2, 0),
        ("hipMemset", 4096, 0, 50), ("hipModuleLaunchKernel", 16, 3, 2, 1, 64, 1, 1, 0, 0, 0, 0),
        ("hipDeviceSynchronize",), ("hipStreamSynchronize", 0)]


@case(each=runnable, tool="cudatop")
def calls_that_fail(version):
    """Failing calls are counted exactly, with their arguments and results."""
    path, libc = library(version), fetched_file("libc/ld-linux-x86-64.so.2")
    calls = Calls(path, loader=(libc, "--library-path", f"{libc.parent}:{path.parent}:/usr/lib/x86_64-linux-gnu"))
    tools = {}
    for name in ("cudalaunch", "cudamemcpy", "cudasync", "gpualloc"):
        harness.binary = harness.build / name
        tools[name] = Tool("-p", calls.pid, "-e", "-x")
    for number, (function, *arguments) in enumerate(made):
        results = calls.call(function, 3 + number, *arguments)
        check(set(results) == {100}, f"{function} returned {results}")
    calls.end()
    counted = Counter()
    for name, tool in tools.items():
        for line in tool.finish().events:
            equal(line["result"], "hipErrorNoDevice", f"{line}")
            if name != "cudasync" or line["wait"] != "copy":
                counted[line["function"]] += 1
    equal(counted, {function: 3 + number for number, (function, *_) in enumerate(made)}, "failing calls")
