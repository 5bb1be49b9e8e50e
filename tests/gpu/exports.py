# SPDX-License-Identifier: Apache-2.0
"""exports.py LIBRARY NAMES: how the driver's functions begin, and whether cuGetProcAddress hands out the same ones; as
JSON. A process of its own, as it loads the driver; needs no device."""
import collections
import ctypes
import json
import pathlib
import sys

asked_for = ("cuLaunchKernel", "cuLaunchKernelEx", "cuMemAlloc", "cuMemFree", "cuMemcpyHtoDAsync", "cuMemcpy",
             "cuCtxSynchronize", "cuStreamSynchronize", "cuGraphLaunch", "cuMemAllocAsync", "cuStreamBeginCapture")


def exported(library, listed):
    """Where each function is that the library has."""
    return {name: ctypes.cast(function, ctypes.c_void_p).value for name in listed if (function := getattr(library, name, None))}


def handed_out(library, places):
    """The exports that cuGetProcAddress hands out by a name, None where it hands out nothing; and by which names something
    else."""
    names_at, handed, elsewhere = collections.defaultdict(list), {}, []
    for name, place in places.items():
        names_at[place].append(name)
    library.cuInit(0)  # whatever it answers
    for base in asked_for:
        found = ctypes.c_void_p()
        code = library.cuGetProcAddress(base.encode(), ctypes.byref(found), 12000, ctypes.c_uint64(0))
        if code or not found.value:
            handed[base] = None
        elif found.value in names_at:
            handed[base] = sorted(names_at[found.value])
        else:
            elsewhere.append(base)
    return handed, elsewhere


def main(driver, names):
    library = ctypes.CDLL(driver)
    listed = [line.split()[0] for line in pathlib.Path(names).read_text().splitlines() if line and line[0] != "#"]
    places, begins = exported(library, listed), collections.defaultdict(list)
    for name, place in places.items():
        begins[ctypes.string_at(place, 2).hex(" ")].append(name)
    handed, elsewhere = handed_out(library, places) if {"cuGetProcAddress", "cuInit"} <= places.keys() else ({}, [])
    print(json.dumps({
        "listed": len(listed), "exported": len(places), "stand_in": hasattr(library, "standin_counts"),
        "first_bytes": {bytes_: {"functions": len(names), "such_as": sorted(names)[:3]}
                        for bytes_, names in sorted(begins.items(), key=lambda item: -len(item[1]))[:12]},
        "handed_out": handed, "handed_out_but_not_exported": elsewhere}))


if __name__ == "__main__":
    main(*sys.argv[1:])
