"""Runs that the views must cope with, written through the real writer."""

from __future__ import annotations

import numpy as np
import pytest

from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.run import open_run
from tdbg_lab.stats import concat, scalar_block
from tdbg_lab.stats.reference import summarize
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.testing import fake_run

START_NS = 1_700_000_000_000_000_000
HOSTILE = '<img src=x onerror="alert(1)"><b>%{z}</b>\u202e<extra>"</script><script>'


def write(path, steps, *, ranks=1, modes=(Mode.TRAIN,), kind=Kind.GRADIENT):
    """A run from ``steps(step) -> {name: array}``; returns it opened."""
    folder = create_run(path)
    for rank in range(ranks):
        writer = RankWriter(folder.path, rank)
        for mode in modes:
            for step, arrays in steps:
                keys = tuple(
                    TensorKey(name, Kind.LOSS if np.ndim(array) == 0 else kind, name)
                    for name, array in arrays.items()
                )
                block = summarize([np.atleast_1d(np.asarray(array)) for array in arrays.values()])
                writer.append(StatsRows(step, mode, 0, START_NS + step * 10**7, keys, block))
        writer.close()
    folder.set_status("finished")
    return open_run(folder.path)


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """40 steps of four layers in train and eval, with everything a run has."""
    return open_run(
        fake_run(tmp_path_factory.mktemp("runs") / "plain", steps=40, layers=4, modes=("train", "eval"))
    )


@pytest.fixture(scope="session")
def nothing(tmp_path_factory):
    """A run that has just been created."""
    return open_run(create_run(tmp_path_factory.mktemp("runs") / "nothing").path)


@pytest.fixture(scope="session")
def one_step(tmp_path_factory):
    """A run with one step."""
    return open_run(fake_run(tmp_path_factory.mktemp("runs") / "one", steps=1, layers=2))


@pytest.fixture(scope="session")
def broken(tmp_path_factory):
    """NaN, infinities, zeros, an empty tensor, and values at both ends of float64."""
    rng = np.random.default_rng(0)
    rows = []
    for step in range(12):
        bad = rng.normal(0, 1, 200)
        bad[: step * 10] = np.nan
        bad[-1] = np.inf if step % 2 else -np.inf
        loss = [1.0, np.nan, np.inf, -np.inf][step % 4]
        rows.append(
            (
                step,
                {
                    "gradient/bad": bad,
                    "gradient/all_nan": np.full(5, np.nan),
                    "gradient/zero": np.zeros(7),
                    "gradient/empty": np.empty(0),
                    "gradient/ends": np.array([1e300, -1e300, 5e-324, 1e-40]),
                    "loss/bad": np.float64(loss),
                },
            )
        )
    return write(tmp_path_factory.mktemp("runs") / "broken", rows)


@pytest.fixture(scope="session")
def ranks(tmp_path_factory):
    """Two ranks that write the same tensors at the same steps."""
    rng = np.random.default_rng(1)
    rows = [
        (step, {"gradient/w": rng.normal(0, 1, 100), "loss/l": np.float64(step)}) for step in range(0, 30, 3)
    ]
    return write(tmp_path_factory.mktemp("runs") / "ranks", rows, ranks=2)


@pytest.fixture(scope="session")
def long(tmp_path_factory):
    """10,000 steps; step 4,321 has a NaN loss and a gradient with one NaN."""
    values = np.random.default_rng(2).normal(0, 1, 50)
    good, bad = summarize([values]), summarize([np.where(np.arange(50) == 3, np.nan, values)])
    keys = (TensorKey("gradient/w", Kind.GRADIENT, "w"), TensorKey("loss/l", Kind.LOSS))
    folder = create_run(tmp_path_factory.mktemp("runs") / "long")
    writer = RankWriter(folder.path)
    for step in range(10_000):
        is_bad = step == 4321
        loss = scalar_block([np.nan if is_bad else 1 / (1 + step)])
        block = concat([bad if is_bad else good, loss])
        writer.append(StatsRows(step, Mode.TRAIN, 0, START_NS + step * 10**7, keys, block))
    writer.close()
    return open_run(folder.path)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """Every name is an attack on the browser."""
    rng = np.random.default_rng(3)
    rows = [
        (step, {f"gradient/{HOSTILE}": rng.normal(0, 1, 9), f"loss/{HOSTILE}": np.float64(1)})
        for step in range(5)
    ]
    return write(tmp_path_factory.mktemp("runs") / "hostile", rows)
