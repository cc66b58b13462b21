"""Weights that are stored packed, as in 4 bits: what they stand for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from tdbg_lab.stats.layouts import PLAIN, is_wrapper

__all__ = ["form_of", "is_packed", "unpacked"]


def is_packed(value: torch.Tensor) -> bool:
    """Whether a tensor is of a class, such as torchao's or bitsandbytes', that stands for other numbers."""
    if type(value) in PLAIN:
        return False
    says = type(value).dequantize is not torch.Tensor.dequantize
    return _state(value) is not None or (says and is_wrapper(value))


def form_of(value: torch.Tensor) -> Any:
    """What has the ``dtype`` and ``shape`` of that: bitsandbytes shows those of its bytes."""
    state = _state(value)
    return value if state is None else state


def unpacked(value: torch.Tensor) -> torch.Tensor:
    """What a packed tensor stands for, several times its size; itself where its library cannot say."""
    state = _state(value)
    whole: torch.Tensor
    try:
        if state is None:
            whole = value.dequantize()
        else:
            whole = import_module("bitsandbytes.functional").dequantize_4bit(value.data, state)
    except Exception:  # noqa: BLE001 - whatever a library raises
        return value
    return whole


def _state(value: torch.Tensor) -> Any:
    """How bitsandbytes has packed a weight in 4 bits; None for others."""
    return getattr(value, "quant_state", None)
