"""Reports on runs: written by a worker process into a folder of the server's own, then downloaded.

Nothing is written below the run roots, so that a report can be had of runs that may only be read.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.server.asked import AskedJobs
    from tdbg_lab.server.wire import AskedJson

__all__ = ["ReportTask", "Reports", "make_report"]

NOTEBOOK = ".ipynb"
MAX_NAME = 100
"""Longest file name, in characters, without ``-report.html``."""


def make_report(
    path: str,
    target: str,
    name: str,
    *,
    progress: Callable[[float, str], None],
    cancelled: Callable[[], bool],
) -> dict[str, Any]:
    """Write the report on a run. Runs in a worker.

    Parameters
    ----------
    path
        The run directory.
    target
        The file.
    name
        What the file is to be called where it is downloaded.

    Returns
    -------
    dict
        JSON: the name of the ``file``, and its size in ``bytes``.

    Raises
    ------
    Cancelled
        When ``cancelled()`` answers True.
    """
    from tdbg_lab.views import Cancelled
    from tdbg_lab.views.report import write_report

    def tell(share: float) -> None:
        if cancelled():
            raise Cancelled
        progress(share, "Writing the report")

    written = write_report(path, target, notebook=Path(target).with_suffix(NOTEBOOK), progress=tell)
    return {"file": name, "bytes": written.stat().st_size}


@dataclass(frozen=True, slots=True)
class ReportTask:
    """What a worker is to write."""

    path: Path
    target: Path
    name: str

    @property
    def title(self) -> str:
        """What it is, for the log."""
        return f"The report {self.name}"

    def request(self) -> dict[str, Any]:
        """What the worker is told."""
        return {"report": str(self.target), "path": str(self.path), "name": self.name}


class Reports:
    """Reports that were asked for; their files stay as long as their jobs are told of."""

    def __init__(self, asked: AskedJobs) -> None:
        self._asked = asked
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def start(self, run_id: str, path: Path, run_name: str) -> AskedJson:
        """Begin to write a report, or join the one under way. Makes a folder at the first call.

        Raises
        ------
        ConflictError
            When too many are under way.
        """
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="tdbg-reports-", ignore_cleanup_errors=True)
        target = Path(self._folder.name, f"{uuid.uuid4().hex}.html")
        task = ReportTask(path, target, file_name(run_name))

        def drop() -> None:
            for one in (target, target.with_suffix(NOTEBOOK)):
                with contextlib.suppress(OSError):  # written just now, on Windows: it goes with the folder
                    one.unlink(missing_ok=True)

        return self._asked.start(("report", run_id), task, drop=drop)

    def read(self, job_id: str, *, notebook: bool = False) -> tuple[str, bytes]:
        """The name and the content of a report that is done: the page, or the notebook.

        Raises
        ------
        NotFoundError
            When there is none.
        """
        job = self._asked.job(job_id)
        if isinstance(job.task, ReportTask) and job.state == "done":
            with contextlib.suppress(OSError):
                suffix = NOTEBOOK if notebook else job.task.target.suffix
                name = Path(job.task.name).with_suffix(suffix).name
                return name, job.task.target.with_suffix(suffix).read_bytes()
        raise NotFoundError("There is no such report, or it is not written yet: start it again.")

    def close(self) -> None:
        """Remove the files; twice does no harm."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def file_name(run_name: str) -> str:
    """What the report on a run is called: letters, digits, dots, dashes and underscores."""
    plain = re.sub(r"[^\w.-]+", "-", run_name).strip("-.")[:MAX_NAME]
    return f"{plain or 'run'}-report.html"
