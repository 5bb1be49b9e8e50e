# SPDX-License-Identifier: Apache-2.0
"""exports.py LIBRARY NAMES: how the driver's functions begin, and whether cuGetProcAddress hands out the same ones; as
JSON. A process of its own, as it loads the driver; needs no device."""
import collections
import ctypes
import json
import pathlib
import sys

library = ctypes.CDLL(sys.argv[1])
listed = [line.split()[0] for line in pathlib.Path(sys.argv[2]).read_text().splitlines() if line and line[0] != "#"]
places = {}
for name in listed:
    try:
        places[name] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        pass

begins = collections.defaultdict(list)
for name, place in places.items():
    begins[ctypes.string_at(place, 2).hex(" ")].append(name)

names_at = collections.defaultdict(list)
for name, place in places.items():
    names_at[place].append(name)
handed_out, elsewhere = {}, []
if "cuGetProcAddress" in places and "cuInit" in places:
    library.cuInit(0)  # whatever it answers
    for base in ("cuLaunchKernel", "cuLaunchKernelEx", "cuMemAlloc", "cuMemFree", "cuMemcpyHtoDAsync", "cuMemcpy",
                 "cuCtxSynchronize", "cuStreamSynchronize", "cuGraphLaunch", "cuMemAllocAsync", "cuStreamBeginCapture"):
        found = ctypes.c_void_p()
        code = library.cuGetProcAddress(base.encode(), ctypes.byref(found), 12000, ctypes.c_uint64(0))
        if code or not found.value:
            handed_out[base] = None
        elif found.value in names_at:
            handed_out[base] = sorted(names_at[found.value])
        else:
            elsewhere.append(base)

print(json.dumps({
    "listed": len(listed), "exported": len(places), "stand_in": hasattr(library, "standin_counts"),
    "first_bytes": {bytes_: {"functions": len(names), "such_as": sorted(names)[:3]}
                    for bytes_, names in sorted(begins.items(), key=lambda item: -len(item[1]))[:12]},
    "handed_out": handed_out, "handed_out_but_not_exported": elsewhere}))
