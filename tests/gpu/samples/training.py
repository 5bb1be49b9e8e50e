# SPDX-License-Identifier: Apache-2.0
"""The training step of torch_eager.py and timed.py."""
import torch


def step_of_a_small_network():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                                torch.nn.Linear(16 * 30 * 30, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        images, labels = torch.randn(64, 3, 32, 32).cuda(), torch.randint(10, (64,)).cuda()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
