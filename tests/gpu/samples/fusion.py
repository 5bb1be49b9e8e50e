# SPDX-License-Identifier: Apache-2.0
"""fusion.py FOLDER eager|graph: repeats the same work, launched kernel by kernel or as one graph. Creates the file "up"
when it starts, and stops at the file "end" (tests/gpu/findings.py)."""
import pathlib
import sys
import time

import torch


def work(x):
    for _ in range(20):
        x = torch.relu(x) + 1
    return x


folder, how = pathlib.Path(sys.argv[1]), sys.argv[2]
x = torch.randn(256, 256, device="cuda")
step = lambda: work(x)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    step()  # PyTorch's manual requires a run before the capture
torch.cuda.current_stream().wait_stream(side)
if how == "graph":
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    step = graph.replay
(folder / "up").touch()
while not (folder / "end").exists():
    step()
    torch.sigmoid(x)  # outside the graph, once per step
    time.sleep(0.005)
torch.cuda.synchronize()
