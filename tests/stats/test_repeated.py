"""A tensor that is measured again and again: what is worked out once, and what has to be asked each time."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tdbg_lab.stats.engine import engine  # noqa: E402
from tdbg_lab.stats.growing import GrowingBlock  # noqa: E402
from tdbg_lab.stats.repeated import Repeated  # noqa: E402
from tdbg_lab.stats.tensors import summarize_tensors  # noqa: E402


@pytest.fixture(autouse=True)
def kernels():
    pytest.importorskip("numba")
    assert engine().usable()
    torch.manual_seed(3)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def _assert_equal(block, wanted):
    for name in block.__slots__:
        left, right = getattr(block, name), getattr(wanted, name)
        if name in ("mean", "std", "l1", "l2", "channel_mean"):  # pieces are cut as threads want them
            np.testing.assert_allclose(left, right, rtol=1e-5, equal_nan=True)
        else:
            assert np.array_equal(left, right, equal_nan=name != "reasons"), name


@pytest.mark.parametrize("axis", [None, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_rows_are_those_of_each_tensor_for_itself_however_many_threads_there_are(dtype, axis):
    rows = GrowingBlock()
    repeated = Repeated(rows, axis)
    tensors = [torch.randn(8, 90, 64).mul(10).to(dtype) for _ in range(4)]
    for tensor, threads in zip(tensors, (1, 3, 3, 2), strict=True):
        torch.set_num_threads(threads)
        assert repeated.add(tensor)
    _assert_equal(rows.block(), summarize_tensors(tensors, channel_axes=[axis] * 4))


def test_rows_go_on_after_those_before_are_taken():
    rows = GrowingBlock()
    repeated = Repeated(rows, 1)
    first, second = torch.randn(4, 3), torch.randn(4, 3)
    assert repeated.add(first)
    rows.block()
    rows.clear()
    assert repeated.add(second)
    _assert_equal(rows.block(), summarize_tensors([second], channel_axes=[1]))


def test_values_too_extreme_for_squares_are_measured_again_at_their_new_place():
    rows = GrowingBlock()
    repeated = Repeated(rows, None)
    tensors = [torch.tensor([1.0, 2.0, 3.0]).double() * scale for scale in (1.0, 1e200, 1e-200)]
    for tensor in tensors:
        assert repeated.add(tensor)
    assert rows.block().std.tolist() == pytest.approx([np.std([1, 2, 3]) * one for one in (1, 1e200, 1e-200)])


def test_what_is_no_ordinary_tensor_is_left_to_others():
    rows = GrowingBlock()
    repeated = Repeated(rows, None)
    freed = torch.ones(2, 2)
    freed.untyped_storage().resize_(0)
    others = [
        torch.randn(2, 4)[:, ::2],
        torch.randn(2, 2).t(),
        torch.eye(2).to_sparse(),
        torch.empty(2, 2, device="meta"),
        torch.randn(2, 2, dtype=torch.complex64).conj().imag,
        freed,
    ]
    assert not any(map(repeated.add, others))
    assert repeated.add(torch.ones(2, 2))
    assert not any(map(repeated.add, others)), "also once a call is prepared"
    assert len(rows) == 1


def test_within_a_transform_nothing_is_read():
    rows = GrowingBlock()
    repeated = Repeated(rows, None)
    added = []

    def look(x):
        added.append(repeated.add(torch.ones(2)))
        return x

    torch.func.vmap(look)(torch.ones(3))
    assert added == [False]
    assert len(rows) == 0


def test_an_empty_tensor_has_a_row_of_nothing():
    rows = GrowingBlock()
    assert Repeated(rows, 1).add(torch.zeros(0, 3))
    assert rows.block().count.tolist() == [0]
