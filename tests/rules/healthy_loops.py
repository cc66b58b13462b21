"""What the healthy trainings share: data, nets, and a loop of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from sklearn.datasets import load_digits
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

    Attach = Callable[..., Any]

torch.set_num_threads(1)

STEPS = 220


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    data = load_digits()
    return torch.tensor(data.images / 8.0 - 1.0, dtype=torch.float32).flatten(1), torch.tensor(data.target)


def mlp(
    width_in: int = 64, width_out: int = 10, width: int = 32, act: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width_in, width), act(), nn.Linear(width, width), act(), nn.Linear(width, width_out)
    )


def adam(model: nn.Module, rate: float = 3e-3) -> torch.optim.Optimizer:
    return torch.optim.Adam([one for one in model.parameters() if one.requires_grad], rate)


def fit(
    attach: Attach,
    model: nn.Module,
    loss_of: Callable[[int], torch.Tensor],
    optimizer: torch.optim.Optimizer | None = None,
    *,
    loss: nn.Module | None = None,
    schedule: Callable[[int], float] | None = None,
    steps: int = STEPS,
    after: Callable[[int], object] = lambda step: None,
) -> None:
    """One step after the other; a loss that is no module is logged, as users of functions do."""
    optimizer = optimizer or adam(model)
    scheduler = None if schedule is None else torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    with attach(model, optimizer=optimizer, loss=loss) as handle:
        for step in range(steps):
            optimizer.zero_grad()
            value = loss_of(step)
            value.backward()
            if loss is None:
                handle.log(loss=value.item())
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            after(step)


def rows(x: torch.Tensor, size: int = 48) -> torch.Tensor:
    return torch.randint(0, len(x), (size,))
