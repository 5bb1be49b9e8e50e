# SPDX-License-Identifier: Apache-2.0
"""A PyTorch CUDA graph, captured once and replayed."""
import torch

x = torch.randn(512, 512, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    y = torch.relu(x @ x) + 1  # PyTorch's manual requires a run before the capture
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = torch.relu(x @ x) + 1
for _ in range(100):
    graph.replay()
torch.cuda.synchronize()
