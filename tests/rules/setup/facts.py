"""Facts of losses and outputs, as they are written."""

from __future__ import annotations


def facts_of(loss: str, **facts: float) -> dict[str, float]:
    """Facts about what a loss was given at a step."""
    return {f"check/loss/{loss}/{name}": value for name, value in facts.items()}


def own_facts(spread: float, size: float, **facts: float) -> dict[str, float]:
    """The same of a loss of the program's own."""
    told = {"spread": spread, "prediction_size": size, "prediction_max": size, "samples": 64, **facts}
    return facts_of("Own", **told)
