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

FLOATS = ["float32", "float64", "float16", "bfloat16", *FLOAT8]
INTS = ["int8", "uint8", "bool", "int16", "uint16", "int32", "uint32", "int64", "uint64"]

INTERPRETED = """
import pickle, sys, torch
from tests_cases import cases
from tdbg_lab.stats.device import DeviceBuffer
torch.set_num_threads(1)
tensors, axes = cases()
buffer = DeviceBuffer("cpu", triton=True)
buffer.push(tensors, channel_axes=axes)
import dataclasses
block = buffer.drain()[0][1]
pickle.dump({f.name: getattr(block, f.name) for f in dataclasses.fields(block)}, open(sys.argv[1], "wb"))
"""

COMPILED = """
import sys
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from tdbg_lab.stats.cuda import _measure_chunks
types = dict(chunks="*i64", first="i32", tables="*fp32", partials="*fp64", hist="*i32")
for code in (0, 2, 8, 12, 16):
    constants = dict(CODE=code, FLOAT=tl.float64 if 8 <= code < 16 else tl.float32, LANES=1024)
    constants |= dict(SMALL=1e-12, LARGE=1e15)
    signature = types | dict.fromkeys(constants, "constexpr")
    source = ASTSource(fn=_measure_chunks, signature=signature, constexprs=constants)
    options = dict(num_warps=8, enable_fp_fusion=True)
    binary = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
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
    tensors += [torch.randn(2000) * 1e-30, torch.randn(2000) * 1e30]
    tensors += [torch.tensor([1e300, -1e308, 0.0], dtype=torch.float64)]
    tensors += [torch.tensor([1e-300, -5e-324], dtype=torch.float64)]
    channels = torch.relu(torch.randn(3, 5, 4, 4)).to(memory_format=torch.channels_last)
    return [*tensors, channels], [None] * len(tensors) + [1]


def _want():
    tensors, axes = cases()
    narrow = (torch.bfloat16, *(getattr(torch, name) for name in FLOAT8))
    arrays = [t.float().numpy() if t.dtype in narrow else t.numpy() for t in tensors]
    return reference.summarize(arrays, channel_axes=axes)


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
    buffer.push(tensors, channel_axes=axes)
    assert_agree(buffer.drain()[0][1], _want())


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

    if triton:
        pytest.importorskip("triton")
    tensors, axes = cases()
    buffer = DeviceBuffer("cuda", triton=triton)
    buffer.push([tensor.cuda() for tensor in tensors], channel_axes=axes)
    assert_agree(buffer.drain()[0][1], _want())


@gpu
@needs_cuda
def test_device_buffer_on_cuda_does_not_wait_and_is_not_fooled_by_later_writes():
    from tdbg_lab.stats.device import DeviceBuffer

    buffer = DeviceBuffer("cuda")
    weight = torch.ones(1 << 20, device="cuda")
    buffer.push([weight])
    buffer.drain()  # compiled now
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step in range(5):
            buffer.push([weight], tag=step)
            weight.add_(1.0)
        buffer.poll()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    means = [block.mean[0] for _, block in buffer.drain()]
    assert means[-1] == 5.0


@gpu
@needs_cuda
def test_summarize_tensors_takes_tensors_of_several_devices(assert_agree):
    from tdbg_lab.stats.tensors import summarize_tensors

    tensors = [torch.randn(10), torch.randn(20, device="cuda"), torch.randn(5)]
    want = reference.summarize([tensor.cpu().numpy() for tensor in tensors])
    assert_agree(summarize_tensors(tensors), want)
    assert np.isfinite(want.mean).all()
