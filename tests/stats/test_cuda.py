"""The Triton kernels: interpreted on the CPU, compiled for a GPU without one, and run on one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tdbg_lab.stats import reference  # noqa: E402
from tdbg_lab.stats.dtypes import FLOAT8  # noqa: E402
from tests.gpu import no_waiting  # noqa: E402

FLOATS = ["float32", "float64", "float16", "bfloat16", *FLOAT8]
INTS = ["int8", "uint8", "bool", "int16", "uint16", "int32", "uint32", "int64", "uint64"]

INTERPRETED = """
import contextlib, pickle, sys, torch
from tests_cases import cases, compare_samples
from tdbg_lab.stats.device import DeviceBuffer
from tdbg_lab.stats.cuda_samples import DeviceSamples
from tdbg_lab.stats.layouts import ordinary_memory
from tdbg_lab.stats.triton_kernels import triton_kernels
torch.set_num_threads(1)
tables = triton_kernels().tables(torch.device("cpu"))
compare_samples(DeviceSamples, ordinary_memory, tables, contextlib.nullcontext)
tensors, axes = cases()
buffer = DeviceBuffer("cpu", triton=True)
for tensor, axis in zip(tensors, axes):
    buffer.add([tensor], [axis])
buffer.add(tensors)
import dataclasses
block = buffer.send().read().block
pickle.dump({f.name: getattr(block, f.name) for f in dataclasses.fields(block)}, open(sys.argv[1], "wb"))
"""

COMPILED = """
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from tdbg_lab.stats.cuda import _LONG, _LOOPS, _NO_CHANNELS, _POINTERS, _WIDE, _constants, _options
from tdbg_lab.stats.cuda_kernels import NUMBERS, measure_chunks, measure_one
many = dict(chunks="*i64", first="i32", tables="*fp32", partials="*fp64", hist="*i32")
one = {name: "i64" if name in _POINTERS else "i32" for name in NUMBERS} | {"tables": "*fp32"}
kernels = [(measure_chunks, many, {})]
for rows, cols in (_NO_CHANNELS, _WIDE, _LONG):
    kernels.append((measure_one, one, dict(ROWS=rows, COLS=cols, LOOPS=_LOOPS)))
each = [(code, at % 2 == 0, kernels[at % 4]) for at, code in enumerate((2, 8, 12, 16))]
for code, shared, (kernel, types, tile) in [*((0, s, k) for s in (True, False) for k in kernels), *each]:
    constants = {**_constants(code, shared=shared), **tile}
    signature = types | dict.fromkeys(constants, "constexpr")
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    binary = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=_options(shared=shared))
    assert len(binary.asm["cubin"]) > 1000
