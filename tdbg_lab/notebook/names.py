"""From what people type to what is meant: variables, views, tensors, runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.registry import open_handles
from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tdbg_lab.run import Run

__all__ = [
    "VIEW_ALIASES",
    "current_run_path",
    "tensor_named",
    "tensors_of",
    "variable",
    "view_named",
]

VIEW_ALIASES = {
    "histograms": "histogram",
    "distributions": "distribution",
    "embedding": "latent",
    "findings": "rules",
    "loss": "scalars",
    "losses": "scalars",
    "metrics": "scalars",
    "scalar": "scalars",
    "slice": "slices",
    "stats": "statistics",
    "system": "timeline",
}
"""Other words for views."""

_TENSOR_FORMS = ("{}", "activation/{}", "{}.weight", "gradient/{}.weight", "loss/{}", "optimizer/{}")


def variable(name: str, namespace: Mapping[str, Any]) -> Any:
    """What `name` stands for; attributes may follow, as in ``trainer.model``. Nothing is evaluated.

    Raises
    ------
    NotFoundError
        There is no such variable or attribute.
    """
    first, *attributes = name.split(".")
    if first not in namespace:
        known = [key for key in namespace if not key.startswith("_")]
        raise NotFoundError(f"There is no variable '{first}'.{did_you_mean(first, known)}")
    value = namespace[first]
    path = first
    for attribute in attributes:
        if not hasattr(value, attribute):
            raise NotFoundError(
                f"'{path}' has no attribute '{attribute}'.{did_you_mean(attribute, dir(value))}"
            )
        value = getattr(value, attribute)
        path = f"{path}.{attribute}"
    return value


def view_named(name: str, known: Sequence[str]) -> str:
    """Name of the view that `name` means.

    Raises
    ------
    NotFoundError
        There is none.
    """
    meant = VIEW_ALIASES.get(name, name)
    if meant in known:
        return meant
    hint = did_you_mean(name, [*known, *VIEW_ALIASES]) or f" There are: {', '.join(known)}."
    raise NotFoundError(f"There is no view '{name}'.{hint}")


def tensor_named(name: str, known: Sequence[str], preferred: Sequence[str] = ()) -> str | None:
    """Name of the tensor that `name` means, or None when there is none (yet).

    A module stands for its output, then its weight: ``conv1`` is ``activation/conv1``. Tensors in
    `preferred` (the kinds a view asks for) come before others.
    """
    for names in (preferred, known):
        for form in _TENSOR_FORMS:
            if form.format(name) in names:
                return form.format(name)
    return None


def current_run_path(named: str | None) -> str | Path:
    """Directory or address of the run that is meant: `named`, else the one attached last, else the newest.

    Raises
    ------
    ConfigError
        Nothing is named and there is no run.
    """
    if named:
        return named  # as it is: a path would make one slash of the two in an address
    handles = open_handles()
    if handles:
        return Path(handles[-1].run_path)
    from tdbg_lab.run import list_runs

    for folder in (Path("runs"), Path()):
        runs = list_runs(folder, limit=1) if folder.is_dir() else []
        if runs:
            return runs[0].path
    raise ConfigError(
        "There is no run yet: attach first (%tdbg attach --model model), or name one with --run."
    )


def tensors_of(run: Run, kinds: Sequence[Any] = ()) -> list[str]:
    """Names of the tensors of `run`, of the given kinds when there are any."""
    return [key.name for key in run.tensors(kind=tuple(kinds) if kinds else None)]
