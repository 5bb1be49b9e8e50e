# SPDX-License-Identifier: Apache-2.0
"""CuPy arrays: kernels compiled by NVRTC, copies in both directions, a memory pool."""
import cupy

for n in (1000, 100_000):
    a = cupy.arange(n, dtype=cupy.float32)
    b = cupy.sqrt(a) + a[::-1]
    b.get()
cupy.cuda.Device().synchronize()
