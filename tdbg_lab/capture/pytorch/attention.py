"""The weights of fused attention, which it never writes down: computed again, for as much as is cheap."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional as F  # noqa: N812 - everybody calls it so

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    query, key, attn_mask = given["query"], given["key"], given.get("attn_mask")
    if query.ndim == 3:
        query, key = query[:, None], key[:, None]
        attn_mask = attn_mask[:, None] if attn_mask is not None and attn_mask.ndim == 3 else attn_mask
    if query.ndim != 4 or not query.numel() or not key.numel():
        return None
    if given.get("enable_gqa"):
        key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = ~attn_mask  # here a true one shows
    causal, scale = bool(given.get("is_causal")), given.get("scale")
    return _softmax(query, key, _added(attn_mask), causal=causal, scale=scale)


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
    bias = given["in_proj_bias"]
    biases = (None, None, None) if bias is None else bias.chunk(3)
    query, key = (
        F.linear(one, weight, part).reshape(*one.shape[:2], heads, -1).permute(1, 2, 0, 3)
        for one, weight, part in zip((query, key), together.chunk(3), biases, strict=False)
    )
    added = _added(given["attn_mask"])
    if added is not None and added.ndim == 3:
        added = added.reshape(-1, heads, *added.shape[1:])
    padding = _added(given["key_padding_mask"])
    if padding is not None:
        padding = padding[:, None, None]
        added = padding if added is None else added + padding
    causal = given["is_causal"] and given["attn_mask"] is None
    return _softmax(query, key, added, causal=causal, scale=None)


def _added(mask: torch.Tensor | None) -> torch.Tensor | None:
    """What a mask of ``nn.MultiheadAttention`` adds to scores; a true one hides."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, device=mask.device).masked_fill(mask, -torch.inf)


def _softmax(
    query: torch.Tensor, key: torch.Tensor, added: torch.Tensor | None, *, causal: bool, scale: float | None
) -> torch.Tensor:
    heads, queries, places = *query.shape[1:3], key.shape[2]
    samples = max(1, _MAX_ELEMENTS // (heads * queries * places))
    first = max(0, queries - max(1, _MAX_ELEMENTS // (heads * places)))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = scale * query[:samples, :, first:].float() @ key[:samples].float().transpose(2, 3)
    if causal:
        seen = torch.ones(queries, places, dtype=torch.bool, device=scores.device).tril()[first:]
        scores = scores.masked_fill(~seen, -torch.inf)
    if added is not None:
        shape = (len(query), heads, queries, places)
        scores = scores + added.expand(shape)[:samples, :, first:]
    return torch.softmax(scores.float(), -1).nan_to_num(0.0)


FUSED: dict[Any, Callable[..., torch.Tensor | None]] = {
    F.scaled_dot_product_attention: _of_scaled,
    F.multi_head_attention_forward: _of_heads,
}
"""Functions that attend without writing down to what, each with what computes the weights of a call."""

_SCALED = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
"""Its arguments by place; it is built in, and has no signature."""
_SIGNATURE = inspect.signature(F.multi_head_attention_forward)
