# SPDX-License-Identifier: Apache-2.0
"""Kernels that Triton generates for torch.compile."""
import torch


@torch.compile
def wave(x):
    return (torch.sin(x) * torch.cos(x) + x).sum()


x = torch.randn(1000, 1000, device="cuda")
for _ in range(20):
    wave(x).item()
torch.cuda.synchronize()
