# SPDX-License-Identifier: Apache-2.0
"""exports.py LIBRARY NAMES: prints the first bytes of the driver's functions, and which exported functions
cuGetProcAddress returns, as JSON. Runs in a separate process, since it loads the driver. Needs no device."""
import collections
import ctypes
import json
import pathlib
import sys

base_names = ("cuLaunchKernel", "cuLaunchKernelEx", "cuMemAlloc", "cuMemFree", "cuMemcpyHtoDAsync", "cuMemcpy",
             "cuCtxSynchronize", "cuStreamSynchronize", "cuGraphLaunch", "cuMemAllocAsync", "cuStreamBeginCapture")


def exported(library, listed):
    """Addresses of the functions that the library exports."""
    return {name: ctypes.cast(function, ctypes.c_void_p).value for name in listed if (function := getattr(library, name, None))}


def handed_out(library, addresses):
    """Calls cuGetProcAddress for each base name. Returns {base name: exports at the returned address, None if it
    returned none}, and the base names whose address is not exported."""
    names_at, handed, elsewhere = collections.defaultdict(list), {}, []
    for name, address in addresses.items():
        names_at[address].append(name)
    library.cuInit(0)  # may fail without a device
    for base in base_names:
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
    lines = [line.split() for line in pathlib.Path(names).read_text().splitlines()]
    listed = sorted(name for version, *functions in lines if version != "#" for name in functions)
    addresses, begins = exported(library, listed), collections.defaultdict(list)
    for name, address in addresses.items():
        begins[ctypes.string_at(address, 2).hex(" ")].append(name)
    handed, elsewhere = handed_out(library, addresses) if {"cuGetProcAddress", "cuInit"} <= addresses.keys() else ({}, [])
    print(json.dumps({
        "listed": len(listed), "exported": len(addresses), "stand_in": hasattr(library, "standin_counts"),
        "first_bytes": {bytes_: {"functions": len(names), "such_as": sorted(names)[:3]}
                        for bytes_, names in sorted(begins.items(), key=lambda item: -len(item[1]))[:12]},
        "handed_out": handed, "handed_out_but_not_exported": elsewhere}))


if __name__ == "__main__":
    main(*sys.argv[1:])
