"""Facts about predictions and labels: the kernel says the same as numpy, or nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tdbg_lab.capture import predictions
from tdbg_lab.capture.predictions import facts_of
from tdbg_lab.records import LossKind
from tdbg_lab.stats import cpu, scores
from tdbg_lab.stats.scores import class_scores


@pytest.fixture(scope="module", autouse=True)
def _warm():
    cpu.warm_up()


def batch(seed, n, classes, scale=3.0, shift=0.0):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(n, classes)) * scale + shift).astype(np.float32)
    return x, rng.integers(0, classes, n)


@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 70),
    classes=st.integers(1, 40),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e4]),
    shift=st.sampled_from([0.0, -5.0, 100.0]),
    ignored=st.sampled_from([None, -100, 0]),
    whole=st.booleans(),
)
def test_kernel_and_numpy_agree(seed, n, classes, scale, shift, ignored, whole):
    x, y = batch(seed, n, classes, scale, shift)
    if ignored is not None:
        y[1::3] = ignored
    settled = {"same": True, "ignored": ignored, "whole": whole}
    if (y == ignored).all():
        assert class_scores(x, y, ignored) is None
        return
    facts = facts_of(x, y, LossKind.LOGITS, **settled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictions, "class_scores", lambda *_: None)
        wanted = facts_of(x.astype(np.float64), y, LossKind.LOGITS, **settled)
    assert facts.keys() == wanted.keys()
    size = float(np.abs(x).max()) * max(x.shape)
    for name, value in wanted.items():
        if "zeros" in name and "sum" in name:
            continue  # whether a sum is exactly 0 depends on the order of its additions
        near = 1e-7 + 1e-15 * size if "sum" in name else 1e-12
        assert facts[name] == pytest.approx(value, rel=1e-7, abs=near), name


@pytest.mark.parametrize(
    "spoil",
    [
        lambda x, y: (np.where(x > 1, np.nan, x), y),
        lambda x, y: (np.where(x > 1, np.inf, x), y),
        lambda x, y: (np.where(x > 1, -np.inf, x), y),
        lambda x, y: (np.where(x > 1, np.float32(-np.nan), x), y),
        lambda x, y: (x, y + 1),
        lambda x, y: (x, y - 1),
        lambda x, y: (x, y.astype(np.float32)),
        lambda x, y: (x, y[:, None]),
        lambda x, y: (x.astype(np.float64), y),
        lambda x, y: (np.asfortranarray(x), y),
        lambda x, y: (x[:, :, None], y),
        lambda x, y: (x, np.full_like(y, -100)),
        lambda x, y: (x[:0], y[:0]),
    ],
    ids=[
        *("nan", "inf", "-inf", "-nan", "label too large", "negative label", "labels as floats"),
        *("labels in a column", "float64", "by columns", "three dimensions", "nothing counts", "empty"),
    ],
)
def test_what_is_out_of_the_ordinary_is_left_to_numpy(spoil):
    x, y = batch(3, 50, 6)
    assert class_scores(x, y, -100) is not None
    assert class_scores(*spoil(x, y), -100) is None


def test_sum_of_exponentials_is_exact_over_many_classes():
    x, y = batch(1, 4, 50_000, 10.0)
    found = class_scores(x, y, None)
    wide = x.astype(np.float64)
    largest = wide.max(1)
    wanted = np.log(np.exp(wide - largest[:, None]).sum(1)) + largest
    assert found["row_logsumexp_min"] == pytest.approx(wanted.min(), abs=1e-7)
    assert found["row_logsumexp_max"] == pytest.approx(wanted.max(), abs=1e-7)


def test_nothing_is_told_while_the_kernels_are_not_ready(monkeypatch):
    class Cold:
        def usable(self):
            return False

    monkeypatch.setattr(scores, "engine", Cold)
    assert class_scores(*batch(0, 8, 3), None) is None
