"""The report as a notebook: its texts and tables, and its figures with the code that draws them again."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

from tdbg_lab.views.encode import figure_json
from tdbg_lab.views.html_page import MAX_FIGURE_CHARS, table_html
from tdbg_lab.views.style import caption_of
from tdbg_lab.views.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plotly import graph_objects as go

    from tdbg_lab.views.html_page import Section

__all__ = ["write_notebook"]

_MARKDOWN = str.maketrans({one: f"\\{one}" for one in "\\`*_{}[]()#+-.!|~$"})


def write_notebook(target: Path, run_path: Path, sections: Sequence[Section]) -> Path:
    """Write sections as a Jupyter notebook; returns its path. It appears whole or not at all.

    Figures are shown without running anything, and running their cells draws them anew, as the run is then.

    Raises
    ------
    StoreError
        When the file cannot be written.
    """
    cells: list[dict[str, Any]] = []
    left = MAX_FIGURE_CHARS
    for index, section in enumerate(sections):
        cells.append(_cell("markdown", _markdown(section, level=2 if index else 1)))
        if not index:
            opened = f"run = open_run({str(run_path)!r})"
            imports = "from tdbg_lab import open_run\nfrom tdbg_lab.views import call_view"
            cells.append(_cell("code", f"{imports}\n\n{opened}"))
        for figure, call in zip(section.figures, section.calls, strict=True):
            data = figure_json(figure)
            left -= len(data)
            cells.append(_figure_cell(figure, call, data if left >= 0 else None))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    page = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "cells": cells,
    }
    return write_whole(target, json.dumps(page, ensure_ascii=False, indent=1))


def _markdown(section: Section, *, level: int) -> str:
    parts = [f"{'#' * level} {_plain(section.title)}"]
    if section.text:
        parts.append(_plain(section.text))
    if section.points:
        parts.append("\n".join(f"- {_plain(one)}" for one in section.points))
    parts += [table_html(table) for table in section.tables if table.rows]
    parts += [_plain(caption_of(figure)) for figure in section.figures]
    return "\n\n".join(parts)


def _figure_cell(figure: go.Figure, call: tuple[str, Any], data: str | None) -> dict[str, Any]:
    name, params = call
    cell = _cell("code", f"call_view(run, {name!r}, {dict(params)!r})")
    if data is not None:
        drawn = {"application/vnd.plotly.v1+json": json.loads(data), "text/plain": caption_of(figure)}
        output = {"output_type": "display_data", "metadata": {}, "data": drawn}
        cell["outputs"] = [output]
    return cell


def _cell(kind: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source}
    return {**cell, "execution_count": None, "outputs": []} if kind == "code" else cell


def _plain(text: str) -> str:
    """Text that Markdown and HTML leave as it is."""
    return html.escape(text, quote=False).translate(_MARKDOWN)
