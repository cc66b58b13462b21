"""Views: functions ``(run, **params) -> plotly Figure``, written once and shown everywhere.

::

    from tdbg_lab.views import call_view, list_views, view

    figure = call_view(run, "histogram", {"tensor": "activation/conv1"})

Views set neither page nor font colours: hosts theme them. What a host needs stands in
``figure.layout.meta["tdbg"]``: view, axis, x_axes, caption, step.
"""

from __future__ import annotations

from importlib import import_module

from tdbg_lab.views.call import call_view, check_params, needs_preparing, prepare_view
from tdbg_lab.views.encode import figure_json
from tdbg_lab.views.param import Param
from tdbg_lab.views.registry import Cancelled, Preparation, View, find_view, list_views, view
from tdbg_lab.views.style import draw_cursor

# importing a view registers it; this is their order in menus
for _name in (
    "scalars",
    "histogram",
    "slices",
    "statistics",
    "overview",
    "distribution",
    "latent",
    "timeline",
    "rules",
    "rule_timeline",
    "step_times",
    "phases",
    "data_loading",
    "cores",
    "utilisation",
    "bottlenecks",
    "ranks",
    "compare",
    "runs",
    "operators",
    "flame",
):
    import_module(f"{__name__}.{_name}")

__all__ = [
    "Cancelled",
    "Param",
    "Preparation",
    "View",
    "call_view",
    "check_params",
    "draw_cursor",
    "figure_json",
    "find_view",
    "list_views",
    "needs_preparing",
    "prepare_view",
    "view",
]
