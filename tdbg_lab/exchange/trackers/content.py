"""What is sent to a tracking server: findings as rows, figures as Plotly figures, numbers by step."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Severity
from tdbg_lab.run import Run, open_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["FINDING_COLUMNS", "as_run", "counts", "figures_of", "finding_rows", "scalars_of"]

FINDING_COLUMNS = ("severity", "rule", "tensor", "step_first", "step_last", "message", "advice", "evidence")


def as_run(run: Run | str | Path) -> Run:
    """The run, read anew."""
    opened = run if isinstance(run, Run) else open_run(run)
    opened.refresh()
    return opened


def finding_rows(run: Run) -> list[Iterable[Any]]:
    """One row for each finding, see `FINDING_COLUMNS`."""
    return [
        [
            str(one.severity),
            one.rule,
            one.tensor,
            one.step_first,
            one.step_last,
            one.message,
            "\n".join(one.advice),
            json.dumps(dict(one.evidence), default=str),
        ]
        for one in run.findings()
    ]


def counts(run: Run) -> dict[str, int]:
    """How many findings of each severity there are."""
    found = Counter(one.severity for one in run.findings())
    return {f"tdbg/findings/{severity}": found[severity] for severity in Severity}


def figures_of(run: Run, views: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Name and Plotly figure of each view.

    Raises
    ------
    ConfigError, NotFoundError
        There is no such view, or it needs to be told more.
    """
    from tdbg_lab.views.call import call_view

    if isinstance(views, str):
        raise ConfigError(f"views is {views!r}; expected a list of names of views, such as ['scalars'].")
    for name in views:
        yield name, call_view(run, name)


def scalars_of(run: Run, regex: str | None) -> Iterator[tuple[str, int, int, float]]:
    """Name, step, time (ns) and value of the numbers whose name matches; none for None."""
    if regex is None:
        return
    for mode in run.modes():
        for key in run.tensors(regex=regex, kind=["loss", "scalar", "optimizer"], mode=mode):
            series = run.scalars(key.name, mode=mode)
            name = key.name if mode == "train" else f"{mode}/{key.name}"
            for step, time_ns, value in zip(
                series.steps.tolist(), series.time_ns.tolist(), series.values.tolist(), strict=True
            ):
                yield name, step, time_ns, value
