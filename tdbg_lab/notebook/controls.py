"""Controls made from what a view says about its parameters."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import ipywidgets

from tdbg_lab.notebook.names import tensors_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tdbg_lab.run import Run
    from tdbg_lab.views import Param

__all__ = ["Controls"]

_AUTOMATIC = ("Automatic", "")
"""Leaves the choice to the view. (ipywidgets takes None for nothing chosen.)"""
_ROW = {"flex_flow": "row wrap", "align_items": "center"}


class Controls:
    """One ipywidget per parameter; `on_change(name, value)` hears what the reader chooses.

    The tensor and the first choice stand above the picture, as in the Lab; all else behind "Options". A step
    is chosen with a slider and a "latest" switch; ``None`` means the latest.
    """

    def __init__(
        self, params: Sequence[Param], values: Mapping[str, Any], on_change: Callable[[str, Any], None]
    ) -> None:
        self._on_change = on_change
        self._params = {param.name: param for param in params}
        self._quiet: int | None = None
        """The thread that sets values, if any: readers choose in another one meanwhile."""
        self._parts: dict[str, ipywidgets.Widget] = {}
        self._growing = {name for name in self._params if _is_open(values.get(name))}
        """Ranges that end where the run ends, until the reader chooses another end."""
        for param in params:
            part = _part(param, values.get(param.name, param.default))
            if part is not None:
                self._parts[param.name] = part
                part.observe(self._hear(param.name), names="value")
        self._latest = ipywidgets.ToggleButton(
            value=values.get("step") is None,
            description="Latest",
            tooltip="Follow the run",
            layout={"width": "70px"},
        )
        self._latest.observe(self._hear("step"), names="value")
        self.box = self._arranged(_foremost(params))

    def _arranged(self, foremost: set[str]) -> ipywidgets.Widget:
        """Those named in a row, the others below it where they can be hidden, which they are at first."""
        shown = [part for name, part in self._parts.items() if name in foremost]
        hidden = [part for name, part in self._parts.items() if name not in foremost]
        if "step" in self._parts:
            hidden.append(self._latest)
        if not hidden:
            return ipywidgets.HBox(shown, layout=_ROW)
        more = ipywidgets.HBox(hidden, layout={**_ROW, "display": "none"})
        opens = ipywidgets.ToggleButton(
            description="Options", tooltip="Options of this view", icon="sliders", layout={"width": "auto"}
        )

        def turn(change: Any) -> None:
            more.layout.display = "flex" if change["new"] else "none"

        opens.observe(turn, names="value")
        return ipywidgets.VBox([ipywidgets.HBox([*shown, opens], layout=_ROW), more])

    def set(self, name: str, value: Any) -> None:
        """Show `value` for the parameter `name`, without a call of `on_change`."""
        part = self._parts.get(name)
        if part is None or value is None:
            return
        self._quiet = threading.get_ident()
        try:
            if isinstance(part, ipywidgets.Dropdown) and all(value != known for _, known in part.options):
                part.options = [*part.options, (value, value)]
            part.value = value
        finally:
            self._quiet = None

    def follow(self, run: Run) -> None:
        """Offer the tensors and steps that `run` has by now; ranges "to the end" grow."""
        self._quiet = threading.get_ident()
        try:
            for name, part in self._parts.items():
                param = self._params[name]
                if param.kind in {"tensor", "tensors"}:
                    _offer(part, tensors_of(run, param.tensor_kinds))
                elif param.kind == "step":
                    part.max = max(part.max, run.last_step)
                    if self._latest.value:
                        part.value = max(run.last_step, 0)
                elif param.kind == "range" and run.last_step > part.max:
                    part.max = run.last_step
                    if name in self._growing:
                        part.value = (part.value[0], part.max)
        finally:
            self._quiet = None

    def _hear(self, name: str) -> Callable[[Any], None]:
        def heard(change: Any) -> None:
            if self._quiet == threading.get_ident():
                return
            value = change["new"]
            if isinstance(change["owner"], ipywidgets.IntRangeSlider):
                self._growing.discard(name)
                if value[1] >= change["owner"].max:
                    self._growing.add(name)
                    value = (value[0], None)
            if name == "step":
                value = self._step(change["owner"])
            elif value in ("", ()):
                value = None
            self._on_change(name, list(value) if isinstance(value, tuple) else value)

        return heard

    def _step(self, owner: Any) -> int | None:
        if owner is self._latest:
            return None if self._latest.value else int(self._parts["step"].value)
        quiet, self._quiet = self._quiet, threading.get_ident()
        self._latest.value = False
        self._quiet = quiet
        return int(owner.value)


def _part(param: Param, value: Any) -> Any:
    common = {
        "description": param.label,
        "tooltip": param.help or param.label,
        "style": {"description_width": "initial"},
    }
    if param.kind in {"choice", "tensor"}:
        labels = param.choice_labels or param.choices
        options = list(zip(labels, param.choices, strict=True)) or ([(value, value)] if value else [])
        if value is None or not options:
            options.insert(0, _AUTOMATIC)
        return ipywidgets.Dropdown(
            options=options, value=value or "", layout={"max_width": "340px"}, **common
        )
    if param.kind == "tensors":
        chosen = tuple(value or ())
        return ipywidgets.SelectMultiple(options=chosen, value=chosen, rows=4, **common)
    if param.kind == "bool":
        return ipywidgets.Checkbox(value=bool(value), indent=False, layout={"width": "auto"}, **common)
    if param.kind == "int" and value is not None:
        low = int(param.minimum) if param.minimum is not None else 0
        high = int(param.maximum) if param.maximum is not None else max(10_000, value)
        return ipywidgets.BoundedIntText(value=value, min=low, max=high, layout={"width": "170px"}, **common)
    if param.kind == "regex":
        return ipywidgets.Text(
            value=value or "", continuous_update=False, placeholder="regular expression", **common
        )
    if param.kind == "step":
        top = max(int(value or 0), 1)
        return ipywidgets.IntSlider(value=value or 0, min=0, max=top, continuous_update=False, **common)
    if param.kind == "range":
        first, last = value or (None, None)
        low = int(first or 0)
        high = max(low, 1) if last is None else int(last)
        return ipywidgets.IntRangeSlider(
            value=(low, high), min=0, max=max(high, 1), continuous_update=False, **common
        )
    return None


def _is_open(value: Any) -> bool:
    """Whether a range ends where the run ends."""
    return value is None or (isinstance(value, list | tuple) and value[-1] is None)


def _offer(part: Any, names: Sequence[str]) -> None:
    if isinstance(part, ipywidgets.SelectMultiple):
        chosen = part.value
        if tuple(part.options) != tuple(names):
            part.options = tuple(names)
            part.value = tuple(name for name in chosen if name in names)
        return
    chosen = part.value
    options = [(name, name) for name in names]
    if chosen not in names:
        options.insert(0, (chosen, chosen) if chosen else _AUTOMATIC)
    if list(part.options) != options:
        part.options = options
        part.value = chosen


def _foremost(params: Sequence[Param]) -> set[str]:
    """Names of the tensor and of the first choice."""
    tensor = [param.name for param in params if param.kind == "tensor"]
    choice = [param.name for param in params if param.kind == "choice" and param.name != "mode"]
    return {*tensor[:1], *choice[:1]}
