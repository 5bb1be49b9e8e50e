# SPDX-License-Identifier: Apache-2.0
"""NCCL with a single rank, through PyTorch."""
import os

import torch
import torch.distributed

os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29411"}
torch.distributed.init_process_group("nccl", rank=0, world_size=1)
x = torch.ones(1 << 20, device="cuda")
for _ in range(10):
    torch.distributed.all_reduce(x)
torch.cuda.synchronize()
torch.distributed.destroy_process_group()
