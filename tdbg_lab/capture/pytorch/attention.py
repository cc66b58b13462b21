"""The weights of fused attention, which it never writes down: computed again, for as much as is cheap."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812 - everybody calls it so

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = ["FUSED", "attention_weights"]

_MAX_ELEMENTS = 1 << 14
"""Weights of one call that are computed: those of the first samples, or of the last queries of one."""


def attention_weights(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor | None:
    """Weights of some queries, as a call of one of `FUSED` has them before dropout.

    Returns
    -------
    Tensor or None
        float32 of shape ``(samples, heads, queries, places)``; rows that see no place at all are zero. None
        when the call writes them down itself, or has no form that is known.
    """
    with torch.no_grad():
        return FUSED[function](*args, **kwargs)


def _of_scaled(*args: Any, **kwargs: Any) -> torch.Tensor | None:
    """``F.scaled_dot_product_attention``: (N, heads, L, E) and (N, heads, S, E), heads being optional."""
    given = dict(zip(_SCALED, args, strict=False)) | kwargs
    query, key, mask = given["query"], given["key"], given.get("attn_mask")
    if query.ndim == 3:
        query, key = query[:, None], key[:, None]
        mask = mask[:, None] if mask is not None and mask.ndim == 3 else mask
    if query.ndim != 4 or not query.numel() or not key.numel():
        return None
    samples = _samples(query.shape[1], query.shape[2], key.shape[2])
    if given.get("enable_gqa"):
        key = key[:samples].repeat_interleave(query.shape[1] // key.shape[1], 1)
    causal, scale = bool(given.get("is_causal")), given.get("scale")
    return _softmax(query, key, samples, [mask], shows=True, causal=causal, scale=scale)


def _of_heads(*args: Any, **kwargs: Any) -> torch.Tensor | None:
    """What ``nn.MultiheadAttention`` calls: (L, N, E) and (S, N, E), projected within the call."""
    bound = _SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    query, key, heads = given["query"], given["key"], given["num_heads"]
    together = given["in_proj_weight"]
    if given["need_weights"] or together is None or query.ndim != 3 or given["static_k"] is not None:
        return None
    if given["bias_k"] is not None or given["add_zero_attn"] or not query.numel() or not key.numel():
        return None
    samples = _samples(heads, len(query), len(key))
    bias = given["in_proj_bias"]
    biases = (None, None, None) if bias is None else bias.chunk(3)
    query, key = (
        F.linear(one, weight, part).reshape(*one.shape[:2], heads, -1).permute(1, 2, 0, 3)
        for one, weight, part in zip(
            (query[:, :samples], key[:, :samples]), together.chunk(3), biases, strict=False
        )
    )
    mask, padding = given["attn_mask"], given["key_padding_mask"]
    if mask is not None and mask.ndim == 3:
        mask = mask.reshape(-1, heads, *mask.shape[1:])
    padding = None if padding is None else padding[:, None, None]
    causal = given["is_causal"] and mask is None
    return _softmax(query, key, samples, [mask, padding], shows=False, causal=causal, scale=None)


def _samples(heads: int, queries: int, places: int) -> int:
    """First samples that are looked at."""
    return max(1, _MAX_ELEMENTS // (heads * queries * places))


def _softmax(
    query: torch.Tensor,
    key: torch.Tensor,
    samples: int,
    masks: list[torch.Tensor | None],
    *,
    shows: bool,
    causal: bool,
    scale: float | None,
) -> torch.Tensor:
    """Weights of the last queries of the first samples.

    A true value of a mask shows a place or hides it, a number is added.
    """
    n, heads, queries, width = query.shape
    samples, places = min(samples, n), key.shape[2]
    first = max(0, queries - max(1, _MAX_ELEMENTS // (heads * places)))
    scores = torch.baddbmm(
        _to_come(queries - first, places, first, query.device) if causal else query.new_zeros(()).float(),
        query[:samples, :, first:].flatten(0, 1).float(),
        key[:samples].flatten(0, 1).transpose(1, 2).float(),
        alpha=width**-0.5 if scale is None else scale,
    ).view(samples, heads, queries - first, places)
    given = [mask for mask in masks if mask is not None]
    for mask in given:
        part = mask[:samples] if mask.ndim == 4 else mask
        part = part.expand(samples, heads, queries, places)[:, :, first:]
        if part.dtype == torch.bool:
            scores = scores.masked_fill(~part if shows else part, -torch.inf)
        else:
            scores = scores + part
    weights = torch.softmax(scores.float(), -1)
    return weights.nan_to_num(0.0) if given else weights  # only a mask leaves a query without any place


def _to_come(queries: int, places: int, first: int, device: torch.device) -> torch.Tensor:
    """What is added to causal scores of the queries from `first` on: nothing, or -inf for places to come."""
    if device.type == "cpu":
        return torch.from_numpy(_to_come_here(queries, places, first))
    return torch.full((queries, places), -torch.inf, device=device).triu_(first + 1)


@lru_cache(maxsize=8)
def _to_come_here(queries: int, places: int, first: int) -> NDArray[np.float32]:
    return np.triu(np.full((queries, places), -np.inf, np.float32), first + 1)


FUSED: dict[Any, Callable[..., torch.Tensor | None]] = {
    F.scaled_dot_product_attention: _of_scaled,
    F.multi_head_attention_forward: _of_heads,
}
"""Functions that attend without writing down to what, each with what computes the weights of a call."""

_SCALED = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
"""Its arguments by place; it is built in, and has no signature."""
_SIGNATURE = inspect.signature(F.multi_head_attention_forward)
