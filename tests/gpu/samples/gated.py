# SPDX-License-Identifier: Apache-2.0
"""gated.py DRIVER PROGRAM [ARGUMENT...]: opens the driver's library, waits for a line of input without calling the
driver, and then runs the program."""
import ctypes
import runpy
import sys

ctypes.CDLL(sys.argv[1])  # later dlopen calls for libcuda.so.1 return this library
sys.stdin.readline()
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
