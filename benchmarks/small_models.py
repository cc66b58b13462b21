"""The models that capture is measured on, small enough for a CPU, and a plain loop over one batch."""

from __future__ import annotations

import torch
from torch import nn

LARGE = "gpt2"
"""For a GPU: as large as the smallest GPT-2, trained in bfloat16 where PyTorch chooses it."""


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(n, t, c))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, 8)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary=1024, width=256, depth=6, length=128):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        return self.head(
            self.norm(self.blocks(self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))))
        )


def make(model, device="cpu"):
    """Model, optimizer and one batch, always the same."""
    torch.manual_seed(0)
    if model == "mlp":
        net = nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
        )
        x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
    elif model == "cnn":
        net = nn.Sequential(
            *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)),
        )
        x, y = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
    elif model == "gpt":
        net = Gpt()
        x = torch.randint(0, 1024, (8, 128))
        y = torch.randint(0, 1024, (8, 128))
    else:
        net = Gpt(vocabulary=50257, width=768, depth=12, length=1024)
        x = torch.randint(0, 50257, (8, 1024))
        y = torch.randint(0, 50257, (8, 1024))
    net.to(device)
    return net, torch.optim.Adam(net.parameters(), lr=1e-4), x.to(device), y.to(device)


class Training:
    """A model that trains on one batch, step by step."""

    def __init__(self, model, device="cpu"):
        self.net, self.optimizer, self.x, self.y = make(model, device)
        self._mixed = torch.autocast(device, torch.bfloat16, enabled=model == LARGE)
        self.criterion = nn.CrossEntropyLoss()
        self.after = lambda: None
        self.close = lambda: None

    def steps(self, n):
        for _ in range(n):
            self.optimizer.zero_grad()
            with self._mixed:
                out = self.net(self.x)
                loss = self.criterion(out.flatten(0, -2), self.y.flatten())
            loss.backward()
            self.optimizer.step()
            self.after()
