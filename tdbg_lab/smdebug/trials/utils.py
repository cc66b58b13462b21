"""`create_trial`: the way to a trial."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from tdbg_lab.smdebug.core.utils import is_s3
from tdbg_lab.smdebug.trials.local_trial import LocalTrial
from tdbg_lab.smdebug.trials.profiler_trial import ProfilerTrial
from tdbg_lab.smdebug.trials.s3_trial import S3Trial

if TYPE_CHECKING:
    from tdbg_lab.smdebug.trials.trial import Trial

__all__ = ["create_trial"]


@overload
def create_trial(
    path: str | Path,
    name: str | None = ...,
    profiler: Literal[False] = ...,
    output_dir: str | Path = ...,
    **kwargs: Any,
) -> Trial: ...


@overload
def create_trial(
    path: str | Path, name: str | None = ..., *, profiler: Literal[True], output_dir: str | Path = ...
) -> ProfilerTrial: ...


def create_trial(
    path: str | Path,
    name: str | None = None,
    profiler: bool = False,
    output_dir: str | Path = "",
    **kwargs: Any,
) -> Trial | ProfilerTrial:
    """The trial in a directory: a run of ours, or a store that smdebug wrote.

    Parameters
    ----------
    path
        What was the hook's ``out_dir``; waits until something is there.
    name
        For people; by default the name of the directory.
    profiler
        Look at profiler data instead of tensors: gives a `ProfilerTrial`.
    output_dir
        Where rules on profiler data leave their reports.
    **kwargs
        ``range_steps``, ``cache``.

    Raises
    ------
    MissingCollectionFiles
        If training has ended and saved nothing.
    SMDebugRuntimeError
        If training has ended and left no profiler data, where they are asked for.
    """
    text = str(path).strip()
    inside, bucket, key = is_s3(text)
    title = name or Path(text).name
    if profiler:
        return ProfilerTrial(title, text, output_dir, **kwargs)
    if inside:
        return S3Trial(title, bucket or "", key or "", **kwargs)
    return LocalTrial(title, text, **kwargs)
