"""What all settings have in common: they are checked strictly, and do not change."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

__all__ = ["Names", "StrictModel", "names"]


def names(value: Any) -> tuple[Any, ...]:
    """One name or several: always a tuple."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple | set | frozenset):
        raise ValueError("a name or a list of names")  # noqa: TRY004 - what pydantic makes a sentence of
    return tuple(value)


Names = Annotated[tuple[str, ...], BeforeValidator(names)]


class StrictModel(BaseModel):
    """Strict: no coercion, no unknown key, nothing changes afterwards."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, arbitrary_types_allowed=True)
