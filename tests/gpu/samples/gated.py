# SPDX-License-Identifier: Apache-2.0
"""gated.py DRIVER PROGRAM [ARGUMENT...]: opens the driver, calls nothing until a line can be read, then runs the program."""
import ctypes
import runpy
import sys

ctypes.CDLL(sys.argv[1])  # whoever opens libcuda.so.1 from now on gets this one
sys.stdin.readline()
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
