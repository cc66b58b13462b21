"""Weights of fused attention: those that the same attention has when it writes them down."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tdbg_lab.capture.pytorch import attention
from tdbg_lab.capture.pytorch.attention import attention_weights

N, HEADS, LONG, WIDTH = 3, 2, 7, 4
BOOL = torch.rand(N, 1, LONG, LONG, generator=torch.Generator().manual_seed(1)) < 0.7
BOOL[..., 0] = True
ADDED = torch.randn(LONG, LONG, generator=torch.Generator().manual_seed(2))


def heads(seed, count=HEADS, long=LONG):
    return torch.randn(N, count, long, WIDTH, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"attn_mask": BOOL},
        {"attn_mask": ADDED},
        {"is_causal": True},
        {"scale": 3.0},
    ],
    ids=["plain", "mask", "added", "causal", "scale"],
)
def test_weights_times_values_are_what_the_fused_function_gives(how):
    query, key, value = (heads(seed) for seed in (1, 2, 3))
    weights = attention_weights(F.scaled_dot_product_attention, (query, key, value), how)
    assert weights.shape == (N, HEADS, LONG, LONG)
    assert torch.allclose(
        weights @ value, F.scaled_dot_product_attention(query, key, value, **how), atol=1e-5
    )


def test_heads_that_share_keys_and_attention_without_heads_are_known():
    query, key, value = heads(1, 4), heads(2), heads(3)
    weights = attention_weights(F.scaled_dot_product_attention, (query, key, value), {"enable_gqa": True})
    wanted = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    assert torch.allclose(weights @ value.repeat_interleave(2, 1), wanted, atol=1e-5)
    query, key, value = query[:, 0], key[:, 0], value[:, 0]
    weights = attention_weights(F.scaled_dot_product_attention, (query, key, value), {})
    assert torch.allclose(weights[:, 0] @ value, F.scaled_dot_product_attention(query, key, value), atol=1e-5)


def test_a_query_that_sees_nothing_has_no_weights_and_no_nan():
    query, key, value = (heads(seed) for seed in (1, 2, 3))
    mask = torch.ones(LONG, LONG, dtype=torch.bool)
    mask[2] = False
    weights = attention_weights(F.scaled_dot_product_attention, (query, key, value, mask), {})
    assert torch.isfinite(weights).all()
    assert (weights[:, :, 2] == 0).all()


def test_of_long_sequences_the_last_queries_of_one_sample_are_computed(monkeypatch):
    query, key, value = (heads(seed) for seed in (1, 2, 3))
    whole = attention_weights(F.scaled_dot_product_attention, (query, key, value), {"is_causal": True})
    monkeypatch.setattr(attention, "_MAX_ELEMENTS", 3 * HEADS * LONG)
    some = attention_weights(F.scaled_dot_product_attention, (query, key, value), {"is_causal": True})
    assert some.shape == (1, HEADS, 3, LONG)
    assert torch.equal(some, whole[:1, :, -3:])


PADDED = torch.zeros(N, LONG, dtype=torch.bool)
PADDED[1, 4:] = True
LATER = torch.ones(LONG, LONG, dtype=torch.bool).triu(1)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"key_padding_mask": PADDED},
        {"attn_mask": LATER},
        {"attn_mask": LATER, "is_causal": True},
        {"attn_mask": LATER.expand(N * HEADS, LONG, LONG), "key_padding_mask": PADDED},
    ],
    ids=["plain", "padding", "mask", "causal", "both"],
)
def test_a_layer_of_pytorch_has_the_weights_that_it_tells_when_asked(attach, how, bias):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.look = nn.MultiheadAttention(2 * WIDTH, HEADS, bias=bias, batch_first=True)

        def forward(self, x):
            return self.look(x, x, x, need_weights=False, **how)[0]

    torch.manual_seed(0)
    model = Net()
    x = torch.randn(N, LONG, 2 * WIDTH)
    with torch.no_grad():
        wanted = model.look(x, x, x, average_attn_weights=False, **how | {"is_causal": False})[1]
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    handle = attach(model, optimizer=optimizer, save_every=1, collections={"activations": {"values": "both"}})
    model(x).sum().backward()
    optimizer.step()
    handle.detach()
    (key,) = handle.run.tensors(regex="attention_weights")
    assert key.name == "activation/look.attention_weights_0"
    assert key.shape == (N, HEADS, LONG, LONG)
    assert np.allclose(handle.run.tensor(key.name).value(0), wanted, atol=1e-5)


def test_weights_that_are_told_are_not_computed_again(attach):
    torch.manual_seed(0)
    model = nn.MultiheadAttention(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    handle = attach(model, optimizer=optimizer, save_every=1)
    x = torch.randn(5, 2, 8)
    model(x, x, x)[0].sum().backward()
    optimizer.step()
    handle.detach()
    assert not handle.run.tensors(regex="attention_weights")
    assert not handle.run.problems


@pytest.mark.parametrize(
    ("collections", "steps"),
    [
        (None, [*range(16), 19, 23, 27]),
        ({"seen": {"include": ["attention_weights"], "kinds": ["activation"]}}, list(range(30))),
    ],
    ids=["of all outputs", "asked for"],
)
def test_weights_are_not_computed_again_at_every_step_unless_they_are_asked_for(attach, collections, steps):
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    handle = attach(model, optimizer=optimizer, save_every=1, collections=collections)
    for _ in range(30):
        model(torch.ones(2, 5, 8)).sum().backward()
        optimizer.step()
    handle.detach()
    (key,) = handle.run.tensors(regex="attention_weights")
    assert list(handle.run.tensor(key.name).steps()) == steps
