"""A run that is copied again and again while it goes on, as ``rsync`` does from another machine."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tdbg_lab.records import RunStatus
from tdbg_lab.run import open_run
from tdbg_lab.store.tail import tail
from tdbg_lab.testing import FakeTraining

if TYPE_CHECKING:
    from pathlib import Path


def renamed(source: Path, target: Path) -> None:
    """As ``rsync -a``: written under a name of its own, then put in place."""
    aside = target.with_name(f".{target.name}.x7Qp2k")
    shutil.copy2(source, aside)
    aside.replace(target)


def half_in_place(source: Path, target: Path) -> None:
    """As ``rsync --inplace`` and ``cp``, cut short: half of what is new is written over what was there."""
    kept = target.stat().st_size if target.exists() else 0
    with source.open("rb") as whole, target.open("r+b" if kept else "wb") as part:
        data = whole.read()
        part.write(data[: kept + (len(data) - kept) // 2])


def copied(source: Path, target: Path, put, *, delete: str) -> None:
    present = {each.relative_to(source) for each in source.rglob("*")}
    if delete == "before":
        remove(target, present)
    for name in sorted(present):
        with contextlib.suppress(FileNotFoundError):  # sealed and gone meanwhile
            if (source / name).is_dir():
                (target / name).mkdir(parents=True, exist_ok=True)
            elif not same(source / name, target / name):
                put(source / name, target / name)
    if delete == "after":
        remove(target, present)


def remove(target: Path, present: set[Path]) -> None:
    for name in {each.relative_to(target) for each in target.rglob("*")} - present:
        (target / name).unlink()


def same(source: Path, target: Path) -> bool:
    one, other = source.stat(), target.stat() if target.exists() else None
    return other is not None and (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)


@pytest.mark.parametrize("delete", ["after", "never"])
def test_copy_can_be_followed_each_row_once(tmp_path, delete):
    chosen = random.Random(1)
    source, target = tmp_path / "source", tmp_path / "target"
    training = FakeTraining(source, layers=1)
    target.mkdir()
    copied(source, target, renamed, delete=delete)
    follower, seen = tail(target, streams=["stats"]), Counter()

    def look():
        for chunk in iter(lambda: next(follower), None):
            seen.update(
                zip(*(chunk.table[name].to_pylist() for name in ("tensor", "mode", "step")), strict=True)
            )

    while training.step() < 700:
        if chosen.random() < 0.06:
            copied(source, target, renamed, delete=delete)
            look()
    training.end()
    copied(source, target, renamed, delete=delete)
    look()
    assert set(seen.values()) == {1}
    frame = open_run(source).to_pandas()
    assert len(seen) == len(frame)


@pytest.mark.parametrize("delete", ["after", "before", "never"])
@pytest.mark.parametrize("put", [renamed, half_in_place])
def test_copy_can_be_watched_while_the_run_goes_on(tmp_path, put, delete):
    chosen = random.Random(0)
    source, target = tmp_path / "source", tmp_path / "target"
    training = FakeTraining(source, layers=1)
    target.mkdir()
    copied(source, target, renamed, delete=delete)
    run, last = open_run(target), -1
    while training.step() < 700:  # over two rotations and their sealing
        if chosen.random() < 0.06:
            copied(source, target, put, delete=delete)
            run.refresh()
            assert run.last_step >= last
            last = run.last_step
    assert last > 500
    training.end()
    copied(source, target, renamed, delete=delete)
    run.refresh()
    original = open_run(source)
    assert run.status is RunStatus.FINISHED
    assert run.problems == original.problems == []
    assert run.to_pandas().equals(original.to_pandas())
    assert run.spans().equals(original.spans())
    assert run.samples().equals(original.samples())
