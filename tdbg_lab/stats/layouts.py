"""Torch tensors as dense blocks of memory: what to do with each layout and type.

Everything here may raise; `tdbg_lab.stats.tensors` turns an exception into a row with a reason.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import torch

from tdbg_lab.stats.dtypes import CODES
from tdbg_lab.stats.pointers import channel_layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

__all__ = [
    "DTYPE_CODES",
    "PLAIN",
    "NotMeasuredError",
    "Part",
    "address_of",
    "dense_parts",
    "is_dense",
    "is_freed",
    "is_wrapper",
    "memory_of",
    "ordinary_address",
    "ordinary_memory",
]

DENSIFY_LIMIT = 1 << 24
"""Elements up to which a sparse tensor is made dense for its channels."""
COPY_LIMIT = 1 << 22
"""Elements copied at a time of a tensor that is not dense in memory."""
_FAR = 1 << 40
"""An address that no offset within a tensor reaches."""

PLAIN = (torch.Tensor, torch.nn.Parameter)
"""Classes of ordinary tensors."""

DTYPE_CODES: dict[torch.dtype, int] = {
    getattr(torch, name): code for name, code in CODES.items() if hasattr(torch, name)
}
"""Code of each element type that is read in place."""


class NotMeasuredError(Exception):
    """A tensor has no statistics; the message is the reason that goes into its row."""


class Part(NamedTuple):
    """A dense real tensor that stands for a tensor, or for a piece of it."""

    values: Tensor
    axis: int | None
    zeros: int = 0
    """Implicit zeros beside `values`."""


def memory_of(tensor: Tensor, axis: int | None) -> tuple[int, int, int, int, int]:
    """(address, code, elements, channels, inner) of a dense tensor of a type in `DTYPE_CODES`."""
    channels, inner = 0, 0
    n = tensor.numel()
    if axis is not None and n:
        shape = tensor.shape
        if 0 <= axis < len(shape) and tensor.is_contiguous():
            channels, inner = shape[axis], prod(shape[axis + 1 :])
        else:
            channels, inner = channel_layout(shape, tensor.stride(), axis)
    return tensor.data_ptr(), DTYPE_CODES[tensor.dtype], n, channels, inner


def ordinary_memory(tensor: Tensor, axis: int | None) -> tuple[int, int, int, int, int] | None:
    """`memory_of` an ordinary contiguous tensor, without a detour; None for all others."""
    address = ordinary_address(tensor)
    code = None if address is None else DTYPE_CODES.get(tensor.dtype)
    if address is None or code is None:
        return None
    n = tensor.numel()
    if axis is None or not n:
        return address, code, n, 0, 0
    shape = tensor.shape
    return (address, code, n, shape[axis], prod(shape[axis + 1 :])) if 0 <= axis < len(shape) else None


def ordinary_address(tensor: Tensor) -> int | None:
    """Where the elements of an ordinary contiguous tensor lie, whatever their type; None for all others."""
    if type(tensor) not in PLAIN or tensor.layout is not torch.strided or tensor.is_meta:
        return None
    if tensor.is_nested or tensor.is_neg() or not tensor.is_contiguous():
        return None
    address = address_of(tensor)
    return address if address or not tensor.numel() else None


def is_dense(tensor: Tensor) -> bool:
    """Whether a strided tensor covers its memory once, without gaps, in any order of dimensions."""
    if tensor.is_contiguous():
        return True
    expected = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if step != expected:
            return False
        expected *= size
    return True


def is_freed(tensor: Tensor) -> bool:
    """Whether the memory of a strided tensor was given back (``resize_(0)`` of its storage).

    Libraries that shard or offload models do that to what they will fetch again. Reading it crashes.
    """
    return tensor.numel() > 0 and tensor.untyped_storage().nbytes() == 0


def address_of(tensor: Tensor) -> int:
    """Where the elements of an ordinary tensor lie; 0 if it has none, or its memory was given back.

    What was given back lies at its offset from 0. So a far address is a true one, which is most of them: they
    are spared the questions of `is_freed`.
    """
    address = tensor.data_ptr()
    return address if address >= _FAR or not is_freed(tensor) else 0


def dense_parts(tensor: Tensor, axis: int | None) -> list[Part]:
    """The tensor as dense real tensors whose statistics merge to its own.

    Raises
    ------
    NotMeasuredError
        It has no values, or none that are numbers.
    """
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):  # a DTensor: each rank measures its shard, ranks merge
        tensor = tensor.to_local()
    if tensor.is_meta or tensor.device.type == "meta" or type(tensor).__name__ == "FakeTensor":
        raise NotMeasuredError("meta tensor: it has no values")
    if tensor.is_nested:
        parts = [piece.reshape(-1) for piece in tensor.unbind()]
        return [part for piece in parts for part in dense_parts(piece, None)] or [_nothing(tensor)]
    if tensor.layout is not torch.strided:
        return _sparse_parts(tensor, axis)
    if is_freed(tensor):
        raise NotMeasuredError("its memory was given back (resize_(0)): it has no values now")
    if tensor.is_quantized or is_wrapper(tensor):
        tensor = tensor.dequantize()
        if is_wrapper(tensor):
            raise NotMeasuredError(f"a {type(tensor).__name__} has no memory of its own to read")
    tensor = tensor.resolve_neg()
    if tensor.is_complex():
        tensor = _modulus(tensor)
    if tensor.dtype not in DTYPE_CODES:
        raise NotMeasuredError(f"dtype {str(tensor.dtype).removeprefix('torch.')} is not supported")
    return [Part(tensor, axis)] if is_dense(tensor) else _copied_parts(tensor, axis)


def is_wrapper(tensor: Tensor) -> bool:
    """Whether a tensor of a class of its own only stands for others, such as the parts of a quantised one."""
    return type(tensor) is not torch.Tensor and tensor.numel() > 0 and tensor.data_ptr() == 0


def _nothing(tensor: Tensor) -> Part:
    return Part(torch.empty(0, device=tensor.device), None)


def _sparse_parts(tensor: Tensor, axis: int | None) -> list[Part]:
    n = 1
    for size in tensor.shape:
        n *= int(size)
    if axis is not None and n <= DENSIFY_LIMIT:
        return dense_parts(tensor.to_dense(), axis)
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce()
    elif not hasattr(tensor, "values"):
        raise NotMeasuredError(f"layout {str(tensor.layout).removeprefix('torch.')} is not supported")
    values = tensor.values()
    parts = dense_parts(values.reshape(-1), None)
    return [Part(parts[0].values, None, n - values.numel()), *parts[1:]]


def _modulus(tensor: Tensor) -> Tensor:
    """Modulus of complex numbers in float64, as `tdbg_lab.stats.reference.modulus` takes it."""
    double = tensor.dtype is torch.complex128
    pairs = torch.view_as_real(tensor.resolve_conj())
    real, imaginary = pairs.double().unbind(-1)
    if double:
        return torch.hypot(real, imaginary)
    length = torch.sqrt(real * real + imaginary * imaginary)
    return torch.where(torch.isinf(real) | torch.isinf(imaginary), torch.inf, length)


def _copied_parts(tensor: Tensor, axis: int | None) -> list[Part]:
    """Contiguous copies of a tensor with gaps or repeats, cut so that none is large."""
    if tensor.numel() <= COPY_LIMIT:
        return [Part(tensor.contiguous(), axis)]
    shape: Sequence[int] = tensor.shape
    along = max((dim for dim in range(tensor.ndim) if dim != axis), key=lambda dim: shape[dim], default=0)
    if shape[along] == 1:
        along, axis = max(range(tensor.ndim), key=lambda dim: shape[dim]), None
    half = shape[along] // 2
    return [
        *_copied_parts(tensor.narrow(along, 0, half), axis),
        *_copied_parts(tensor.narrow(along, half, shape[along] - half), axis),
    ]
