"""Nets that were trained before: what fine-tuning begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["pretrained"]


def pretrained(
    make: Callable[[], nn.Module],
    rows: tuple[torch.Tensor, torch.Tensor],
    steps: int,
    *,
    seed: int,
    batch: int = 32,
    rate: float = 3e-3,
) -> dict[str, torch.Tensor]:
    """Weights of a net that learnt to tell classes.

    Random numbers go on afterwards as if it had not been trained: whoever asks first must not matter.
    """
    random = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model, (x, y) = make(), rows
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for step in range(steps):
        chosen = torch.arange(step * batch, step * batch + batch) % len(x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
        optimizer.step()
    torch.random.set_rng_state(random)
    return model.state_dict()
