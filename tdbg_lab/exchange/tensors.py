"""Raw values as safetensors: one file for each mode and step, the ranks joined."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.errors import NotFoundError, StoreError
from tdbg_lab.exchange.target import claim_file, claim_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from tdbg_lab.exchange.exports import Choice
    from tdbg_lab.run import Run

__all__ = ["write"]


def write(run: Run, path: Path, choice: Choice, *, force: bool, progress: Callable[[float], None]) -> None:
    """Write raw values, see `tdbg_lab.exchange.export`; labels are under ``<tensor>/labels``.

    Raises
    ------
    NotFoundError
        No raw value was saved.
    StoreError
        It cannot be written.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    run.tensors(regex=choice.regex)  # says what is wrong with it
    names = [name for name in run.raw_names() if choice.regex is None or re.search(choice.regex, name)]
    saved = _saved(run, names, choice)
    if not saved:
        raise NotFoundError(
            f"No raw values of run {run.info.name} match; collections with values='raw' or 'both' save them."
        )
    folder = claim_folder(path, force=force)
    for done, ((mode, step), here) in enumerate(sorted(saved.items()), start=1):
        found = _values(run, here, mode, step)
        part = "" if mode == "train" else f"-{mode}"
        with claim_file(folder / f"step-{step:012d}{part}.safetensors", force=force) as partial:
            try:
                save_file(found, partial, {"run": run.info.id, "mode": mode, "step": str(step)})
            except SafetensorError as error:  # how it tells of a full disk
                raise StoreError(f"Cannot write {path}: {error}.") from error
        progress(done / len(saved))


def _saved(run: Run, names: Iterable[str], choice: Choice) -> dict[tuple[str, int], list[str]]:
    """Which tensors were saved, by mode and step."""
    saved: dict[tuple[str, int], list[str]] = {}
    for mode in ("train", "eval", "predict"):
        if choice.mode in {None, mode}:
            for name in names:
                for step in run.raw_steps(name, mode=mode):
                    saved.setdefault((mode, step), []).append(name)
    return saved


def _values(run: Run, names: Iterable[str], mode: str, step: int) -> dict[str, NDArray[Any]]:
    found = {}
    for name in names:
        tensor = run.tensor(name)
        found[name] = np.ascontiguousarray(tensor.value(step, mode=mode))
        labels = tensor.labels(step, mode=mode)
        if labels is not None:
            found[f"{name}/labels"] = np.ascontiguousarray(labels)
    return found
