"""A report: views of one run laid out in one HTML file that needs no network."""

from __future__ import annotations

import html
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import StoreError, TdbgError
from tdbg_lab.run import Run, open_run
from tdbg_lab.views.call import call_view, figure_json
from tdbg_lab.views.registry import find_view
from tdbg_lab.views.style import empty

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plotly import graph_objects as go

__all__ = ["DEFAULT_SECTIONS", "write_page", "write_report"]

DEFAULT_SECTIONS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("rules", {}),
    ("scalars", {}),
    ("overview", {"kind": "gradient"}),
    ("overview", {"kind": "activation", "statistic": "std"}),
    ("histogram", {}),
    ("slices", {}),
    ("latent", {}),
    ("timeline", {"window_s": 86_400}),
)
"""Views and parameters of a report, in order."""

_STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --text: #1c1f26; --soft: #5b6270; --line: #dfe2e8; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14161b; --text: #e6e8ec; --soft: #a1a8b5; --line: #2c313b; }
}
body { margin: 0 auto; max-width: 1080px; padding: 32px 24px 64px; font: 15px/1.5 system-ui, sans-serif;
       background: var(--page); color: var(--text); }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 40px 0 4px; }
p { margin: 4px 0 12px; color: var(--soft); overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: 14px; } th, td { text-align: left; padding: 3px 18px 3px 0;
       border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 600; color: var(--soft); white-space: nowrap; }
figure { margin: 0; height: 420px; }
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
"""


def write_report(
    run: Run | str | Path,
    path: str | Path,
    *,
    sections: Sequence[tuple[str, Mapping[str, Any]]] = DEFAULT_SECTIONS,
) -> Path:
    """Write one self-contained HTML page about a run; returns its path.

    Everything from the run is escaped. A view that fails leaves its reason in its place.

    Parameters
    ----------
    run
        A run, or its directory.
    path
        The file; written whole or not at all.
    sections
        Views and their parameters, in order.

    Raises
    ------
    NotFoundError
        When there is no such run.
    StoreError
        When the file cannot be written.
    """
    run = run if isinstance(run, Run) else open_run(run)
    return write_page(run, path, [_drawn(run, name, params) for name, params in sections])


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
    target = Path(path)
    page = _page(run, figures, title)
    partial = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(page, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StoreError(f"The report cannot be written to {target}: {error.strerror}.") from error
    return target


def _page(run: Run, figures: Sequence[tuple[str, go.Figure]], title: str) -> str:
    from plotly.offline import get_plotlyjs

    title = html.escape(f"{run.info.name} - {title}")
    parts = [_section(number, heading, figure) for number, (heading, figure) in enumerate(figures)]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{_STYLE}</style></head><body>",
            _head(run),
            *parts,
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{_SCRIPT}</script>",
            "</body></html>",
        ]
    )


def _head(run: Run) -> str:
    """Name, state, and the facts that tell one run from another."""
    info = run.info
    facts: list[tuple[str, Any]] = [
        ("Status", f"{run.status}{': ' + info.error if info.error else ''}"),
        ("Started", _moment(info.created_ns)),
        ("Ended", _moment(info.ended_ns)),
        ("Last step", f"{run.last_step:,}" if run.last_step >= 0 else "none"),
        ("Framework", f"{info.framework} {info.framework_version}".strip()),
        ("Tags", ", ".join(info.tags)),
        ("Notes", info.notes),
        *((f"{key}", value) for key, value in info.hyperparameters.items()),
    ]
    rows = "".join(
        f"<tr><th>{html.escape(str(key)[:200])}</th><td>{html.escape(_shown(value))}</td></tr>"
        for key, value in facts
        if value not in ("", None)
    )
    return f"<h1>{html.escape(info.name)}</h1><table>{rows}</table>"


def _drawn(run: Run, name: str, params: Mapping[str, Any]) -> tuple[str, go.Figure]:
    """Title and figure of a view, or why it could not be drawn."""
    try:
        return find_view(name).title, call_view(run, name, params)
    except TdbgError as error:
        return name, empty(f"View {name} could not be drawn.", str(error))


def _section(number: int, heading: str, figure: go.Figure) -> str:
    """Heading, caption, figure."""
    caption = html.escape(_caption(figure))
    data = _inert(figure_json(figure))
    return (
        f"<section><h2>{html.escape(heading)}</h2><p>{caption}</p>"
        f'<figure id="figure{number}" role="img" aria-label="{caption}"></figure>'
        f'<script type="application/json" id="figure{number}-data">{data}</script></section>'
    )


def _caption(figure: go.Figure) -> str:
    return str((figure.layout.meta or {}).get("tdbg", {}).get("caption", ""))


def _inert(text: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 2000 else text[:1999] + "\N{HORIZONTAL ELLIPSIS}"


def _moment(time_ns: int | None) -> str:
    if not time_ns:
        return ""
    return datetime.fromtimestamp(time_ns / 1e9, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
