"""Numbers and tensors that the user hands over, kept until a step is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.smdebug.exceptions import SMDebugTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Custom"]


class Custom:
    """What was handed over since the last saved step; what comes again takes its place."""

    def __init__(self) -> None:
        self.scalars: dict[str, NDArray[Any]] = {}
        self.tensors: dict[str, tuple[NDArray[Any], tuple[str, ...]]] = {}
        """Values, and names of collections."""

    def add_scalar(self, name: str, value: Any) -> None:
        """Keep a number as ``scalar/<name>``.

        Raises
        ------
        SMDebugTypeError
            If it is not one number.
        """
        number = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
        if number.size != 1 or number.dtype.kind not in "biuf":
            raise SMDebugTypeError(f"save_scalar({name!r}) takes one number, not {value!r}.")
        shape = (1,) if np.isscalar(value) else number.shape
        self.scalars[f"scalar/{name}"] = number.reshape(shape).copy()

    def add_tensor(self, name: str, value: Any, collections: tuple[str, ...]) -> bool:
        """Keep a tensor; False, with a warning, for what is no numbers."""
        values = _array(value)
        if values.dtype.kind not in "biufc":
            get_logger().warning(
                "save_tensor(%r) takes numbers, not a %s; it is not saved.", name, type(value).__name__
            )
            return False
        self.tensors[name] = (values, collections)
        return True

    def take(self) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[NDArray[Any], tuple[str, ...]]]]:
        """Numbers and tensors that wait; none do afterwards."""
        taken = self.scalars, self.tensors
        self.scalars, self.tensors = {}, {}
        return taken


def _array(value: Any) -> NDArray[Any]:
    """A copy of the values of whatever the user hands over."""
    if hasattr(value, "detach"):
        from tdbg_lab.capture.pytorch.values import raw_array

        return raw_array(value)
    return np.array(value.numpy() if hasattr(value, "numpy") else value)
