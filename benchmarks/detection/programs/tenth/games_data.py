"""Fields that are watered, of the tenth set: states are moisture, sun and the hour (N x 3)."""

from __future__ import annotations

import torch

__all__ = ["KEPT", "LONG", "WAYS", "began", "passed", "seen", "worth"]

LONG, WAYS = 24, 3
"""Hours of a day, and what can be done: no water, some, or much."""
KEPT = 0.9
"""What the next hour counts."""


def began(count: int, source: torch.Generator) -> torch.Tensor:
    """Fields at dawn, dry or wet, on a dull or a fine day."""
    start = torch.rand(count, 3, generator=source)
    return torch.stack([1.5 * start[:, 0], start[:, 1], torch.zeros(count)], 1)


def seen(state: torch.Tensor) -> torch.Tensor:
    """Columns of about one: moisture, sun, and where the hour is on its circle."""
    turn = state[:, 2] * 2 * torch.pi / LONG
    return torch.stack([2 * state[:, 0] - 1.5, 2 * state[:, 1] - 1, turn.sin(), turn.cos()], 1)


def passed(
    state: torch.Tensor, did: torch.Tensor, source: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """An hour later, and what it was worth: near to moist by day, to dry by night, and water costs."""
    wet, sun, hour = state.T
    day = (hour * 2 * torch.pi / LONG).sin().clamp(min=0)
    wet = wet * (0.95 - 0.25 * sun * day) + 0.2 * did + 0.02 * torch.randn(len(wet), generator=source)
    rain = (torch.rand(len(wet), generator=source) < 0.1 * (1 - sun)).float()
    wet = (wet + 0.3 * rain).clamp(0, 1.6)
    gain = 0.5 - (wet - 0.4 - 0.6 * day).abs() - 0.05 * did
    return torch.stack([wet, sun, hour + 1], 1), gain


def worth(model: torch.nn.Module) -> float:
    """What an hour is worth on average, when what a model thinks best is always done."""
    source = torch.Generator().manual_seed(10)
    state, total = began(300, source), 0.0
    with torch.no_grad():
        for _ in range(LONG):
            state, gain = passed(state, model(seen(state))[:, :WAYS].argmax(1).float(), source)
            total += float(gain.mean()) / LONG
    return total
