import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tdbg_lab.stats import cpu, reference
from tdbg_lab.stats.engine import _CHILD, CpuEngine

RNG = np.random.default_rng(7)
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, -1e-45, 3e38, -3e38, 1e-20, 1.25, 1.7499999]


def _values(dtype, shape):
    if np.dtype(dtype).kind == "b":
        return RNG.random(shape) < 0.3
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return RNG.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if np.dtype(dtype).kind == "c":
        return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)
    return (RNG.standard_normal(shape) * 3).astype(dtype)


DTYPES = ["f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", "c8", "c16"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (5, 3), (3, 4, 5, 6), (2, 2048), (3, 5000)])
def test_cpu_agrees_with_reference_for_every_type_and_shape(dtype, shape, assert_agree):
    array = np.asarray(_values(dtype, shape))
    axis = 1 if len(shape) > 1 else None
    assert_agree(
        cpu.summarize([array], channel_axes=[axis]), reference.summarize([array], channel_axes=[axis])
    )


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("repeats", [1, 200])
def test_cpu_agrees_with_reference_for_special_values(dtype, repeats, assert_agree):
    with np.errstate(over="ignore"):
        array = np.tile(SPECIAL, repeats).astype(dtype)
    assert_agree(cpu.summarize([array]), reference.summarize([array]))


def test_cpu_agrees_with_reference_for_float64_beyond_float32(assert_agree):
    array = np.array([1e300, -1e-300, 1e39, 1e-60, 5e-324, -1e308, 0.0])
    assert_agree(cpu.summarize([array]), reference.summarize([array]))


@pytest.mark.parametrize("scale", [1e-30, 1e-13, 1e16, 1e30])
def test_cpu_keeps_its_precision_for_tiny_and_huge_values(scale, assert_agree):
    array = (RNG.standard_normal(5000) * scale).astype(np.float32)
    assert_agree(cpu.summarize([array]), reference.summarize([array]))


@pytest.mark.parametrize("n", [5000, 100_000])  # of the many, the nearest bin is not looked for
@pytest.mark.parametrize(
    "rare", [(), (0.0, -0.0), (1e-40, -1e-45), (0.0, 1e-40, 1e-40, -1e-40), (2.0**-125,)]
)
@pytest.mark.parametrize("signs", [(1, -1), (1, 1), (-1, -1)])
def test_cpu_counts_what_is_next_to_zero(n, rare, signs, assert_agree):
    array = np.abs(RNG.standard_normal(n)).astype(np.float32) + np.float32(1e-3)
    array[RNG.integers(0, n, len(rare) * 40)] = np.tile(rare, 40)
    array *= np.resize(signs, n).astype(np.float32)
    assert_agree(cpu.summarize([array]), reference.summarize([array]))


@pytest.mark.parametrize("shape", [(5000, 6), (9, 6, 500), (4, 3000)])
def test_cpu_keeps_channel_means_of_values_whose_sums_float32_cannot_hold(shape, assert_agree):
    array = (RNG.uniform(1, 3, shape) * 1e38).astype(np.float32)
    got = cpu.summarize([array], channel_axes=[1])
    assert np.isfinite(got.channel_mean).all()
    assert_agree(got, reference.summarize([array], channel_axes=[1]))


@pytest.mark.parametrize("channels", [3, 16, 32, 768])
def test_cpu_means_of_samples_that_are_all_the_same_are_exact(channels):
    row = RNG.standard_normal(channels).astype(np.float32)
    got = cpu.summarize([np.tile(row, (32, 1))], channel_axes=[1])
    np.testing.assert_array_equal(got.channel_mean, row)  # rules tell constant layers by this


