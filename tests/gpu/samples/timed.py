# SPDX-License-Identifier: Apache-2.0
"""timed.py FOLDER STEPS: training steps, synchronized by the files up, go, done and end in FOLDER
(tests/gpu/costs.py)."""
import pathlib
import sys
import time

import torch
import training


def wait(name):
    while not (folder / name).exists():
        time.sleep(0.001)


folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
step = training.step_of_a_small_network()
for _ in range(10):
    step()
torch.cuda.synchronize()
(folder / "up").touch()
wait("go")
for _ in range(steps):
    step()
torch.cuda.synchronize()
(folder / "done").touch()
wait("end")
