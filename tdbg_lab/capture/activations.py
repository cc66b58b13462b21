"""Activation functions besides ReLU, tanh and sigmoid whose units may die or saturate, too."""

from __future__ import annotations

__all__ = ["ACTIVATION_FUNCTION", "RECURRENT", "has_units", "named_after_one"]

ACTIVATION_FUNCTION = "activation_function"
"""Collection of their outputs, unit by unit."""
RECURRENT = "recurrent"
"""Collection of outputs of recurrent layers, whose gates may shut."""

_NAMES = frozenset(
    {
        *("gelu", "silu", "mish", "leakyrelu", "elu", "selu", "celu", "softplus"),
        *("hardswish", "hardsilu", "hardtanh"),
    }
)


def has_units(function: str) -> bool:
    """Whether a function is one of them, as any framework writes its name: ``leaky_relu``, ``LeakyReLU``."""
    return _plain(function) in _NAMES


def named_after_one(kind: str) -> bool:
    """Whether the name of a class holds one of them: libraries have their own, ``NewGELUActivation``.

    So does that of ReLU: ask for it first.
    """
    return any(name in _plain(kind) for name in _NAMES)


def _plain(name: str) -> str:
    return name.lower().replace("_", "")