@pytest.mark.parametrize("rows", [63, 64, 65, 1000, 10_000])
@pytest.mark.parametrize("channels", [1, 10, 768, 2048, 2049])
def test_cpu_agrees_with_reference_for_any_number_of_rows(rows, channels, assert_agree):
    rows = min(rows, 2_000_000 // channels)
    array = np.maximum(RNG.standard_normal((rows, channels)), 0).astype(np.float32)
    other = np.ones((3, channels), dtype=np.float32)
    assert_agree(
        cpu.summarize([array, other], channel_axes=[1, 1]),
        reference.summarize([array, other], channel_axes=[1, 1]),
    )


@pytest.mark.parametrize("axis", [0, 1, 2, -1, None, 5])
def test_cpu_reads_permuted_and_strided_arrays(axis, assert_agree):
    base = _values("f4", (6, 10, 12))
    for array in (base.transpose(2, 0, 1), base[::2, 1:, ::-3], np.asfortranarray(base), base.astype(">f4")):
        assert_agree(
            cpu.summarize([array], channel_axes=[axis]), reference.summarize([array], channel_axes=[axis])
        )


def test_cpu_std_is_right_far_from_zero():
    array = (RNG.standard_normal(1_000_000) + 10_000).astype(np.float32)
    assert cpu.summarize([array]).std[0] == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("value", [0.1, -1e4, 3e-9, 7e11])
def test_cpu_std_is_right_for_neighbouring_floats(value, assert_agree):
    value = np.float32(value)
    array = np.where(RNG.random(50_000) < 0.3, np.nextafter(value, np.float32(np.inf)), value)
    assert_agree(cpu.summarize([array]), reference.summarize([array]), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("first", [1e3, 1e14, -1e-3])
def test_cpu_moments_are_right_where_the_first_value_is_far_from_the_others(dtype, first, assert_agree):
    array = (RNG.standard_normal(10_000) * 1e-3 + 0.5).astype(dtype)
    array[::2048] = first
    assert_agree(cpu.summarize([array]), reference.summarize([array]))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "values",
    [[0.0], [-0.0], [-1, -2], [1, 2], [-0.0, -2], [0.0, -2], [0.0, 2], [-0.0, 2], [-1, 2], [-0.0, 0.0]],
)
def test_cpu_finds_the_ends_whatever_the_signs(dtype, values):
    block = cpu.summarize([np.tile(values, 300).astype(dtype)])
    assert (block.min[0], block.max[0]) == (min(values), max(values))
    assert block.zero_count[0] == 300 * values.count(0)
    assert not np.signbit([block.min[0], block.max[0]])[np.array([min(values), max(values)]) == 0].any()


def test_cpu_gives_the_exact_value_of_one_element():
    values = [0.1, -3.7, 0.0, -0.0, np.nan, np.inf, -np.inf, 1e-30, 3e38]
    block = cpu.summarize([np.array(v, np.float32) for v in values])
    np.testing.assert_array_equal(block.scalar_values, np.array(values, np.float32).astype(float))


def test_cpu_constant_tensor_has_no_spread():
    block = cpu.summarize([np.full(10_001, 0.1, np.float32)])
    assert block.std[0] == 0.0
    assert block.mean[0] == np.float32(0.1)


def test_cpu_same_result_with_several_threads(assert_agree):
    arrays = [
        _values("f4", (64, 3, 5000)),
        _values("f8", 5),
        _values("f4", (400_000,)),
        _values("f2", (7, 9000)),
    ]
    arrays[0][3, 1, 77] = np.nan
    axes = [1, None, None, 0]
    one = cpu.summarize(arrays, channel_axes=axes, threads=1)
    assert_agree(cpu.summarize(arrays, channel_axes=axes, threads=2), one)
    assert_agree(cpu.summarize(arrays, channel_axes=axes, threads=5), one)


def test_cpu_many_tensors_in_one_call_equal_one_call_each(assert_agree):
    arrays = [_values("f4", (n % 50 + 1,)) for n in range(300)]
    block = cpu.summarize(arrays)
    assert_agree(block, reference.summarize(arrays))


def test_cpu_array_that_is_no_number_has_a_reason():
    block = cpu.summarize([np.array(["a"]), np.ones(3), np.array([object()])])
    assert block.reason(1) is None
    assert "numeric" in block.reason(0)
    assert "numeric" in block.reason(2)
    assert block.count.tolist() == [0, 3, 0]


def test_engine_does_not_wait_for_a_warm_up_elsewhere():
    engine = CpuEngine()
    inside, go = threading.Event(), threading.Event()

    def slow():
        inside.set()
        go.wait(30)
        engine.ready = True

    engine._warm_up = slow
    engine._compile_elsewhere = lambda: None
    worker = threading.Thread(target=engine.warm_up)
    worker.start()
    assert inside.wait(30)
    assert engine.usable() is False
    go.set()
    worker.join()
    assert engine.usable() is True


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells what a process ignores")
def test_compiling_child_goes_on_where_the_keyboard_interrupts_the_group(tmp_path):
    """Jupyter sends an interrupt to the whole group; without the child, training would compile itself."""
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD], env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    )
    try:
        status = Path(f"/proc/{child.pid}/status")
        while child.poll() is None and not _ignores(status.read_text(), signal.SIGINT):
            time.sleep(0.01)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def _ignores(status, number):
    (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
    return int(mask, 16) >> (number - 1) & 1
