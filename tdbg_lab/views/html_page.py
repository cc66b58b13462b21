"""One HTML page that needs no network: text, tables and figures, for reading and for printing."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tdbg_lab.views.encode import figure_json
from tdbg_lab.views.style import caption_of, empty
from tdbg_lab.views.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from plotly import graph_objects as go

__all__ = ["MAX_FIGURE_CHARS", "Section", "Table", "table_html", "write_sections"]

MAX_FIGURE_CHARS = 9_000_000
"""Of all figures together; with plotly itself the page stays below 15 MB."""
_MAX_CELL_CHARS = 2000

_STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --text: #1c1f26; --soft: #5b6270; --line: #dfe2e8; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14161b; --text: #e6e8ec; --soft: #a1a8b5; --line: #2c313b; }
}
body { margin: 0 auto; max-width: 1080px; padding: 32px 24px 64px; font: 15px/1.5 system-ui, sans-serif;
       background: var(--page); color: var(--text); }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 40px 0 4px; }
p { margin: 4px 0 12px; color: var(--soft); overflow-wrap: anywhere; }
ul { margin: 4px 0 12px; padding-left: 20px; } li { margin: 2px 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: 14px; margin: 4px 0 12px; font-variant-numeric: tabular-nums;
       display: block; overflow-x: auto; }
th, td { text-align: left; padding: 3px 18px 3px 0;
       border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: break-word; }
th { font-weight: 600; color: var(--soft); white-space: nowrap; }
figure { margin: 0; height: 380px; }
@media print {
  :root { color-scheme: light; --page: #ffffff; --text: #000000; --soft: #333333; --line: #cccccc; }
  @page { margin: 12mm; }
  body { max-width: none; padding: 0; font-size: 12px; }
  h2 { margin-top: 20px; break-after: avoid; }
  section:has(figure), tr, li { break-inside: avoid; }
  table { display: table; font-size: 10px; }
  th, td { padding: 2px 8px 2px 0; overflow-wrap: anywhere; }
  td:first-child { overflow-wrap: break-word; } td:nth-child(2), td:nth-child(3) { min-width: 7em; }
  .modebar-container { display: none; }
}
"""

_SCRIPT = """
const dark = window.matchMedia('(prefers-color-scheme: dark)');
function themed(layout) {
  const text = getComputedStyle(document.body).color;
  return { ...layout, autosize: true, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
           modebar: { bgcolor: 'rgba(0,0,0,0)', color: '#8a8f98', activecolor: text },
           font: { ...(layout.font || {}), color: text, family: 'system-ui, sans-serif' } };
}
function draw() {
  for (const node of document.querySelectorAll('figure')) {
    const figure = JSON.parse(document.getElementById(node.id + '-data').textContent);
    const config = { responsive: true, displaylogo: false, displayModeBar: 'hover', showSendToCloud: false };
    Plotly.react(node, figure.data, themed(figure.layout), config);
  }
}
draw();
dark.addEventListener('change', draw);
window.addEventListener('beforeprint', draw);
window.addEventListener('afterprint', draw);
"""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain texts; without a head the first cell of each row is its name."""

    rows: Sequence[Sequence[str]]
    head: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page. All texts are plain; they are escaped when the page is written."""

    title: str
    text: str = ""
    points: Sequence[str] = ()
    """A list below the text."""
    tables: Sequence[Table] = ()
    figures: Sequence[go.Figure] = field(default=())
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """View and parameters of each figure, for those who draw it again."""


def write_sections(
    target: Path,
    title: str,
    sections: Sequence[Section],
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Write one self-contained page; returns its path. It appears whole or not at all.

    The first section is the head: its title is the page's. Figures that do not fit into 15 MB
    leave a word in their place.

    Parameters
    ----------
    progress
        Called with the share of the sections that are written, 0 to 1.

    Raises
    ------
    StoreError
        When the file cannot be written.
    """
    return write_whole(target, _page(title, sections, progress or _ignore))


def _page(title: str, sections: Sequence[Section], progress: Callable[[float], None]) -> str:
    from plotly.offline import get_plotlyjs

    figures = _Figures()
    parts = []
    for index, section in enumerate(sections):
        parts.append(_section(section, figures, level=2 if index else 1))
        progress((index + 1) / len(sections))
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{_STYLE}</style></head><body>",
            *parts,
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{_SCRIPT}</script>",
            "</body></html>",
        ]
    )


class _Figures:
    """Figures of a page: numbered, and together no larger than a page may be."""

    def __init__(self) -> None:
        self._left = MAX_FIGURE_CHARS
        self._count = 0

    def add(self, figure: go.Figure) -> str:
        data = figure_json(figure)
        if len(data) > self._left:
            figure = empty("This figure is too large for the page.", "Open the run in the Lab to see it.")
            data = figure_json(figure)
        self._left -= len(data)
        name = f"figure{self._count}"
        self._count += 1
        caption = html.escape(caption_of(figure))
        return (
            f'<p>{caption}</p><figure id="{name}" role="img" aria-label="{caption}"></figure>'
            f'<script type="application/json" id="{name}-data">{data}</script>'
        )


def _section(section: Section, figures: _Figures, *, level: int) -> str:
    parts = [f"<h{level}>{html.escape(section.title)}</h{level}>"]
    if section.text:
        parts.append(f"<p>{html.escape(section.text)}</p>")
    if section.points:
        parts.append("<ul>" + "".join(f"<li>{html.escape(one)}</li>" for one in section.points) + "</ul>")
    parts += [table_html(table) for table in section.tables if table.rows]
    parts += [figures.add(figure) for figure in section.figures]
    return f"<section>{''.join(parts)}</section>"


def table_html(table: Table) -> str:
    """A table as HTML; its texts are escaped."""
    head = "".join(f"<th>{html.escape(one)}</th>" for one in table.head)
    rows = [f"<tr>{head}</tr>"] if head else []
    for row in table.rows:
        first = "td" if table.head else "th"
        cells = [f"<{first}>{_cell(row[0])}</{first}>", *(f"<td>{_cell(one)}</td>" for one in row[1:])]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _cell(text: str) -> str:
    cut = text if len(text) <= _MAX_CELL_CHARS else text[: _MAX_CELL_CHARS - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return html.escape(cut)


def _ignore(_share: float) -> None:
    return None
