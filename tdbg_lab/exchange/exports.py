"""`export`: a run in the format of another tool."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConfigError, NotFoundError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tdbg_lab.records import Mode, TensorKey
    from tdbg_lab.run import Run

__all__ = ["EXPORTS", "Choice", "Format", "export"]


@dataclass(frozen=True, slots=True)
class Format:
    """A format that a run can be written in."""

    title: str
    suffix: str
    """What a default name ends with."""
    writer: str
    """``module:function``, called with run, path, choice, force and progress."""


EXPORTS: Mapping[str, Format] = {
    "csv": Format("Statistics and scalars as comma-separated text", ".csv", "tables:write_csv"),
    "parquet": Format("Statistics and scalars as Apache Parquet", ".parquet", "tables:write_parquet"),
    "tensorboard": Format("Event files of TensorBoard, a folder", "-tensorboard", "tensorboard.export:write"),
    "chrome": Format("Trace for Perfetto and chrome://tracing", ".trace.json", "chrome:write"),
    "safetensors": Format("Raw values, a folder with a file a step", "-safetensors", "tensors:write"),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which part of a run."""

    regex: str | None = None
    """Found in the names of tensors."""
    mode: str | None = None
    """None for all of them."""

    def tensors(self, run: Run) -> list[tuple[Mode, list[TensorKey]]]:
        """The modes, train first, each with its tensors.

        Raises
        ------
        NotFoundError
            A part was chosen that holds nothing.
        """
        modes = [mode for mode in run.modes() if self.mode in {None, str(mode)}]
        found = [(mode, run.tensors(regex=self.regex, mode=mode)) for mode in modes]
        if self != Choice() and not any(keys for _, keys in found):
            which = "" if self.regex is None else f" whose name matches {self.regex[:200]!r}"
            where = "" if self.mode is None else f" of mode {self.mode}"
            raise NotFoundError(f"Run {run.info.name} holds no tensor{where}{which}.")
        return found


def export(
    run: Run | str | Path,
    *,
    to: str,
    path: str | Path | None = None,
    regex: str | None = None,
    mode: str | None = None,
    force: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Write a run in the format of another tool; returns what was written.

    Parameters
    ----------
    run
        A run, or its directory.
    to
        ``csv``, ``parquet``, ``tensorboard``, ``chrome`` or ``safetensors``.
    path
        File or folder; by default one beside the current directory's files, named like the run.
    regex, mode
        Only tensors whose name matches, only this mode (a trace holds neither).
    force
        Replace what is there. Without it nothing is overwritten.
    progress
        Called with the share that is done, 0 to 1.

    Raises
    ------
    ConfigError
        There is no such format, mode, or the expression is none.
    ConflictError
        Something is there already.
    NotFoundError
        There is no run, or it holds nothing that was chosen: ``safetensors`` needs raw values.
    StoreError
        It cannot be written.
    """
    from tdbg_lab.run import Run, open_run

    if to not in EXPORTS:
        raise ConfigError(f"There is no format {to!r}; choose from {', '.join(EXPORTS)}.")
    if mode not in {None, "train", "eval", "predict"}:
        raise ConfigError(f"mode is {mode!r}; expected 'train', 'eval' or 'predict'.")
    opened = run if isinstance(run, Run) else open_run(run)
    chosen = EXPORTS[to]
    target = Path(path) if path is not None else Path(f"{opened.path.name}{chosen.suffix}")
    if "\0" in str(target):
        raise ConfigError("A path holds no NUL character.")
    module, _, function = chosen.writer.partition(":")
    write: Any = getattr(import_module(f"tdbg_lab.exchange.{module}"), function)
    try:
        write(opened, target, Choice(regex, mode), force=force, progress=progress or _silent)
    except StoreError:
        raise
    except OSError as error:  # the path is too long even to look whether something is there
        raise StoreError(f"Cannot write {target}: {error.strerror or error}.") from error
    return target


def _silent(_share: float) -> None:
    """Nobody asked."""
