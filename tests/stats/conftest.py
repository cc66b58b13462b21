"""When two kernels agree: counts bit for bit, moments closely."""

import dataclasses

import numpy as np
import pytest

COUNTS = ("count", "nan_count", "pos_inf_count", "neg_inf_count", "zero_count")
HISTOGRAM = ("hist_offsets", "hist_bins", "hist_counts", "channel_offsets")


def _assert_agree(got, want, rtol=2e-5):
    """Fail unless `got` and `want` describe the same tensors."""
    assert len(got) == len(want)
    for name in (*COUNTS, *HISTOGRAM):
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name), err_msg=name)
    for name in (
        "min",
        "max",
    ):  # a modulus may differ in its last digit: hypot is the C library's or another's
        np.testing.assert_array_max_ulp(getattr(got, name), getattr(want, name), maxulp=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        typical = want.l1 / want.finite_count
    for name in ("l1", "l2"):
        _close(getattr(got, name), getattr(want, name), np.abs(getattr(want, name)), rtol, name)
    # A spread near the rounding of the values themselves cannot agree to more digits than they have.
    noise = np.finfo(np.float64).eps * np.maximum(np.abs(want.min), np.abs(want.max)) / rtol
    _close(got.std, want.std, np.fmax(want.std, noise), rtol, "std")
    _close(got.mean, want.mean, typical, rtol, "mean")
    np.testing.assert_array_equal(got.channel_zero_frac, want.channel_zero_frac)
    spread = np.repeat(np.maximum(np.abs(want.min), np.abs(want.max)), np.diff(want.channel_offsets))
    _close(got.channel_mean, want.channel_mean, spread, 1e-5, "channel_mean")
    assert [got.reason(i) is None for i in range(len(got))] == [
        want.reason(i) is None for i in range(len(want))
    ]
    for field in dataclasses.fields(got):
        value = getattr(got, field.name)
        if isinstance(value, np.ndarray):
            assert value.dtype == getattr(want, field.name).dtype, field.name


@pytest.fixture(scope="session")
def assert_agree():
    """`assert_agree(got, want)`, see above."""
    return _assert_agree


def _close(got, want, scale, rtol, name):
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=name)
    known = ~np.isnan(want)
    got, want, scale = got[known], want[known], np.broadcast_to(scale, np.shape(got))[known]
    same = got == want
    with np.errstate(invalid="ignore"):
        error = np.abs(got - want)
    assert (same | (error <= rtol * scale)).all(), (name, got[~same][:5], want[~same][:5])
