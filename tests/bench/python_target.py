# SPDX-License-Identifier: Apache-2.0
"""Runs target.cpp below FRAMES Python frames: python_target.py LIBTARGET FRAMES LIBRARY [FUNCTION]"""
import ctypes
import sys

target = ctypes.CDLL(sys.argv[1])
arguments = [b"target", *(argument.encode() for argument in sys.argv[3:])]


def frame(depth):
    if depth:
        return frame(depth - 1)
    return target.target_main(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))


frame(int(sys.argv[2]) - 2)  # FRAMES - 1 frames, and the module's
