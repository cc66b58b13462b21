"""Reductions of a tensor to one number: their names, and numpy's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.smdebug.exceptions import SMDebugValueError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ALLOWED_NORMS",
    "ALLOWED_REDUCTIONS",
    "REDUCTIONS_PREFIX",
    "get_numpy_reduction",
    "get_reduction_tensor_name",
    "reverse_reduction_tensor_name",
]

ALLOWED_REDUCTIONS = ["min", "max", "mean", "std", "variance", "sum", "prod"]
ALLOWED_NORMS = ["l1", "l2"]
REDUCTIONS_PREFIX = "smdebug/reductions/"
_ABS = "abs_"


def get_numpy_reduction(reduction_name: str, numpy_data: NDArray[Any], abs: bool = False) -> Any:  # noqa: A002
    """One number for all elements, a numpy scalar.

    ``std`` and ``variance`` are those of the population (ddof 0). ``l1`` and ``l2`` are taken over
    the elements, whatever the number of dimensions.

    Raises
    ------
    SMDebugValueError
        If there is no such reduction.
    """
    if reduction_name not in ALLOWED_REDUCTIONS and reduction_name not in ALLOWED_NORMS:
        raise SMDebugValueError(
            f"Invalid reduction type {reduction_name}: "
            f"choose from {', '.join(ALLOWED_REDUCTIONS + ALLOWED_NORMS)}."
        )
    data = np.abs(numpy_data) if abs else np.asarray(numpy_data)
    if reduction_name == "l1":
        return np.sum(np.abs(data))
    if reduction_name == "l2":
        return np.sqrt(np.sum(np.square(np.abs(data.astype(np.result_type(data, np.float32))))))
    function = {"variance": np.var}.get(reduction_name) or getattr(np, reduction_name)
    return function(data)


def get_reduction_tensor_name(
    tensorname: str,
    reduction_name: str,
    abs: bool,  # noqa: A002
    remove_colon_index: bool = True,
) -> str:
    """Name under which a reduction is kept; ``:0`` behind a tensor's name falls away."""
    if remove_colon_index:
        stem, colon, index = tensorname.rpartition(":")
        tensorname = stem if colon and index.isdigit() else tensorname
    return f"{REDUCTIONS_PREFIX}{_ABS if abs else ''}{reduction_name}/{tensorname}"


def reverse_reduction_tensor_name(reduction_tensor_name: str) -> tuple[str, str, bool]:
    """Tensor, reduction, and whether it is of absolute values.

    Raises
    ------
    SMDebugValueError
        If it is not the name of a reduction.
    """
    name = reduction_tensor_name.removeprefix(REDUCTIONS_PREFIX)
    reduction, slash, tensor = name.partition("/")
    if name == reduction_tensor_name or not slash:
        raise SMDebugValueError(f"{reduction_tensor_name!r} is not the name of a reduction.")
    return tensor, reduction.removeprefix(_ABS), reduction.startswith(_ABS)
