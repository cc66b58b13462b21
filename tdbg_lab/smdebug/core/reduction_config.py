"""Which numbers to keep of a tensor, beside or instead of its values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tdbg_lab.smdebug.core.checks import checked
from tdbg_lab.smdebug.core.reductions import ALLOWED_NORMS, ALLOWED_REDUCTIONS
from tdbg_lab.smdebug.exceptions import SMDebugValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ALLOWED_NORMS", "ALLOWED_REDUCTIONS", "ReductionConfig"]

_NORM = "_norm"


@dataclass(eq=True)
class ReductionConfig:
    """Reductions to save for the tensors of a collection.

    Parameters
    ----------
    reductions, abs_reductions
        Of ``min max mean std variance sum prod``, of the values and of their absolute values.
    norms, abs_norms
        Of ``l1 l2``.
    save_raw_tensor
        Save the values too.
    save_shape
        Save the shape.

    Raises
    ------
    SMDebugValueError
        If there is no such reduction or norm, or a switch is not True or False.
    """

    reductions: list[str] = field(default_factory=list)
    abs_reductions: list[str] = field(default_factory=list)
    norms: list[str] = field(default_factory=list)
    abs_norms: list[str] = field(default_factory=list)
    save_raw_tensor: bool = False
    save_shape: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (
            ("reductions", ALLOWED_REDUCTIONS),
            ("abs_reductions", ALLOWED_REDUCTIONS),
            ("norms", ALLOWED_NORMS),
            ("abs_norms", ALLOWED_NORMS),
        ):
            given = getattr(self, name)
            given = [] if given is None else [given] if isinstance(given, str) else given
            if not isinstance(given, (list, tuple, set)):
                raise SMDebugValueError(f"{name} is {given!r}; expected a list of {', '.join(allowed)}.")
            given = list(given)
            wrong = [one for one in given if one not in allowed]
            if wrong:
                raise SMDebugValueError(
                    f"{wrong[0]!r} is none of the {name}: choose from {', '.join(allowed)}."
                )
            setattr(self, name, given)
        for name in ("save_raw_tensor", "save_shape"):
            if not isinstance(getattr(self, name), bool):
                raise SMDebugValueError(f"{name} is {getattr(self, name)!r}; expected True or False.")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<ReductionConfig {self.to_json()}>"

    @property
    def wanted(self) -> tuple[tuple[str, bool], ...]:
        """Each reduction with whether it is of absolute values."""
        plain = [(name, False) for name in (*self.reductions, *self.norms)]
        return (*plain, *((name, True) for name in (*self.abs_reductions, *self.abs_norms)))

    def to_json_dict(self) -> dict[str, Any]:
        """As JSON-able data: the reductions are one text, with commas."""
        names = [
            *self.reductions,
            *(f"{name}{_NORM}" for name in self.norms),
            *(f"abs_{name}" for name in self.abs_reductions),
            *(f"abs_{name}{_NORM}" for name in self.abs_norms),
        ]
        return {
            "save_raw_tensor": self.save_raw_tensor,
            "reductions": ",".join(names),
            "save_shape": self.save_shape,
        }

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.to_json_dict())

    @classmethod
    def from_dict(cls, params: Mapping[str, Any] | None) -> ReductionConfig | None:
        """From what `to_json_dict` gives, values may be texts; None for None.

        Raises
        ------
        SMDebugValueError
            As the class.
        """
        if params is None:
            return None
        given: dict[str, list[str]] = {"reductions": [], "abs_reductions": [], "norms": [], "abs_norms": []}
        checked(params, "a ReductionConfig")
        names = params.get("reductions") or ""
        listed = names.split(",") if isinstance(names, str) else names
        if not isinstance(listed, (list, tuple)):
            raise SMDebugValueError(f"reductions is {names!r}; expected names, with commas between.")
        for name in filter(None, (str(one).strip() for one in listed)):
            plain = name.removeprefix("abs_")
            kind = "norms" if plain.endswith(_NORM) else "reductions"
            given[("abs_" if plain != name else "") + kind].append(plain.removesuffix(_NORM))
        return cls(
            **given,
            save_raw_tensor=_switch(params, "save_raw_tensor"),
            save_shape=_switch(params, "save_shape"),
        )

    @classmethod
    def from_json(cls, json_str: str) -> ReductionConfig | None:
        """From JSON."""
        return cls.from_dict(json.loads(json_str))


def _switch(params: Mapping[str, Any], name: str) -> Any:
    """A switch that may be written as a text; what is neither is left to the check."""
    value = params.get(name, False)
    return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value
