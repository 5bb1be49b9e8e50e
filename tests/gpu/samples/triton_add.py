# SPDX-License-Identifier: Apache-2.0
"""A kernel in Triton."""
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


x = torch.ones(10_000, device="cuda")
out = torch.empty_like(x)
for _ in range(50):
    add[(triton.cdiv(10_000, 1024),)](x, x, out, 10_000, BLOCK=1024)
torch.cuda.synchronize()
