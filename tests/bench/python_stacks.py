# SPDX-License-Identifier: Apache-2.0
"""The same as stacks.cpp, of frames of Python: python_stacks.py LIBRARY"""
import ctypes
import sys
import time

PATH_BITS, FRAMES = 11, 20
launch = ctypes.CDLL(sys.argv[1]).cuLaunchKernel
launch.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3


def called(path, more):
    if not more:
        launch(16, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    elif path & 1:
        called(path >> 1, more - 1)
    else:
        called(path >> 1, more - 1)


print("ready", flush=True)
for line in sys.stdin:
    began = time.perf_counter_ns()
    for path in range(1 << PATH_BITS):
        called(path, FRAMES - 2)  # and that of the module
    print((time.perf_counter_ns() - began) / (1 << PATH_BITS), flush=True)
