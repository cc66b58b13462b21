import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tdbg_lab.stats import reference, torch_ops  # noqa: E402
from tdbg_lab.stats.dtypes import FLOAT8, Code, float8_tables  # noqa: E402
from tdbg_lab.stats.engine import engine  # noqa: E402
from tdbg_lab.stats.team import torch_team  # noqa: E402
from tdbg_lab.stats.tensors import default_channel_axis, summarize_tensors  # noqa: E402

ROOT = Path(__file__).parents[2]
NARROW = ["bfloat16", "float16", *FLOAT8]


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(3)


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_table_equals_torch(name):
    dtype = getattr(torch, name)
    want = torch.arange(256, dtype=torch.uint8).view(dtype).float().numpy()
    np.testing.assert_array_equal(float8_tables()[FLOAT8.index(name)], want)


@pytest.mark.parametrize("name", NARROW)
def test_summarize_tensors_reads_every_bit_pattern_of_narrow_floats(name, assert_agree):
    dtype = getattr(torch, name)
    bits = torch.uint8 if dtype.itemsize == 1 else torch.uint16
    tensor = torch.arange(256**dtype.itemsize).to(bits).view(dtype)
    want = reference.summarize([tensor.float().numpy()])
    assert_agree(summarize_tensors([tensor]), want)
    assert_agree(torch_ops.summarize([tensor], channel_axes=[None]), want)


def test_summarize_tensors_permuted_channels_last(assert_agree):
    tensor = torch.relu(torch.randn(4, 6, 5, 5)).to(memory_format=torch.channels_last)
    for axis in (None, 0, 1, 3):
        want = reference.summarize([tensor.numpy()], channel_axes=[axis])
        assert_agree(summarize_tensors([tensor], channel_axes=[axis]), want)
        assert_agree(torch_ops.summarize([tensor], channel_axes=[axis]), want)


def test_summarize_tensors_views_with_gaps_and_repeats(assert_agree):
    base = torch.randn(50, 60)
    for tensor in (
        base[::3, 1::2],
        base.t()[5:],
        torch.randn(1, 7).expand(1000, 7),
        base[:, None].expand(50, 2, 60),
    ):
        want = reference.summarize([tensor.numpy()], channel_axes=[1])
        assert_agree(summarize_tensors([tensor], channel_axes=[1]), want)


def test_summarize_tensors_huge_expanded_tensor_in_parts(assert_agree):
    tensor = torch.tensor([[1.0], [0.0], [-3.0]]).expand(3, 3_000_000)
    block = summarize_tensors([tensor], channel_axes=[0])
    assert block.count[0] == 9_000_000
    assert block.zero_count[0] == 3_000_000
    np.testing.assert_allclose(block.channel_mean, [1, 0, -3])


def test_summarize_tensors_sparse_counts_implicit_zeros(assert_agree):
    dense = torch.zeros(40, 30)
    dense[3, 4], dense[7, 7], dense[39, 29] = 2.0, -1.0, float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layouts = [
            dense.to_sparse(),
            dense.to_sparse_csr(),
            dense.to_sparse_csc(),
            dense.to_sparse_bsr((2, 2)),
        ]
    indices = torch.tensor([[0, 0], [1, 1]])
    repeated = torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.0]), (3, 3), check_invariants=True)
    for axis in (None, 1):
        want = reference.summarize([dense.numpy()], channel_axes=[axis])
        for tensor in layouts:
            assert_agree(summarize_tensors([tensor], channel_axes=[axis]), want)
        want = reference.summarize([repeated.to_dense().numpy()], channel_axes=[axis])
        assert_agree(summarize_tensors([repeated], channel_axes=[axis]), want)


def test_summarize_tensors_special_kinds(assert_agree):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantised = torch.quantize_per_tensor(torch.randn(100), 0.1, 10, torch.quint8)
        nested = torch.nested.nested_tensor([torch.ones(3), torch.zeros(5)])
        jagged = torch.nested.nested_tensor([torch.ones(3), torch.zeros(5)], layout=torch.jagged)
    joined = np.array([1, 1, 1, 0, 0, 0, 0, 0], np.float32)
    pairs = torch.randn(7, dtype=torch.complex64)
    cases = [
        (quantised, quantised.dequantize().numpy()),
        (nested, joined),
        (jagged, joined),
        (pairs, pairs.numpy()),
        (pairs.conj(), pairs.numpy()),
        (pairs.conj().imag, pairs.conj().imag.resolve_neg().numpy()),
        (torch.tensor(3.5), np.float32(3.5)),
        (torch.nn.Parameter(torch.ones(4)), np.ones(4, np.float32)),
        (torch.randn(3, requires_grad=True) * 0, np.zeros(3, np.float32)),
        (
            torch.tensor([2**63 + 2**39 + 1, 2**64 - 1, 5], dtype=torch.uint64),
            np.array([2**63 + 2**39 + 1, 2**64 - 1, 5], np.uint64),
        ),
    ]
    for tensor, array in cases:
        assert_agree(summarize_tensors([tensor]), reference.summarize([np.asarray(array)]))


