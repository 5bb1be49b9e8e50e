# SPDX-License-Identifier: Apache-2.0
"""Typical training loop on the CPU, with allocations_launch.c preloaded: train.py DRIVER TRUTH. It waits for a line on
standard input, trains, and waits for another line."""
import ctypes
import sys

helper = ctypes.CDLL(None)
driver = ctypes.CDLL(sys.argv[1])  # loaded first, because PyTorch uses up the space for thread-local variables
import torch  # noqa: E402
from torch import nn  # noqa: E402

torch.manual_seed(0)
torch.set_num_threads(1)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        weights = torch.softmax(self.q(x) @ self.k(x).transpose(-1, -2) / 8, -1)
        return self.norm(x + self.out(weights @ self.v(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.blocks = nn.ModuleList(Attention(64) for _ in range(3))
        self.lstm = nn.LSTM(64, 32, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.seen(x).flatten(2)
        for block in self.blocks:
            x = block(x)
        x, _ = self.lstm(x)
        return self.head(nn.functional.gelu(x[:, -1]))


@torch.jit.script
def scripted(x):
    for _ in range(3):
        x = torch.sigmoid(x) * x + torch.tanh(x)
    return x


net = Net()
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
samples = torch.utils.data.TensorDataset(torch.randn(128, 1, 16, 16), torch.randint(0, 10, (128,)))
loader = torch.utils.data.DataLoader(samples, batch_size=16, shuffle=True)
print("up", flush=True)
sys.stdin.readline()
helper.begin(sys.argv[1].encode())
for images, labels in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images), labels) + scripted(images).mean() * 0
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
helper.end(sys.argv[2].encode())
print("done", flush=True)
sys.stdin.readline()
