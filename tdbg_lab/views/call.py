"""Calling a view by name: checked parameters in, a finished figure out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from plotly import graph_objects as go

from tdbg_lab.errors import ConfigError
from tdbg_lab.run import Run
from tdbg_lab.views.registry import Cancelled, View, find_view
from tdbg_lab.views.style import empty

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["call_view", "check_params", "needs_preparing", "prepare_view"]

_MOVING = frozenset({"step", "n_out", "window_s"})
"""Parameters that move a picture but do not make it another one: zoom survives them."""


def check_params(run: Run | None, name: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """All parameters of view `name`, checked, with defaults filled in.

    Raises
    ------
    NotFoundError
        When there is no such view.
    ConfigError
        When a parameter is unknown or does not fit.
    """
    return find_view(name).check(params, run)


def call_view(
    run: Run, name: str, params: Mapping[str, Any] | None = None, *, prepared: Any = None, wait: bool = True
) -> go.Figure:
    """The figure of view `name` on the present state of `run`.

    Parameters
    ----------
    params
        What a host sent; missing ones take their defaults.
    prepared
        What `prepare_view` answered for the same parameters.
    wait
        Whether to prepare a heavy view here and now when `prepared` is None. When False it draws
        what it can at once.

    Raises
    ------
    NotFoundError
        When there is no such view.
    ConfigError
        When a parameter does not fit, or the view did not return a figure.
    """
    found = find_view(name)
    checked = found.check(params, run)
    arguments: dict[str, Any] = dict(checked)
    if found.preparation is not None and found.preparation.is_needed(checked):
        if prepared is None and wait:
            prepared = found.preparation.prepare(run, checked, _no_progress, _never, None)
        arguments["prepared"] = prepared
    figure = found.draw(run, **arguments)
    if not isinstance(figure, go.Figure):
        raise ConfigError(f"View {name!r} must return a plotly Figure, not {type(figure).__name__}.")
    return _finish(figure, found, checked)


def needs_preparing(run: Run | None, name: str, params: Mapping[str, Any] | None = None) -> bool:
    """Whether the figure of these parameters should be prepared in another process."""
    found = find_view(name)
    return found.preparation is not None and found.preparation.is_needed(found.check(params, run))


def prepare_view(  # noqa: PLR0917 - pools pass arguments by position
    run_path: str | Path,
    name: str,
    params: Mapping[str, Any] | None = None,
    progress: Callable[[float, str], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    previous: Any = None,
) -> Any:
    """The slow part of a heavy view, made for a pool process: opens the run itself, writes nothing.

    Parameters
    ----------
    progress
        Called with the share done (0 to 1) and a short text.
    cancelled
        Asked often; when it answers True the preparation ends with `Cancelled`.
    previous
        Data of an earlier preparation with the same parameters: only what is new is computed.

    Returns
    -------
    Data for ``call_view(..., prepared=...)``; can be pickled. None when the view needs none.

    Raises
    ------
    Cancelled
        When nobody waits any more.
    TdbgError
        As `call_view`.
    """
    from tdbg_lab.run import open_run

    found = find_view(name)
    if found.preparation is None:
        return None
    run = open_run(run_path)
    checked = found.check(params, run)
    if not found.preparation.is_needed(checked):
        return None
    stop = cancelled or _never
    if stop():
        raise Cancelled
    return found.preparation.prepare(run, checked, progress or _no_progress, stop, previous)


def _finish(figure: go.Figure, found: View, params: Mapping[str, Any]) -> go.Figure:
    """Complete what hosts read, whoever wrote the view."""
    meta = figure.layout.meta if isinstance(figure.layout.meta, dict) else {}
    own = meta.get("tdbg", {}) if isinstance(meta.get("tdbg", {}), dict) else {}
    facts = {
        "view": found.name,
        "axis": found.axis,
        "x_axes": ["x"] if found.axis else [],
        "caption": found.description,
        "step": params.get("step"),
        **{key: value for key, value in own.items() if value is not None},
    }
    figure.layout.meta = {**meta, "tdbg": facts}
    if figure.layout.uirevision is None:
        still = {key: value for key, value in params.items() if key not in _MOVING}
        figure.layout.uirevision = f"{found.name} {json.dumps(still, sort_keys=True, default=_identity)}"
    if not figure.data and not figure.layout.annotations:
        nothing = empty("Nothing to draw.", f"View {found.name} returned a figure without data.")
        nothing.layout.meta = figure.layout.meta
        return nothing
    return figure


def _identity(value: object) -> str:
    """What tells a parameter's value from others, whatever is recorded meanwhile."""
    return value.info.id if isinstance(value, Run) else str(value)


def _no_progress(_share: float, _message: str) -> None:
    """Nobody listens."""


def _never() -> bool:
    """Nobody cancels."""
    return False
