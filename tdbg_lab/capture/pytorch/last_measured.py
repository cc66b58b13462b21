"""What a module is given, if it was measured as the output of the one before: it need not be read again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from tdbg_lab.capture.pytorch.measuring import LATE, record_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.capture.pytorch.known import Known
    from tdbg_lab.capture.recorder import Recorder
    from tdbg_lab.records import StatsBlock, TensorKey

__all__ = ["LastMeasured"]

_HANDING_ON = (nn.Flatten, nn.Unflatten, nn.Identity, _DropoutNd)
"""What may return the memory that it got, and writes to it only where PyTorch sees it."""


class LastMeasured:
    """The tensor that was measured last, and its statistics.

    ``Flatten`` and ``Identity``, and ``Dropout`` in evaluation, return the memory that they got. It is
    not read a second time when it is certain to hold the same values: the tensor measured last is the
    argument of the module, so it is alive, and nothing was written to it since.
    """

    __slots__ = ("_axis", "_block", "_place", "_recorder", "_tensor", "_version")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._tensor: ref[torch.Tensor] | None = None
        self._version = -1
        self._axis: int | None = None
        self._block: StatsBlock | None = None
        """Its statistics, or None: those at a place in the rows that are gathered now, or still to come."""
        self._place = (-1, -1)
        """Generation and number of that row."""

    def record(self, known: Known, module: nn.Module, args: Any, tensor: torch.Tensor) -> None:
        """Add the row of what `module` returned, or is given, that is called with `args`."""
        recorder, axis = self._recorder, known.repeated.axis
        may_be_known = axis is None and isinstance(module, _HANDING_ON)
        if may_be_known and self._is_known(args, tensor) and self._repeat(known.key):
            return
        block = record_one(recorder, known, tensor)
        if type(tensor) is torch.Tensor and not tensor.is_inference():
            self._tensor, self._version = ref(tensor), tensor._version  # noqa: SLF001
            self._axis = axis
            if block is LATE:
                self._block, self._place = None, (-1, -1)
            else:
                self._block = block
                self._place = recorder.measured.generation, len(recorder.measured) - 1
        else:
            self._tensor = None

    def axis_of(self, args: Any, shape: Sequence[int]) -> int | None:
        """Along which axis the argument of a module has its units; None where it was not measured last.

        Parameters
        ----------
        shape
            What the module returned. An activation function leaves units where they were.
        """
        last = None if self._tensor is None else self._tensor()
        if last is None or not isinstance(args, tuple) or not args or args[0] is not last:
            return None
        return self._axis if tuple(last.shape) == tuple(shape) else None

    def _is_known(self, args: Any, tensor: torch.Tensor) -> bool:
        """Whether `tensor` holds the values that were measured last."""
        last = None if self._tensor is None else self._tensor()
        if last is None or not isinstance(args, tuple) or not args or args[0] is not last:
            return False
        return _same_memory(last, tensor) and tensor._version == self._version  # noqa: SLF001

    def forget(self) -> None:
        """Something else is measured, of which nothing is kept."""
        self._tensor = None

    def _repeat(self, key: TensorKey) -> bool:
        """Add the statistics of the last tensor once more, without its channels, if they are still there."""
        recorder, block = self._recorder, self._block
        if block is not None:
            recorder.add([key], _without_channels(block))
            return True
        generation, row = self._place
        if generation != recorder.measured.generation:
            return False
        recorder.measured.repeat(row)
        recorder.add_measured([key])
        return True


def _without_channels(block: StatsBlock) -> StatsBlock:
    none = np.zeros(0, np.float32)
    return replace(block, channel_offsets=np.zeros(2, np.int64), channel_zero_frac=none, channel_mean=none)


def _same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same elements of the same memory."""
    return (
        type(other) is torch.Tensor
        and not other.is_inference()
        and one.layout is other.layout is torch.strided
        and one.dtype is other.dtype
        and one.device == other.device
        and one.numel() == other.numel()
        and one.data_ptr() == other.data_ptr()
        and one.is_contiguous()
        and other.is_contiguous()
        and one.is_neg() == other.is_neg()
    )
