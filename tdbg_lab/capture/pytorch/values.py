"""Tensors inside what a module returns, and raw values out of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tdbg_lab.capture.pytorch.zero import is_divided, own_part
from tdbg_lab.capture.sampling import places
from tdbg_lab.stats.layouts import PLAIN, is_freed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "FEW_NUMBERS",
    "PLAIN",
    "activations_in",
    "distributed",
    "dtype_name",
    "even_rows",
    "is_part",
    "local",
    "raw_array",
    "readable",
    "sample_of",
    "single_number",
    "tensors_in",
]

FEW_NUMBERS = 64
"""Numbers that may belong to no layer: temperatures, multipliers, weights of losses."""
MAX_TENSORS = 32
"""Tensors taken from one output; the rest is not looked at."""
_MAX_DEPTH = 6


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Tensors in an output, in order: nested tuples, lists, mappings and dataclasses."""
    if isinstance(value, torch.Tensor):
        return [value]
    if type(value) is tuple and len(value) == 1 and isinstance(value[0], torch.Tensor):
        return [value[0]]
    found: list[torch.Tensor] = []
    _gather(value, found, 0)
    return found


def activations_in(output: Any) -> list[torch.Tensor]:
    """Tensors in an output, without the whole numbers beside others: ids, masks and indices are passed on."""
    tensors = tensors_in(output)
    if len(tensors) < 2:
        return tensors
    return [one for one in tensors if one.is_floating_point() or one.is_complex()] or tensors


def _gather(value: Any, found: list[torch.Tensor], depth: int) -> None:
    for part in _parts(value):
        if len(found) >= MAX_TENSORS:
            return
        if isinstance(part, torch.Tensor):
            found.append(part)
        elif depth < _MAX_DEPTH:
            _gather(part, found, depth + 1)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Mapping):  # Hugging Face's ModelOutput is one, without its empty fields
        return list(value.values())
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, one.name, None) for one in fields(value)]
    return ()


def distributed(tensor: torch.Tensor) -> bool:
    """Whether the tensor is spread over ranks (a DTensor)."""
    return type(tensor) not in PLAIN and hasattr(tensor, "to_local")


def is_part(tensor: torch.Tensor) -> bool:
    """Whether a parameter is spread over ranks: a DTensor, flattened by FSDP1, or divided by ZeRO."""
    return distributed(tensor) or getattr(tensor, "_fsdp_flattened", False) or is_divided(tensor)


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Of a distributed tensor the part of this rank, a shard or a copy; any other tensor itself.

    Reading the whole would make every rank wait for all others.
    """
    if not distributed(tensor):
        return own_part(tensor) if is_divided(tensor) else tensor
    with torch.no_grad():
        part: torch.Tensor = tensor.to_local()  # type: ignore[attr-defined]
    return part


def dtype_name(tensor: torch.Tensor) -> str:
    """``float32``, not ``torch.float32``."""
    return str(tensor.dtype).rpartition(".")[2]


def single_number(tensor: torch.Tensor) -> bool:
    """Whether the value can be read as one number without waiting for a device or another rank."""
    return (
        tensor.numel() == 1
        and tensor.is_cpu
        and tensor.layout is torch.strided
        and not tensor.is_complex()
        and (type(tensor) in PLAIN or not distributed(tensor))
    )


def readable(tensor: torch.Tensor) -> bool:
    """Whether the bytes of a tensor are at hand: in memory, in one piece per row, wrapped by nothing."""
    return (
        type(tensor) in PLAIN
        and tensor.is_cpu
        and tensor.layout is torch.strided
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)  # noqa: SLF001
    )


def even_rows(n: int, limit: int) -> NDArray[np.int64]:
    """Up to `limit` of `n` row numbers, evenly spread, the first included; no randomness."""
    if n <= limit:
        return np.arange(n)
    return np.arange(limit) * n // limit


def sample_of(value: torch.Tensor) -> torch.Tensor:
    """A copy of some values, evenly spread, where they are; 1-D."""
    flat = value.detach().reshape(-1)
    return flat[places(len(flat))].clone()


def raw_array(tensor: torch.Tensor, rows: int | None = None) -> NDArray[Any]:
    """A copy of the values; at most `rows` of the first dimension.

    bfloat16 and float8 become float32, because numpy does not know them.

    Raises
    ------
    ValueError
        The memory of the tensor was given back.
    """
    tensor = local(tensor).detach()
    if tensor.layout is torch.strided and is_freed(tensor):
        raise ValueError("the memory of the tensor was given back (resize_(0)): it has no values now")
    if tensor.layout is not torch.strided or tensor.is_quantized:
        tensor = tensor.dequantize() if tensor.is_quantized else tensor.to_dense()
    if rows is not None and tensor.ndim and tensor.shape[0] > rows:
        tensor = tensor[torch.from_numpy(even_rows(tensor.shape[0], rows)).to(tensor.device)]
    try:
        array: NDArray[Any] = tensor.resolve_conj().resolve_neg().cpu().numpy()
    except TypeError:
        array = tensor.float().cpu().numpy()
    return np.array(array, order="C", copy=True)
