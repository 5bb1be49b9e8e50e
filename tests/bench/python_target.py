# SPDX-License-Identifier: Apache-2.0
"""The target (target.cpp), called by so many frames of Python: python_target.py LIBTARGET FRAMES LIBRARY [FUNCTION]"""
import ctypes
import sys

target = ctypes.CDLL(sys.argv[1])
arguments = [b"target", *(argument.encode() for argument in sys.argv[3:])]


def frame(more):
    if more:
        return frame(more - 1)
    return target.target_main(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))


frame(int(sys.argv[2]) - 2)  # this one, and that of the module