def test_summarize_tensors_without_values_gives_reasons(assert_agree):
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.ones(3))
    tensors = [torch.ones(3), torch.empty(5, device="meta"), torch.ones(2), fake, "no tensor"]
    block = summarize_tensors(tensors)
    assert [block.reason(i) is None for i in range(5)] == [True, False, True, False, False]
    assert "meta" in block.reason(1)
    assert block.count.tolist() == [3, 0, 2, 0, 0]
    assert np.isnan(block.mean[1])


def test_summarize_tensors_of_nothing_is_an_empty_block():
    assert len(summarize_tensors([])) == 0


def test_summarize_tensors_leaves_no_trace_in_autograd():
    tensor = torch.randn(10, requires_grad=True)
    result = tensor * 2
    version = result._version
    summarize_tensors([result, tensor], channel_axes=[0, None])
    assert result._version == version
    result.sum().backward()
    assert tensor.grad is not None


@pytest.mark.parametrize(
    ("shape", "name", "axis"),
    [
        ((8, 16, 4, 4), "Conv2d", 1),
        ((8, 16), "Linear", 1),
        ((8, 16, 32), "Conv1d", 1),
        ((8, 16, 32), "TransformerEncoderLayer", 2),
        ((8, 16, 32, 64), "LayerNorm", 3),
        ((8, 16, 4, 4), "ReLU", 1),
        ((8, 16, 32, 8, 8), "Conv3d", 1),
        ((8,), "Linear", None),
        ((), "CrossEntropyLoss", None),
        ((8, 128, 50257), "Linear", None),
        ((8, 0), "Linear", None),
    ],
)
def test_default_channel_axis(shape, name, axis):
    assert default_channel_axis(shape, name) == axis


def test_torch_team_shares_the_work_and_the_answer_is_the_same(assert_agree):
    team = torch_team()
    if team is None:
        pytest.skip("torch brings no OpenMP library that we know")
    values = np.random.default_rng(0).normal(size=(700, 301)).astype(np.float32)
    arrays = [values, values[:3], values[:, :7].copy()]
    memories = [(a.ctypes.data, int(Code.FLOAT32), a.size, a.shape[1], 1) for a in arrays]
    block = engine().measure(memories, threads=3, team=team)
    assert_agree(block, reference.summarize(arrays, channel_axes=[1, 1, 1]))


# A program of its own forks: this one has threads of many libraries by now, and they may hold locks.
FORKING = """
import os
import torch
from tdbg_lab.stats.tensors import summarize_tensors

values = torch.randn(1 << 16)
torch.set_num_threads(2)
summarize_tensors([values])  # the threads exist now
child = os.fork()
if child == 0:
    block = summarize_tensors([values])
    os._exit(0 if block.count[0] == values.numel() else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_torch_team_is_left_alone_in_a_forked_child():
    subprocess.run([sys.executable, "-c", FORKING], cwd=ROOT, check=True, timeout=120)


def test_tensor_whose_memory_was_given_back_has_a_reason():
    freed, whole = torch.ones(1000, 8), torch.ones(3)
    rest, turned = freed[1:], freed.T
    freed.untyped_storage().resize_(0)
    for tensor in (freed, rest, turned):  # the address of the rest is not that of nothing
        for axis in (None, 1):
            block = summarize_tensors([tensor, whole], channel_axes=[axis, None])
            assert "given back" in block.reason(0)
            assert block.count.tolist() == [0, 3]


class Halved(torch.Tensor):
    """Holds half of what it stands for, as quantised tensors of libraries hold integers."""

    @staticmethod
    def __new__(cls, half, *, readable):
        return torch.Tensor._make_wrapper_subclass(cls, half.shape, dtype=half.dtype)

    def __init__(self, half, *, readable):
        self.half_of_it, self.readable = half, readable

    def dequantize(self):
        return 2 * self.half_of_it if self.readable else self

    @classmethod
    def __torch_dispatch__(cls, func, _types, args=(), _kwargs=None):
        assert func is torch.ops.aten.detach.default
        return cls(args[0].half_of_it, readable=args[0].readable)


def test_wrapper_is_measured_by_what_it_stands_for_or_has_a_reason():
    half = torch.arange(6.0).reshape(2, 3)
    block = summarize_tensors([Halved(half, readable=True), Halved(half, readable=False), half])
    assert block.max.tolist()[::2] == [10.0, 5.0]
    assert block.reason(1) == "a Halved has no memory of its own to read"
