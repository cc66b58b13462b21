"""What the list and the header of a run say, put together from its line and its digest."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from tdbg_lab.errors import NotFoundError
from tdbg_lab.server.cost import cost
from tdbg_lab.server.digest import digest as read_digest
from tdbg_lab.server.jsonable import jsonable
from tdbg_lab.server.line import read_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.run import Run
    from tdbg_lab.server.catalog import Catalog
    from tdbg_lab.server.digest import Digest
    from tdbg_lab.server.line import Line
    from tdbg_lab.server.roots import Entry
    from tdbg_lab.server.tail import RunTail
    from tdbg_lab.server.wire import RunDetail, RunSummary

__all__ = ["Summaries"]

MAX_DIGESTS = 10_000
"""Digests kept; about 2 kB each."""


class Summaries:
    """Summaries of runs; keeps digests of runs that were open once.

    Parameters
    ----------
    is_open
        Whether the server keeps a run current.
    """

    def __init__(self, catalog: Catalog, is_open: Callable[[str], bool]) -> None:
        self._catalog = catalog
        self._is_open = is_open
        self._digests: OrderedDict[str, tuple[Digest, tuple[int, ...]]] = OrderedDict()

    def listen(self, tail: RunTail) -> None:
        """Keep the digest of a run that is open."""
        if tail.digest is not None:
            self.keep(tail.entry, tail.digest)

    def keep(self, entry: Entry, digest: Digest) -> None:
        """Keep a digest until the run changes."""
        line = self._catalog.snapshot.lines.get(entry.id)
        self._digests[entry.id] = (digest, line.stamp if line else ())
        self._digests.move_to_end(entry.id)
        while len(self._digests) > MAX_DIGESTS:
            self._digests.popitem(last=False)

    def lacks(self, run_id: str) -> bool:
        """Whether there is no digest of a run, or only an outdated one."""
        line = self._catalog.snapshot.lines.get(run_id)
        kept = self._digests.get(run_id)
        return line is not None and (kept is None or kept[1] != line.stamp) and not self._is_open(run_id)

    def all(self) -> list[RunSummary]:
        """All runs, newest first."""
        snapshot = self._catalog.snapshot
        order = sorted(snapshot.lines, key=lambda run_id: snapshot.lines[run_id].created_ns, reverse=True)
        return [self._summary(snapshot.entries[run_id], snapshot.lines[run_id]) for run_id in order]

    def of(self, entry: Entry) -> RunSummary | None:
        """One run; None when it is not in the catalog any more."""
        line = self._catalog.snapshot.lines.get(entry.id)
        return None if line is None else self._summary(entry, line)

    def detail(self, entry: Entry, run: Run) -> RunDetail:
        """Everything about an open run that is not a picture. May read files."""
        line = read_line(entry, self._catalog.snapshot.lines.get(entry.id))
        if line is None:
            raise NotFoundError(f"The run {entry.relative!r} is gone.")
        now = read_digest(run)
        info = run.info
        steps = run.steps()
        summary = self._summary(entry, line, now)
        return {
            **summary,
            "version": now.version,
            "ranks": [int(rank) for rank in run.ranks()],
            "modes": [str(mode) for mode in run.modes()],
            "first_step": int(steps[0]) if len(steps) else -1,
            "hyperparameters": jsonable(dict(info.hyperparameters)),
            "git": None if info.git is None else jsonable(dict(info.git)),
            "host": info.host,
            "cost": cost(run),
            "error": info.error,
        }

    def _summary(self, entry: Entry, line: Line, digest: Digest | None = None) -> RunSummary:
        kept = self._digests.get(entry.id)
        is_open, current = self._is_open(entry.id), digest is not None
        if digest is None and kept is not None:
            digest, stamp = kept
            current = is_open or stamp == line.stamp
        live = digest is not None and is_open
        status = digest.status if digest is not None and live else line.status
        notice, warning, critical = digest.findings if digest else (0, 0, 0)
        speed = digest.steps_per_second if digest else None
        return {
            "id": entry.id,
            "name": line.name,
            "root": entry.root.name,
            "path": entry.relative,
            "status": str(status),
            "created_ns": line.created_ns,
            "ended_ns": line.ended_ns,
            "last_step": _last_step(line, digest, current=current),
            "last_write_ns": _latest(line.last_write_ns, digest.last_write_ns if digest else None),
            "steps_per_second": None if speed is None else float(speed),
            "tags": list(line.tags),
            "notes": line.notes,
            "framework": line.framework,
            "loss": jsonable(digest.loss) if digest and digest.loss else None,
            "findings": {"notice": notice, "warning": warning, "critical": critical},
            "open": is_open,
        }


def _last_step(line: Line, digest: Digest | None, *, current: bool) -> int:
    """The last one that is known: not the later one of both, for training may go on at an earlier step.

    A run says what it trained last; the digest knows of an evaluation behind it, too.
    """
    if digest is not None and (current or line.last_step < 0) and digest.last_step >= 0:
        return digest.last_step
    return line.last_step


def _latest(*times_ns: int | None) -> int | None:
    return max((time_ns for time_ns in times_ns if time_ns is not None), default=None)
