"""What all settings have in common: they are checked strictly, and do not change."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

__all__ = ["Names", "StrictModel", "names"]


def names(value: Any) -> Any:
    """One name or several: always a tuple."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list | tuple | set | frozenset) else value


Names = Annotated[tuple[str, ...], BeforeValidator(names)]


class StrictModel(BaseModel):
    """Strict: no coercion, no unknown key, nothing changes afterwards."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, arbitrary_types_allowed=True)
