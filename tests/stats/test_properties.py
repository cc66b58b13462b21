"""All kernels agree on whatever hypothesis comes up with: types, shapes, strides, special values."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

torch = pytest.importorskip("torch")

from tdbg_lab.stats import cpu, merge, reference, torch_ops  # noqa: E402
from tdbg_lab.stats.dtypes import FLOAT8  # noqa: E402
from tdbg_lab.stats.layouts import dense_parts  # noqa: E402
from tdbg_lab.stats.tensors import summarize_tensors  # noqa: E402

TYPES = ["f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", "c8", "c16"]
NARROW = ["bfloat16", *FLOAT8]
SHAPES = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9)
relaxed = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def arrays(draw):
    """An array of any type, tiled beyond a block now and then, seen through strides; and an axis or None."""
    array = draw(npst.arrays(draw(st.sampled_from(TYPES)), draw(SHAPES)))
    if draw(st.booleans()) and array.size:
        array = np.tile(
            array, (draw(st.integers(1, 3000 // array.size + 2)),) + (1,) * max(array.ndim - 1, 0)
        )
    if array.ndim:
        array = array.transpose(draw(st.permutations(range(array.ndim))))
        array = array[tuple(slice(None, None, draw(st.sampled_from([1, 1, 2, -1]))) for _ in array.shape)]
    axis = draw(st.none() | st.integers(0, array.ndim - 1)) if array.ndim else None
    return array, axis


@relaxed
@given(st.lists(arrays(), min_size=1, max_size=4))
def test_cpu_and_reference_agree(assert_agree, cases):
    data, axes = [array for array, _ in cases], [axis for _, axis in cases]
    with np.errstate(all="ignore"):
        assert_agree(cpu.summarize(data, channel_axes=axes), reference.summarize(data, channel_axes=axes))


@relaxed
@given(arrays())
def test_torch_kernels_and_reference_agree(assert_agree, case):
    array, axis = case
    tensor = torch.from_numpy(np.array(array.tolist(), array.dtype).reshape(array.shape))
    for seen in (tensor, tensor.permute(tuple(reversed(range(tensor.ndim))))):
        at = axis if seen is tensor or axis is None else tensor.ndim - 1 - axis
        with np.errstate(all="ignore"):
            want = reference.summarize([array if seen is tensor else array.T], channel_axes=[at])
            assert_agree(summarize_tensors([seen], channel_axes=[at]), want)
            parts = dense_parts(seen, at)
            got = torch_ops.summarize(
                [part.values for part in parts], channel_axes=[part.axis for part in parts]
            )
            assert_agree(got, want)


@relaxed
@given(st.sampled_from(NARROW), st.binary(max_size=600), st.booleans())
def test_narrow_floats_agree_with_reference(assert_agree, name, data, repeat):
    dtype = getattr(torch, name)
    data = data * (10 if repeat else 1)
    data = data[: len(data) // dtype.itemsize * dtype.itemsize]
    bits = np.frombuffer(data, np.uint8).copy()
    tensor = torch.from_numpy(bits).view(dtype) if len(bits) else torch.empty(0, dtype=dtype)
    want = reference.summarize([tensor.float().numpy()])
    assert_agree(summarize_tensors([tensor]), want)
    assert_agree(torch_ops.summarize([tensor], channel_axes=[None]), want)


@relaxed
@given(npst.arrays(np.float32, st.integers(2, 6000)), st.integers(1, 5))
def test_merge_of_pieces_equals_one_pass(assert_agree, array, n):
    pieces = np.array_split(array, n)
    assert_agree(merge(cpu.summarize(pieces), [0] * n, 1), cpu.summarize([array]))
