"""Devices that are neither the processor nor a GPU of CUDA, such as Apple's: the same is seen as anywhere."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.utils.cpp_extension import include_paths, library_paths  # noqa: E402

import tdbg_lab as tdbg  # noqa: E402

HERE = Path(__file__).parent
COUNTS = ["count", "nan_count", "inf_count"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A device that the processor plays."""
    built = tmp_path_factory.mktemp("device") / "plain.so"
    command = [
        *("g++", "-std=c++20", "-O0", "-shared", "-fPIC", "-o", str(built), str(HERE / "plain_device.cpp")),
        *(part for path in include_paths() for part in ("-isystem", path)),
        *(f"-L{path}" for path in library_paths()),
        *("-ltorch_cpu", "-lc10"),
    ]
    subprocess.run(command, check=True)
    return str(built)


def train(*arguments, captured=True):
    """The weights that a training ends with, as printed."""
    command = [sys.executable, str(HERE / "device_training.py"), *map(str, arguments)]
    disabled = {} if captured else {"TDBG_DISABLED": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | disabled)
    return done.stdout


def assert_alike(seen, known):
    """Two devices computed the same, but for rounding."""
    assert len(known.loc["activation/0"]) == 4
    assert len(known.loc["loss/CrossEntropyLoss"]) == 12
    assert seen.index.equals(known.index)
    assert (seen[COUNTS] == known[COUNTS]).all(axis=None)
    for figure in ("min", "max", "std", "l1", "l2"):
        np.testing.assert_allclose(seen[figure], known[figure], rtol=1e-2, atol=1e-4, err_msg=figure)


def figures(run):
    """All that was recorded, but what capture cost."""
    frame = run.to_pandas()
    frame = frame[~frame["tensor"].str.startswith("tdbg/")]
    return frame.set_index(["tensor", "step"]).sort_index()


def test_a_device_without_float64_is_seen_as_the_processor_is(tmp_path, library):
    there = train("plain", tmp_path / "there", library)
    assert there == train("plain", tmp_path / "unseen", library, captured=False)
    train("cpu", tmp_path / "here")
    seen, known = tdbg.open_run(tmp_path / "there"), tdbg.open_run(tmp_path / "here")
    assert seen.raw_steps("activation/2") == known.raw_steps("activation/2") == [0, 3, 6, 9]
    assert_alike(figures(seen), figures(known))
    mine, other = (run.tensor("activation/2").value(9) for run in (seen, known))
    np.testing.assert_allclose(mine, other, atol=1e-4)


@pytest.mark.skipif(not torch.backends.mps.is_available(), reason="no device of Apple's here")
def test_apples_device_is_seen(tmp_path):
    train("mps", tmp_path / "there")
    train("cpu", tmp_path / "here")
    seen, known = (figures(tdbg.open_run(tmp_path / name)) for name in ("there", "here"))
    assert_alike(seen, known)
