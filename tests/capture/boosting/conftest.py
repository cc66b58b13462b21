"""Tiny data for both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="session")
def table() -> tuple[Any, Any]:
    """300 rows of 6 features; the label depends on the first three and on noise."""
    random = np.random.default_rng(0)
    features = random.normal(size=(300, 6))
    margin = 2 * features[:, 0] - features[:, 1] + features[:, 2] ** 2 + random.normal(size=300)
    return features, (margin > 0).astype(int)


@pytest.fixture
def quiet() -> dict[str, Any]:
    """Arguments that keep companions away."""
    return {"profiler": False, "strict": True}
