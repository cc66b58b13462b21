"""A report: a run in one HTML file - verdicts, tables, and the same views as everywhere."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import TdbgError
from tdbg_lab.run import Run, open_run
from tdbg_lab.views.call import call_view
from tdbg_lab.views.html_page import Section, Table, write_sections
from tdbg_lab.views.notebook_page import write_notebook
from tdbg_lab.views.registry import find_view
from tdbg_lab.views.style import empty
from tdbg_lab.views.tables import (
    kinds_of_work,
    rule_headline,
    rule_table,
    slow_step_table,
    step_table,
)
from tdbg_lab.views.verdicts import finding_table, next_steps, part_table, usage_table, verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plotly import graph_objects as go

__all__ = ["DEFAULT_SECTIONS", "write_page", "write_report"]

_ALL = 31_536_000
DEFAULT_SECTIONS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("rules", {}),
    ("scalars", {}),
    ("overview", {"kind": "gradient"}),
    ("overview", {"kind": "activation", "statistic": "std"}),
    ("histogram", {}),
    ("slices", {}),
    ("latent", {}),
    ("phases", {"show": "pie", "window_s": _ALL}),
    ("phases", {"show": "time", "window_s": _ALL}),
    ("step_times", {"window_s": _ALL}),
    ("data_loading", {"window_s": _ALL}),
    ("data_loading", {"show": "histogram", "window_s": _ALL}),
    ("ranks", {"window_s": _ALL}),
    ("cores", {"window_s": _ALL}),
    ("utilisation", {"window_s": _ALL}),
    ("utilisation", {"show": "balance", "window_s": _ALL}),
    ("bottlenecks", {"window_s": _ALL}),
    ("bottlenecks", {"show": "io", "window_s": _ALL}),
    ("timeline", {"window_s": 86_400, "tracks": "machines"}),
    ("operators", {}),
    ("operators", {"show": "kernels"}),
    ("flame", {}),
)
"""Views and parameters of a report, in order; what a run has nothing of is left out."""
_FACTS_SHARE = 0.1
_VIEWS_SHARE = 0.85
_MAX_NAME_BYTES = 200
"""A file name has room for 255, and one that is written aside first is longer."""


def write_report(
    run: Run | str | Path,
    path: str | Path | None = None,
    *,
    sections: Sequence[tuple[str, Mapping[str, Any]]] = DEFAULT_SECTIONS,
    notebook: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Write one self-contained HTML page about a run, or a notebook; returns its path.

    Everything from the run is escaped. A view that fails leaves its reason in its place.

    Parameters
    ----------
    run
        A run, or its directory.
    path
        The file; written whole or not at all. Default: the run's name and ``-report.html`` here. With the
        ending ``.ipynb`` it is a notebook: the same texts, tables and figures, and the code that draws them.
    sections
        Views and their parameters, in order.
    notebook
        Where to write the notebook besides.
    progress
        Called with the share that is done, 0 to 1.

    Raises
    ------
    NotFoundError
        When there is no such run.
    StoreError
        When the file cannot be written.
    """
    run = run if isinstance(run, Run) else open_run(run)
    tell = progress or (lambda _share: None)
    default = sections is DEFAULT_SECTIONS
    parts = [_head(run)]
    if default and run.first_time_ns is not None:
        parts += [one for one in _facts(run) if one.points or any(table.rows for table in one.tables)]
    tell(_FACTS_SHARE)
    for done, (name, params) in enumerate(sections, start=1):
        section = _view(run, name, params, keep_empty=not default or run.first_time_ns is None)
        if section is not None:
            parts.append(section)
        tell(_FACTS_SHARE + (_VIEWS_SHARE - _FACTS_SHARE) * done / max(len(sections), 1))
    target = Path(path) if path is not None else report_file(run.path)
    if notebook is not None:
        write_notebook(notebook, run.path, parts)
    if target.suffix == ".ipynb":
        written = write_notebook(target, run.path, parts)
        tell(1.0)
        return written
    title = f"{run.info.name} - training report"
    return write_sections(target, title, parts, lambda share: tell(_VIEWS_SHARE + (1 - _VIEWS_SHARE) * share))


def report_file(run_path: Path, ending: str = "html") -> Path:
    """What the report on a run is called: the name of its folder, as far as a file can have it, and more."""
    name = run_path.name
    if len(os.fsencode(name)) > _MAX_NAME_BYTES:
        name = os.fsencode(name)[:_MAX_NAME_BYTES].decode(errors="ignore")
    return Path(f"{name}-report.{ending}")


def write_page(
    run: Run, path: str | Path, figures: Sequence[tuple[str, go.Figure]], *, title: str = "training report"
) -> Path:
    """Write figures with their headings as one self-contained HTML page; returns its path.

    Captions come from the figures (`tdbg_lab.views.style.describe`).

    Raises
    ------
    StoreError
        When the file cannot be written.
    """
    parts = [_head(run), *(Section(heading, figures=[figure]) for heading, figure in figures)]
    return write_sections(Path(path), f"{run.info.name} - {title}", parts)


def _head(run: Run) -> Section:
    """Name, state, and the facts that tell one run from another."""
    info = run.info
    facts: list[tuple[str, Any]] = [
        ("Status", f"{run.status}{': ' + info.error if info.error else ''}"),
        ("Started", _moment(info.created_ns)),
        ("Ended", _moment(info.ended_ns)),
        ("Last step", f"{run.last_step:,}" if run.last_step >= 0 else "none"),
        ("Processes", str(info.world_size) if info.world_size > 1 else ""),
        ("Framework", f"{info.framework} {info.framework_version}".strip()),
        ("Tags", ", ".join(info.tags)),
        ("Notes", info.notes),
        *((f"{key}"[:200], value) for key, value in info.hyperparameters.items()),
    ]
    rows = [(key, _shown(value)) for key, value in facts if value not in ("", None)]
    return Section(info.name, tables=[Table(rows)])


def _facts(run: Run) -> list[Section]:
    """What the numbers mean, in words and in tables."""
    kinds, odd = kinds_of_work(run)
    return [
        Section("What stands out", points=verdicts(run), tables=[finding_table(run)]),
        Section("What to do next", points=next_steps(run)),
        Section(
            "Where the time went",
            points=odd,
            tables=[part_table(run), kinds, usage_table(run)],
        ),
        Section("Durations of steps", tables=[step_table(run), slow_step_table(run)]),
        Section("Rules", text=rule_headline(run), tables=[rule_table(run)]),
    ]


def _view(run: Run, name: str, params: Mapping[str, Any], *, keep_empty: bool) -> Section | None:
    """One view: heading, caption, figure; None when it has nothing to show."""
    try:
        figure = call_view(run, name, params)
        heading = find_view(name).title
    except Exception as error:  # noqa: BLE001 - such as one of the user's own
        why = str(error) if isinstance(error, TdbgError) else f"{type(error).__name__}: {error}"[:500]
        figure, heading = empty(f"View {name} could not be drawn.", why), name
        keep_empty = True
    if not keep_empty and (figure.layout.meta or {}).get("tdbg", {}).get("empty"):
        return None
    return Section(heading, figures=[figure], calls=[(name, params)])


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _moment(time_ns: int | None) -> str:
    if not time_ns:
        return ""
    return datetime.fromtimestamp(time_ns / 1e9, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
