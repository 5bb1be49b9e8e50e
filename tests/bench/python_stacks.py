# SPDX-License-Identifier: Apache-2.0
"""Counterpart of "loads stacks" with stacks of Python frames: python_stacks.py LIBRARY"""
import ctypes
import sys
import time

PATH_BITS, FRAMES = 11, 20
launch = ctypes.CDLL(sys.argv[1]).cuLaunchKernel
launch.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3


def call_frames(path, depth):
    if not depth:
        launch(16, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    elif path & 1:
        call_frames(path >> 1, depth - 1)
    else:
        call_frames(path >> 1, depth - 1)  # a different line, hence a different stack


print("ready", flush=True)
for line in sys.stdin:
    began = time.perf_counter_ns()
    for path in range(1 << PATH_BITS):
        call_frames(path, FRAMES - 2)  # FRAMES - 1 frames, and the module's
    print((time.perf_counter_ns() - began) / (1 << PATH_BITS), flush=True)
