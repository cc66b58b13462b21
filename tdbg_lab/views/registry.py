"""Which views there are: the `view` decorator, and calling a view by its name.

A view is a function ``(run, **params) -> plotly Figure``. Hosts (the Lab panel, a notebook, the report,
a script) know nothing else: they build controls from `View.params` and show the figure.
"""

from __future__ import annotations

import inspect
import logging
import re
import threading
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.nearest import did_you_mean
from tdbg_lab.views.param import Param

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tdbg_lab.run import Run

__all__ = ["Axis", "Cancelled", "Preparation", "Registry", "View", "find_view", "list_views", "view"]

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())

Axis = Literal["step", "time"]
Draw = TypeVar("Draw", bound="Callable[..., Any]")

ENTRY_POINTS = "tdbg_lab.views"
_CELL = "__main__."
"""Origin of what a notebook cell or a script defines: there a function may change its name."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Cancelled(Exception):  # noqa: N818 - an event, not a failure
    """Raised inside a preparation that nobody waits for any more."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """The slow part of a heavy view: runs in a pool process and returns data that can be pickled."""

    prepare: Callable[..., Any]
    """``(run, params, progress, cancelled, previous) -> data``. ``progress(fraction, message)`` may be
    called often; when ``cancelled()`` answers True it raises `Cancelled`. ``previous`` is None or what
    it returned earlier for the same parameters."""
    is_needed: Callable[[Mapping[str, Any]], bool]
    """Whether these parameters need it."""


@dataclass(frozen=True, slots=True)
class View:
    """A registered view."""

    name: str
    title: str
    description: str
    draw: Callable[..., Any]
    params: tuple[Param, ...] = ()
    axis: Axis | None = None
    """What the x axis shows, so that hosts can share a cursor or a range; None: neither."""
    preparation: Preparation | None = None
    origin: str = ""
    """Module and name of the function."""

    @property
    def heavy(self) -> bool:
        """Whether some parameters need a preparation in another process."""
        return self.preparation is not None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types, for the wire."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "axis": self.axis,
            "heavy": self.heavy,
            "params": [param.as_dict() for param in self.params],
        }

    def check(self, params: Mapping[str, Any] | None, run: Run | None = None) -> dict[str, Any]:
        """All parameters, checked and with defaults filled in.

        Raises
        ------
        ConfigError
            When a parameter is unknown or its value does not fit.
        """
        params = {} if params is None else params
        known = {param.name: param for param in self.params}
        for name in params:
            if name not in known:
                text = str(name)[:80]
                raise ConfigError(
                    f"View {self.name!r} has no parameter {text!r}.{did_you_mean(text, known, most=3)}"
                )
        return {name: param.check(params.get(name), run) for name, param in known.items()}


class Registry:
    """Views by name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._views: dict[str, View] = {}
        self._loaded = False

    def add(self, new: View) -> None:
        """Register `new`. Running a definition or a cell again replaces it; a taken name is refused."""
        with self._lock:
            old = self._views.get(new.name)
            is_cell = old is not None and old.origin.startswith(_CELL) and new.origin.startswith(_CELL)
            if old is not None and old.origin != new.origin and not is_cell:
                raise ConfigError(
                    f"There is already a view {new.name!r} (from {old.origin}): choose another name."
                )
            self._views[new.name] = new

    def all(self) -> list[View]:
        """Every view, in the order of registration."""
        self._load_entry_points()
        with self._lock:
            return list(self._views.values())

    def find(self, name: str) -> View:
        """The view of this name.

        Raises
        ------
        NotFoundError
            When there is none.
        """
        with self._lock:
            found = self._views.get(name)
        if found is None:
            self._load_entry_points()
            found = self._views.get(name)
        if found is None:
            text = str(name)[:80]
            raise NotFoundError(f"There is no view {text!r}.{did_you_mean(text, self._views, most=3)}")
        return found

    def _load_entry_points(self) -> None:
        with self._lock:
            if self._loaded:
                return
            self._loaded = True
            for point in entry_points(group=ENTRY_POINTS):
                try:
                    point.load()
                except Exception:  # somebody else's package must not take our views down
                    log.exception("Cannot load the views of %s", point.name)


