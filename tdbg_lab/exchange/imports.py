"""`import_run`: what another tool recorded, as a run."""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConfigError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tdbg_lab.run import Run

__all__ = ["IMPORTS", "Source", "import_run"]


@dataclass(frozen=True, slots=True)
class Source:
    """A format that a run can be made from."""

    title: str
    patterns: tuple[str, ...]
    """Names of its files."""
    reader: str
    """``module:function``, called with files, root, store, name and progress; returns the run's directory."""


IMPORTS: Mapping[str, Source] = {
    "tensorboard": Source(
        "Event files of TensorBoard: scalars and histograms",
        ("*tfevents*",),
        "tensorboard.importing:read",
    ),
    "trace": Source(
        "Traces of torch.profiler, and other Chrome traces: spans and counters",
        ("*.json", "*.json.gz"),
        "trace:read",
    ),
}
_MAX_FILES = 10_000


def import_run(
    path: str | Path,
    *,
    source: str | None = None,
    store: str | Path | None = None,
    name: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Run:
    """Make a run of what another tool recorded.

    Parameters
    ----------
    path
        A file, or a folder with such files, also in folders below.
    source
        ``tensorboard`` or ``trace``; None finds out by the names of the files.
    store
        Directory of the new run, by default ``runs/<name of path>``; an existing one stays, the
        new one is then ``...-2``.
    name
        Name of the run.
    progress
        Called with the share that is done, 0 to 1.

    Returns
    -------
    Run
        Its ``info.notes`` say what was left out, and why.

    Raises
    ------
    NotFoundError
        There is no such file.
    ConfigError
        There is no such source, or the files hold nothing that can be read.
    StoreError
        The run cannot be written.
    """
    from tdbg_lab.run import open_run

    path = Path(path).expanduser()
    if source is not None and source not in IMPORTS:
        raise ConfigError(f"There is no source {source!r}; choose from {', '.join(IMPORTS)}.")
    if not os.path.exists(path):  # noqa: PTH110 - raises over no name
        raise NotFoundError(f"There is nothing at {path}.")
    kind, files = _found(path, source)
    module, _, function = IMPORTS[kind].reader.partition(":")
    read: Any = getattr(import_module(f"tdbg_lab.exchange.{module}"), function)
    stem = path.resolve().name.removesuffix(".gz").removesuffix(".json")
    target = Path(store) if store is not None else Path("runs") / stem
    root = path if path.is_dir() else path.parent
    made: Path = read(files, root, target, name or stem, progress or _silent)
    return open_run(made)


def _found(path: Path, source: str | None) -> tuple[str, list[Path]]:
    """The source and its files, by name."""
    if path.is_file() and source is not None:
        return source, [path]
    for kind, one in IMPORTS.items():
        if source in {None, kind}:
            candidates = [path] if path.is_file() else [p for q in one.patterns for p in path.rglob(q)]
            files = sorted({p for p in candidates if p.is_file() and any(map(p.match, one.patterns))})
            if len(files) > _MAX_FILES:
                raise ConfigError(f"{path} holds {len(files)} files; at most {_MAX_FILES} make a run.")
            if files:
                return kind, files
    wanted = ", ".join(p for kind, one in IMPORTS.items() if source in {None, kind} for p in one.patterns)
    raise NotFoundError(f"{path} holds no file that can be imported; their names look like {wanted}.")


def _silent(_share: float) -> None:
    """Nobody asked."""
