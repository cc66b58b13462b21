"""Small real training loops, healthy, or with one fault from a step on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from sklearn.datasets import load_digits
from torch import nn

import tdbg_lab as tdbg

if TYPE_CHECKING:
    from pathlib import Path

torch.set_num_threads(1)

TRIGGER = 12
"""Step at which a fault sets in, where it does not hold from the start."""


def make_model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(32, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def make_trained() -> nn.Sequential:
    """Two batch normalisations that have seen something, and no dropout."""
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU()),
        *(nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10)),
    )
    with torch.no_grad():
        for _ in range(20):
            model(torch.rand(32, 64))
    return model


class Loop:
    """A loop over shuffled digits with an evaluation every tenth step; subclasses do one thing wrong."""

    steps = 30
    save_every = 10

    def __init__(self) -> None:
        data = load_digits()
        self.x = torch.tensor(data.images / 16.0, dtype=torch.float32).flatten(1)
        self.y = torch.tensor(data.target)
        self.model = self.make_model()
        self.optimizer = self.make_optimizer()
        self.schedule: Any = None
        self.loss = nn.CrossEntropyLoss()
        self.random = torch.Generator().manual_seed(0)

    def make_model(self) -> nn.Sequential:
        return make_model()

    def make_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.model.parameters(), lr=0.1)

    def rows(self, step: int) -> torch.Tensor:
        return torch.randint(0, 1500, (32,), generator=self.random)

    def before(self, step: int) -> None:
        """Before a step."""

    def reset(self, step: int) -> None:
        self.optimizer.zero_grad()

    def forward(self, x: torch.Tensor, step: int) -> torch.Tensor:
        return self.model(x)

    def labels(self, rows: torch.Tensor) -> torch.Tensor:
        return self.y[rows]

    def judge(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return self.loss(told, wanted)

    def move(self, step: int) -> None:
        self.optimizer.step()

    def evaluate(self, step: int) -> None:
        self.model.eval()
        with torch.no_grad():
            self.model(self.x[1500:])
        self.model.train()

    def run(self, path: Path, **attach: Any) -> Path:
        settings = {"profiler": False, "strict": True, "save_every": self.save_every} | attach
        with tdbg.attach(
            self.model, optimizer=self.optimizer, loss=self.loss, store=path, **settings
        ) as handle:
            for step in range(self.steps):
                self.before(step)
                rows = self.rows(step)
                self.reset(step)
                told = self.forward(self.x[rows], step)
                self.judge(told, self.labels(rows)).backward()
                self.move(step)
                if step % 10 == 9:
                    self.evaluate(step)
        return handle.run_path


class LoopOfTwo(Loop):
    """Body and head of the model have an optimizer each; only that of the body steps."""

    def make_optimizer(self) -> dict[str, torch.optim.Optimizer]:
        return {
            "body": torch.optim.SGD(self.model[:6].parameters(), lr=0.1),
            "head": torch.optim.SGD(self.model[6].parameters(), lr=0.1),
        }

    def reset(self, step: int) -> None:
        self.model.zero_grad()

    def move(self, step: int) -> None:
        self.optimizer["body"].step()
