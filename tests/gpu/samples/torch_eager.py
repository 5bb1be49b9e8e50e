# SPDX-License-Identifier: Apache-2.0
"""Twenty PyTorch training steps: cuBLAS, cuDNN, copies, the allocator."""
import torch
import training

step = training.step_of_a_small_network()
for _ in range(20):
    step()
torch.cuda.synchronize()
