"""`show`: a view of a run in the current cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from tdbg_lab.notebook.live import LiveView

__all__ = ["show"]


def show(run: Any, view: str = "histogram", **params: Any) -> LiveView:
    """Show a view of a run in the current notebook cell, and keep it up to date while the run goes on.

    Parameters
    ----------
    run
        A `Run`, a handle of `attach`, the path of a run directory, or an address on an object store.
    view
        Name of a view; ``histograms``, ``losses`` and other everyday words are understood.
    params
        Parameters of the view. A tensor may be named by its module: ``tensor="conv1"``.

    Raises
    ------
    NotFoundError
        There is no such run or view.
    ConfigError
        There is no notebook to show it in, a parameter does not fit, or a run that has ended has no such
        tensor.
    """
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None or not shell.has_trait("kernel"):
        raise ConfigError("show() needs a notebook; in a script, use tdbg_lab.views.call_view(run, view).")
    from tdbg_lab.notebook.live import LiveView
    from tdbg_lab.notebook.names import view_named
    from tdbg_lab.run import Run, open_run
    from tdbg_lab.views import find_view, list_views

    def opened(one: Any) -> Run:
        """A run to be refreshed by the view alone."""
        place = getattr(one, "run_path", None) or getattr(one, "path", one)
        return one.reopen() if isinstance(one, Run) else open_run(place)

    own = opened(run)
    name = view_named(view, [known.name for known in list_views()])
    if name == "rules":
        from tdbg_lab.notebook.live_rules import LiveRules

        live: LiveView = LiveRules(own, params)
    else:
        kinds = {each.name: each.kind for each in find_view(name).params}
        for each, value in params.items():
            if kinds.get(each) == "run" and value is not None:
                params[each] = opened(value)
            elif kinds.get(each) == "runs" and isinstance(value, list | tuple):
                params[each] = [opened(one) for one in value]
        live = LiveView(own, name, params)
    _take_place(shell, live)
    live.show()
    return live


def _take_place(shell: Any, live: LiveView) -> None:
    """Close the view that an earlier run of this very cell showed: its output is gone."""
    cell = (shell.get_parent() or {}).get("metadata", {}).get("cellId") or shell.execution_count
    shown: dict[Any, LiveView] = shell.__dict__.setdefault("_tdbg_live_views", {})
    earlier = shown.pop(cell, None)
    if earlier is not None:
        earlier.close()
    shown[cell] = live
