"""Driving senders and readers by hand, and comparing what arrives with what was written."""

from __future__ import annotations

import threading
import time

import numpy as np

from tdbg_lab.run import open_run
from tdbg_lab.store import tail
from tdbg_lab.store.remote import parse_url
from tdbg_lab.store.remote.objects import Objects
from tdbg_lab.store.remote.options import storage_options
from tdbg_lab.store.remote.service import Service
from tdbg_lab.store.remote.spool import Spooled, spool_path
from tdbg_lab.store.remote.uploader import Uploader
from tdbg_lab.testing import FakeTraining


def fake_training(url: str, *, writer: bool = True, **arguments) -> tuple[FakeTraining, Spooled]:
    """A run in the spool, on its way to `url`."""
    place = parse_url(url)
    training = FakeTraining(spool_path(place), **arguments)
    spooled = Spooled(training.path)
    spooled.set_place(place, chief=True)
    if writer:
        spooled.add_writer(0)
    return training, spooled


def uploader(spooled: Spooled, options) -> Uploader:
    return Uploader(spooled, lambda url: Objects(url, storage_options(url, options)))


def send(spooled: Spooled, options, *, once: bool = True, flush_s: float = 0.05) -> bool:
    """All that is there now; whether everything arrived."""
    return Service(spooled, uploader(spooled, options), flush_s=flush_s, once=once).run(threading.Event())


def eventually(condition, *, timeout_s: float = 60.0):
    """The first true value of `condition`, asked for again and again."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return value


def records(path) -> dict[str, list[tuple]]:
    """Every row of every stream of a run directory, as comparable tuples."""
    found: dict[str, list[tuple]] = {}
    for chunk in tail(path, streams=("stats", "spans", "system")):
        if chunk is None:
            break
        rows = chunk.table.drop_columns(["seq"]).to_pylist()
        found.setdefault(f"{chunk.rank}/{chunk.stream}", []).extend(
            (chunk.table["seq"][0].as_py(), repr(sorted(row.items()))) for row in rows
        )
    return {key: sorted(rows) for key, rows in found.items()}


def assert_same_run(local, remote) -> None:
    """Row by row, value by value, file by file; no row missing, no row twice."""
    mine, theirs = records(local), records(remote.path)
    assert mine.keys() == theirs.keys()
    for key, rows in mine.items():
        assert rows == theirs[key], key
    here = open_run(local)
    assert here.steps().tolist() == remote.steps().tolist()
    assert here.tensor_names() == remote.tensor_names()
    for name in here.raw_names():
        assert here.raw_steps(name) == remote.raw_steps(name)
        for step in here.raw_steps(name):
            np.testing.assert_array_equal(here.tensor(name).value(step), remote.tensor(name).value(step))
    assert here.findings() == remote.findings()
    assert here.info == remote.info