# The one place where views meet: decorators of built-in modules, packages and notebook cells fill it.
_REGISTRY = Registry()


def view(
    name: str,
    *,
    title: str | None = None,
    description: str | None = None,
    params: Sequence[Param] | None = None,
    axis: Axis | None = None,
    preparation: Preparation | None = None,
) -> Callable[[Draw], Draw]:
    """Make a function a view; the function itself stays as it is.

    Parameters
    ----------
    name
        Lower case letters, digits and underscores. Names of built-in views are taken.
    title, description
        Default: from the name, and the first line of the docstring.
    params
        Default: guessed from the signature (keyword-only parameters, by well-known names such as ``tensor``,
        ``step`` and ``mode``, else by the type of their default).
    axis
        What the x axis shows: ``"step"``, ``"time"`` or neither.
    preparation
        The slow part, if there is one.

    Raises
    ------
    ConfigError
        When the name is not usable or the parameters do not match the function.

    Examples
    --------
    >>> from plotly import graph_objects as go
    >>> @view("twice", title="Loss, twice")
    ... def twice(run, *, tensor=None):
    ...     series = run.scalars(tensor or "loss/CrossEntropyLoss")
    ...     return go.Figure(go.Scatter(x=series.steps, y=2 * series.values))
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"A view's name is lower case letters, digits and underscores (64 at most), not {name!r}."
        )

    def register(draw: Draw) -> Draw:
        declared = _guess(draw) if params is None else tuple(params)
        _compare(name, draw, declared)
        if preparation is not None and any(each.kind in {"run", "runs"} for each in declared):
            raise ConfigError(f"View {name!r} is prepared in another process: it cannot take a second run.")
        doc = inspect.getdoc(draw) or ""
        _REGISTRY.add(
            View(
                name=name,
                title=title or name.replace("_", " ").capitalize(),
                description=description if description is not None else doc.split("\n", 1)[0],
                draw=draw,
                params=declared,
                axis=axis,
                preparation=preparation,
                origin=f"{getattr(draw, '__module__', '?')}.{getattr(draw, '__qualname__', '?')}",
            )
        )
        return draw

    return register


def list_views() -> list[View]:
    """Every view: built-in ones, those of installed packages, and those registered in this process."""
    return _REGISTRY.all()


def find_view(name: str) -> View:
    """The view of this name; NotFoundError when there is none."""
    return _REGISTRY.find(name)


_WELL_KNOWN = {
    "tensor": Param("tensor", "Tensor", "tensor"),
    "tensors": Param("tensors", "Tensors", "tensors"),
    "regex": Param("regex", "Name pattern", "regex"),
    "step": Param("step", "Step", "step"),
    "steps": Param("steps", "Steps", "range"),
    "mode": Param("mode", "Mode", "choice", choices=("train", "eval", "predict")),
}


def _guess(draw: Callable[..., Any]) -> tuple[Param, ...]:
    guessed = []
    for each in list(inspect.signature(draw).parameters.values())[1:]:
        if each.kind not in {each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD}:
            continue
        default = None if each.default is each.empty else each.default
        label = each.name.replace("_", " ").capitalize()
        if each.name in _WELL_KNOWN:
            guessed.append(_WELL_KNOWN[each.name])
        elif isinstance(default, bool):
            guessed.append(Param(each.name, label, "bool", default))
        elif isinstance(default, int):
            guessed.append(Param(each.name, label, "int", default))
        else:
            raise ConfigError(
                f"Cannot guess what parameter {each.name!r} is: describe it with `params=[Param(...)]`."
            )
    return tuple(guessed)


def _compare(name: str, draw: Callable[..., Any], params: Sequence[Param]) -> None:
    accepted = inspect.signature(draw).parameters
    if any(each.kind is each.VAR_KEYWORD for each in accepted.values()):
        return
    names = [param.name for param in params]
    if len(set(names)) != len(names):
        raise ConfigError(f"View {name!r} declares a parameter twice.")
    for each in names:
        if each not in accepted:
            raise ConfigError(f"View {name!r} declares {each!r}, but its function takes no such argument.")
