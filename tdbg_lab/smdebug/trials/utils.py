"""`create_trial`: the way to a trial."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.smdebug.core.utils import is_s3
from tdbg_lab.smdebug.trials.local_trial import LocalTrial
from tdbg_lab.smdebug.trials.s3_trial import S3Trial

if TYPE_CHECKING:
    from tdbg_lab.smdebug.trials.trial import Trial

__all__ = ["create_trial"]


def create_trial(
    path: str | Path,
    name: str | None = None,
    profiler: bool = False,
    output_dir: str = "",
    **kwargs: Any,
) -> Trial:
    """The trial in a directory: a run of ours, or a store that smdebug wrote.

    Parameters
    ----------
    path
        What was the hook's ``out_dir``; waits until something is there.
    name
        For people; by default the name of the directory.
    profiler, output_dir
        Kept for the predecessor's scripts; profiler data are read by `tdbg_lab.smdebug.profiler`.
    **kwargs
        ``range_steps``, ``cache``.

    Raises
    ------
    MissingCollectionFiles
        If training has ended and saved nothing.
    """
    del profiler, output_dir
    text = str(path)
    inside, bucket, key = is_s3(text)
    title = name or Path(text).name
    if inside:
        return S3Trial(title, bucket or "", key or "", **kwargs)
    return LocalTrial(title, text, **kwargs)