"""


def cases():
    """Tensors of every type, with every special value, and one that needs several chunks."""
    torch.manual_seed(5)
    tensors = []
    for name in FLOATS:
        dtype = getattr(torch, name)
        if dtype.itemsize == 1:
            tensors.append(torch.arange(256, dtype=torch.uint8).view(dtype))
        elif dtype.itemsize == 2:
            tensors.append(torch.arange(0, 65536, 7).to(torch.uint16).view(dtype))
        else:
            special = [
                float("nan"),
                float("inf"),
                -float("inf"),
                0.0,
                -0.0,
                1e-40,
                -1e-45,
                3e38,
                -1e-20,
                1.25,
            ]
            tensors.append(torch.tensor(special * 3, dtype=dtype))
            tensors.append(torch.randn(3000, dtype=dtype) + 100)
    for name in INTS:
        dtype = getattr(torch, name)
        bits = torch.randint(-(2**62), 2**62, (600,)).view(torch.uint8)
        tensors.append(
            torch.randint(0, 2, (50,)).bool() if name == "bool" else bits[: 300 // 8 * 8].view(dtype)
        )
    tensors += [torch.zeros(0), torch.tensor(7.5), torch.randn(140_000), torch.full((10,), float("nan"))]
    tensors += [torch.ones(20_000), torch.randn(2000) * 1e-30, torch.randn(2000) * 1e30]
    tensors += [torch.tensor([1e300, -1e308, 0.0], dtype=torch.float64)]
    tensors += [torch.tensor([1e-300, -5e-324], dtype=torch.float64)]
    images = torch.relu(torch.randn(3, 5, 40, 41))
    with_channels = [images, images.to(memory_format=torch.channels_last), images[..., 0].double()]
    with_channels += [torch.relu(torch.randn(70, 130)).bfloat16(), torch.randint(-2, 3, (6, 7))]
    with_channels[1][0, 2, 0, 0] = float("nan")
    return [*tensors, *with_channels], [None] * len(tensors) + [1, 1, 1, 1, 0]


def _want():
    """Of all cases with their channels, and of all once more, without."""
    tensors, axes = cases()
    narrow = (torch.bfloat16, *(getattr(torch, name) for name in FLOAT8))
    arrays = [t.float().numpy() if t.dtype in narrow else t.numpy() for t in tensors]
    return reference.summarize(arrays * 2, channel_axes=[*axes, *[None] * len(axes)])


def test_triton_kernel_interpreted_agrees_with_reference(tmp_path, assert_agree):
    pytest.importorskip("triton")
    out = _python(tmp_path, INTERPRETED, {"TRITON_INTERPRET": "1"})
    import pickle

    from tdbg_lab.records import StatsBlock

    assert_agree(StatsBlock(**pickle.loads(out.read_bytes())), _want())


def test_triton_kernel_compiles_for_a_gpu_that_is_not_there(tmp_path):
    pytest.importorskip("triton")
    _python(tmp_path, COMPILED, {"TRITON_CACHE_DIR": str(tmp_path / "cache")})


def test_torch_operations_agree_with_reference_on_the_same_cases(assert_agree):
    from tdbg_lab.stats.device import DeviceBuffer

    tensors, axes = cases()
    buffer = DeviceBuffer("cpu", triton=False)
    buffer.add(tensors, axes)
    buffer.add(tensors)
    assert_agree(buffer.send().read().block, _want())


def _python(tmp_path, code, environment):
    """Run code in an interpreter of its own: Triton decides at import how to run."""
    (tmp_path / "tests_cases.py").write_text(Path(__file__).read_text(encoding="utf-8"), encoding="utf-8")
    out = tmp_path / "out"
    path = os.pathsep.join([str(tmp_path), str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(out)],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return out


gpu = pytest.mark.gpu
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@gpu
@needs_cuda
@pytest.mark.parametrize("triton", [True, False])
def test_device_buffer_on_cuda_agrees_with_reference(assert_agree, triton):
    from tdbg_lab.stats.device import DeviceBuffer

    tensors, axes = cases()
    buffer = DeviceBuffer("cuda", triton=triton)
    there = [tensor.cuda() for tensor in tensors]
    for tensor, axis in zip(there, axes, strict=True):
        buffer.add([tensor], [axis])
    buffer.add(there)
    ticket = buffer.send()
    ticket.wait()
    block = ticket.read().block
    assert [reason for reason in block.reasons if reason] == []
    assert_agree(block, _want())


@gpu
@needs_cuda
def test_counts_lie_in_the_memory_that_threads_share():
    from tdbg_lab.stats.cuda import _shared

    assert _shared() == (torch.version.hip is None)


@gpu
@needs_cuda
def test_device_buffer_on_cuda_does_not_wait_and_is_not_fooled_by_later_writes():
    from tdbg_lab.stats.device import DeviceBuffer

    buffer = DeviceBuffer("cuda")
    weight, tickets = torch.ones(1 << 20, device="cuda"), []
    buffer.add([weight])
    buffer.send().wait()  # compiled now
    with no_waiting():
        for _ in range(5):
            assert buffer.add([weight]) == 0
            assert buffer.add_numbers(weight.max()) == 0
            tickets.append(buffer.send())
            weight.add_(1.0)
    torch.cuda.synchronize()
    assert all(ticket.arrived() for ticket in tickets)
    assert [ticket.read().block.mean[0] for ticket in tickets] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert tickets[2].read().numbers.tolist() == [3.0]


@gpu
@needs_cuda
def test_tensors_of_several_streams_are_measured_in_their_order():
    from tdbg_lab.stats.device import DeviceBuffer

    buffer = DeviceBuffer("cuda")
    side, value = torch.cuda.Stream(), torch.ones(1 << 22, device="cuda")
    buffer.add([value])
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        value.mul_(3.0)
        buffer.add([value, value])
    torch.cuda.current_stream().wait_stream(side)
    for _ in range(100):  # more than there is room for at first
        buffer.add([value])
    ticket = buffer.send()
    ticket.wait()
    assert ticket.read().block.mean.tolist() == [1.0] + [3.0] * 102


@gpu
@needs_cuda
def test_summarize_tensors_takes_tensors_of_several_devices(assert_agree):
    from tdbg_lab.stats.tensors import summarize_tensors

    tensors = [torch.randn(10), torch.randn(20, device="cuda"), torch.randn(5)]
    want = reference.summarize([tensor.cpu().numpy() for tensor in tensors])
    assert_agree(summarize_tensors(tensors), want)
    assert np.isfinite(want.mean).all()


@gpu
@needs_cuda
def test_samples_on_cuda_are_compared_with_what_is_there_later():
    from tdbg_lab.stats.cuda_samples import DeviceSamples
    from tdbg_lab.stats.layouts import ordinary_memory
    from tdbg_lab.stats.triton_kernels import triton_kernels

    compare_samples(
        DeviceSamples, ordinary_memory, triton_kernels().tables(torch.device("cuda", 0)), no_waiting
    )


def compare_samples(samples_of, memory_of, tables, no_waiting):
    torch.manual_seed(1)
    tensors = [torch.randn(n, device=tables.device) for n in (5, 20_000, 3000)]
    tensors[2] = tensors[2].bfloat16()
    plans = [(1, 5, 0), (64, 64, 300), (1, 3000, 0)]
    samples = samples_of([memory_of(tensor, None) for tensor in tensors], plans, tables)
    looked_at = [
        tensor.as_strided((blocks, width), (step or 1, 1)).double().cpu()
        for tensor, (blocks, width, step) in zip(tensors, plans, strict=True)
    ]
    samples.copy()
    samples.ratios()  # compiled now
    with no_waiting():
        samples.copy()
        for tensor in tensors:
            tensor.mul_(1.5)
        found = samples.ratios()
    later = [
        tensor.as_strided((blocks, width), (step or 1, 1)).double().cpu()
        for tensor, (blocks, width, step) in zip(tensors, plans, strict=True)
    ]
    wanted = [((b - a).norm() / a.norm()).item() for a, b in zip(looked_at, later, strict=True)]
    np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-6)
