"""Small real trainings on scikit-learn's digits: healthy ones, and one for each trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import tdbg_lab as tdbg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

torch.set_num_threads(1)


def digits(batch: int, *, image: bool, seed: int = 0) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches for ever, shuffled every epoch."""
    data = load_digits()
    x = torch.tensor(data.images / 16.0, dtype=torch.float32)
    x = x.unsqueeze(1) if image else x.flatten(1)
    y = torch.tensor(data.target)
    order = np.random.default_rng(seed)
    while True:
        for rows in np.array_split(order.permutation(len(y)), len(y) // batch):
            yield x[rows], y[rows]


def train(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    steps: int = 300,
    batch: int = 64,
    image: bool = False,
    save_every: int = 5,
    accumulate: int = 1,
    schedule: Any = None,
    before_step: Callable[[int], None] | None = None,
    criterion: nn.Module | None = None,
    **attach: Any,
) -> Path:
    """Train and give the run directory."""
    criterion = criterion or nn.CrossEntropyLoss()
    attach = {"profiler": False, "strict": True} | attach
    batches = digits(batch, image=image)
    with tdbg.attach(
        model, optimizer=optimizer, loss=criterion, store=path, save_every=save_every, **attach
    ) as handle:
        for step in range(steps):
            if before_step is not None:
                before_step(step)
            optimizer.zero_grad()
            for _ in range(accumulate):
                x, y = next(batches)
                (criterion(model(x), y) / accumulate).backward()
            optimizer.step()
            if schedule is not None:
                schedule.step()
        return handle.run_path


def mlp(width: int = 64, depth: int = 2, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    size = 64
    for _ in range(depth):
        layers += [nn.Linear(size, width), activation()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, 10))


def cnn() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


def regularised() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(64, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(64, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(64, 10),
    )


class SparseMlp(nn.Module):
    """A wide layer of ReLUs with negative biases: about 95 % zeros, yet every unit fires at times."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 256)
        self.relu = nn.ReLU()
        self.last = nn.Linear(256, 10)
        nn.init.normal_(self.first.weight, std=0.5)
        nn.init.constant_(self.first.bias, -2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.relu(self.first(x)))


def _sgd(model: nn.Module, lr: float = 0.1, **more: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=lr, **more)


def _adam(model: nn.Module, lr: float = 1e-3) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=lr)


def healthy_mlp(path: Path) -> Path:
    model = mlp()
    return train(path, model, _sgd(model))


def healthy_slow(path: Path) -> Path:
    model = mlp()
    return train(path, model, _sgd(model, 0.01), steps=400)


def healthy_cnn(path: Path) -> Path:
    model = cnn()
    return train(path, model, _adam(model, 3e-3), image=True)


def healthy_sparse(path: Path) -> Path:
    model = SparseMlp()
    return train(path, model, _adam(model, 3e-3))


def healthy_warm_up(path: Path) -> Path:
    model = mlp()
    optimizer = _sgd(model, 0.2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step / 200) ** 2 + 1e-5))
    return train(path, model, optimizer, steps=400, schedule=schedule)


def healthy_converged(path: Path) -> Path:
    model = mlp(128)
    return train(path, model, _adam(model, 5e-3), steps=900, save_every=10)


def healthy_regularised(path: Path) -> Path:
    model = regularised()
    return train(path, model, _adam(model, 2e-3), steps=400)


def healthy_accumulating(path: Path) -> Path:
    model = mlp()
    return train(path, model, _sgd(model), batch=16, accumulate=4, steps=200)


def healthy_noisy(path: Path) -> Path:
    model = mlp()
    return train(path, model, _sgd(model, 0.05, momentum=0.9), batch=4, steps=500, save_every=1)


def healthy_deep_tanh(path: Path) -> Path:
    model = mlp(64, 5, nn.Tanh)
    return train(path, model, _adam(model), steps=300)


def healthy_cyclic(path: Path) -> Path:
    model = mlp()
    optimizer = _sgd(model, 0.3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=100)
    return train(path, model, optimizer, steps=500, schedule=schedule)


def healthy_eval(path: Path) -> Path:
    """With evaluation passes in between, as most trainings have."""
    model = regularised()
    optimizer = _adam(model, 2e-3)
    held = digits(128, image=False, seed=9)

    def evaluate(step: int) -> None:
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                model(next(held)[0])
            model.train()

    return train(path, model, optimizer, before_step=evaluate)


def dead_relu(path: Path, **attach: Any) -> Path:
    """Biases pushed far down at step 40, as one much too large step does."""
    model = mlp()

    def kill(step: int) -> None:
        if step == 40:
            with torch.no_grad():
                model[2].bias.fill_(-100.0)

    return train(path, model, _sgd(model), before_step=kill, **attach)


def dead_relu_by_rate(path: Path, **attach: Any) -> Path:
    """A learning rate that kills by itself."""
    model = mlp()
    return train(path, model, _sgd(model, 20.0), **attach)


def vanishing(path: Path) -> Path:
    model = mlp(64, 8, nn.Sigmoid)
    return train(path, model, _sgd(model, 0.05))


def exploding(path: Path) -> Path:
    """A layer in the middle that gives NaN from step 60 on."""

    class Root(nn.Module):
        broken = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sqrt(x - 1e6) if self.broken else x

    root = Root()
    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 32), root, nn.Tanh(), nn.Linear(32, 10))

    def breaks(step: int) -> None:
        root.broken = step >= 60

    return train(path, model, _sgd(model), before_step=breaks, steps=90)


def exploding_by_rate(path: Path) -> Path:
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 10))
    return train(path, model, _sgd(model, 1e6), steps=60)


def stuck(path: Path, **attach: Any) -> Path:
    """The optimizer holds the parameters of another model."""
    model, other = mlp(), mlp()
    optimizer = _sgd(other)
    for parameter in other.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return train(path, model, optimizer, steps=250, **attach)


def stuck_unseen(path: Path) -> Path:
    """The same, seen by its loss only."""
    return stuck(path, collections=["losses"], config={"checks": False})


def diverging(path: Path) -> Path:
    model = mlp()
    optimizer = _sgd(model, 0.1)

    def faster(step: int) -> None:
        if step == 200:
            optimizer.param_groups[0]["lr"] = 3.0

    return train(path, model, optimizer, steps=350, before_step=faster)


HEALTHY = {name: one for name, one in globals().items() if name.startswith("healthy_")}
FAULTY = {
    "dead_relu": dead_relu,
    "vanishing_gradient": vanishing,
    "exploding_tensor": exploding,
    "loss_not_decreasing": stuck_unseen,
    "unchanged_tensor": stuck,
}
