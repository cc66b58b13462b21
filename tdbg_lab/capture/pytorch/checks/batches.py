"""A digest of the inputs of each step: tells whether two steps, epochs or ranks saw the same data."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
import torch
from torch import nn

from tdbg_lab.capture.checksum import checksum, checksum_at, row_stride
from tdbg_lab.capture.notes import check_key
from tdbg_lab.capture.pytorch.measuring import is_late, record_late_numbers
from tdbg_lab.capture.pytorch.values import readable, tensors_in
from tdbg_lab.capture.tokens import TOKEN_FACTS, commonest_token
from tdbg_lab.records import Mode
from tdbg_lab.stats.tensors import summarize_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.records import TensorKey

__all__ = ["BatchWatch", "digest"]

_DESCRIBED = 65_536
"""Elements of a tensor that is described at saved steps, about."""
_MAX_TENSORS = 4
_BATCH = check_key("batch")
_INPUT = (check_key("input_size"), check_key("input_min"), check_key("input_max"))
_TOKEN_TYPES = (torch.int64, torch.int32)
_NUMPY_FLOATS = (torch.float32, torch.float64)
_LEAST_SQUARE = 1e-24
_TRAIN = Mode.TRAIN
_TENSOR = torch.Tensor


class BatchWatch:
    """One number a step for the inputs of its train forwards. Inputs on another device are not looked at.

    `acted` is told how many forwards were given a single row, where there were several before a step.

    At saved steps the first input of more than a number is described: its size and limits, or where the
    model embeds whole numbers, the commonest of them, its share, and how many make a row; the latter in
    evaluations, too.

    Of the forwards that an optimizer asks for by its closure only the first counts: how many there are, it
    decides anew at each step.
    """

    __slots__ = (
        "_acted",
        "_digest",
        "_embeds",
        "_engine",
        "_given",
        "_repeats",
        "_rows",
        "_seen",
        "_single",
        "closing",
    )

    def __init__(self, engine: Engine, acted: Callable[[int], None]) -> None:
        self._engine = engine
        self._acted = acted
        self._digest = 0
        self._seen = False
        self._single = 0
        """Forwards of this step that were given one row of numbers: states of an environment."""
        self._rows = 0
        """Those, and others that were given a batch of one row."""
        self.closing = False
        """Whether an optimizer that was given a closure is stepping."""
        self._repeats = False
        """Whether it has called the closure already."""
        self._given: dict[tuple[int, int], ref[torch.Tensor]] = {}
        """Tensors that forwards of this step were given, by ``id`` and version."""
        self._embeds: dict[int, bool] = {}
        """Whether a root has an embedding, by its id."""

    def forward(self, module: nn.Module, inputs: Any) -> None:
        """A root is called with these arguments."""
        engine = self._engine
        trains = engine.recorder.mode is _TRAIN and torch.is_grad_enabled()
        if not trains and not engine.mask & engine.costly:
            return
        tensors = inputs if len(inputs) == 1 and type(inputs[0]) is _TENSOR else tensors_in(inputs)
        if tensors and engine.mask & engine.costly:
            self._look(module, tensors, trains=trains)
        if not trains or self._repeats:
            return
        self._repeats = self.closing
        if tensors and tensors[0].is_floating_point():
            shape = tensors[0].shape
            if len(shape) == 1:
                self._single += 1
                self._rows += 1
            elif shape and shape[0] == 1:
                self._rows += 1
        for tensor in tensors if len(tensors) <= _MAX_TENSORS else tensors[:_MAX_TENSORS]:
            if tensor.grad_fn is not None or not readable(tensor):
                continue  # what another model computed is no data
            place = id(tensor), -1 if tensor.is_inference() else tensor._version  # noqa: SLF001
            known = self._given.get(place)
            if known is None or known() is not tensor:  # else another forward of this step had it
                self._given[place] = ref(tensor)
                self._digest = digest(tensor, self._digest)
                self._seen = True

    def _look(self, module: nn.Module, tensors: Sequence[torch.Tensor], *, trains: bool) -> None:
        tensor = next((one for one in tensors if one.ndim), tensors[0])  # not the time, or a temperature
        if tensor.layout is not torch.strided or (tensor.is_floating_point() and not trains):
            return  # rows of a sparse one cannot be picked
        tensor = tensor.detach()
        if tensor.is_floating_point():
            self._describe(tensor, embeds=tensor.ndim == 2 and self._reads(module))
        elif tensor.dtype in _TOKEN_TYPES and tensor.ndim > 1 and readable(tensor) and self._reads(module):
            self._count(tensor)

    def _reads(self, module: nn.Module) -> bool:
        """Whether a root embeds whole numbers: others may be given counts, most of which are zero."""
        known = self._embeds.get(id(module))
        if known is None:
            known = any(isinstance(one, nn.Embedding | nn.EmbeddingBag) for one in module.modules())
            self._embeds[id(module)] = known
        return known

    def _count(self, tensor: torch.Tensor) -> None:
        """Note the commonest token of some rows, and its share. A mask of zeros and ones has no tokens."""
        some = tensor[:: row_stride(len(tensor), tensor.numel(), _DESCRIBED)].numpy()
        facts = commonest_token(some, tensor.numel() // len(tensor)) if len(some) else None
        if facts is not None:
            self._engine.recorder.add_scalars(TOKEN_FACTS, facts)

    def _describe(self, tensor: torch.Tensor, *, embeds: bool) -> None:
        """Note the size and the limits of the first input, by some of its rows.

        Columns of whole numbers, in the input of a model that embeds, are what it looks up.
        """
        some = tensor[:: row_stride(len(tensor), tensor.numel(), _DESCRIBED)] if tensor.ndim else tensor
        if embeds and is_late(some):
            return  # which columns are whole numbers is known only when the device is through
        if embeds:
            some = some[:, ~((some >= 0) & (some == some.round())).all(0)]
            if not some.numel():
                return
        if is_late(some):
            record_late_numbers(self._engine.recorder, _size_and_limits(some), _of_input)
            return
        self._engine.recorder.add_scalars(_INPUT, _described(some))

    def before_step(self, *, closure: bool) -> None:
        """The forwards of the step are done, or come by a closure: then call it again after the step."""
        self.closing, self._repeats = closure, False
        if self._seen and not closure:
            if self._single <= 1:  # episodes of one who acts are as like each other as they are
                self._engine.recorder.add_scalar(_BATCH, float(self._digest))
            if self._rows > 1:
                self._acted(self._rows)
            self._digest, self._seen, self._single, self._rows = 0, False, 0, 0
            self._given.clear()


def _described(some: torch.Tensor) -> tuple[float, float, float]:
    """Root mean square, least and greatest of the finite values, in memory."""
    if readable(some) and some.dtype in _NUMPY_FLOATS and some.numel() and not some.is_neg():
        values = some.contiguous().numpy().ravel()
        square = float(np.einsum("i,i->", values, values))  # warns of nothing, in one thread
        if _LEAST_SQUARE < square < inf:  # else some are not finite, or too small or large to be squared
            return (square / len(values)) ** 0.5, float(values.min()), float(values.max())
    block = summarize_tensors([some.contiguous()])
    size = float(block.l2[0]) / max(1, int(block.finite_count[0])) ** 0.5
    return size, float(block.min[0]), float(block.max[0])


def _size_and_limits(some: torch.Tensor) -> torch.Tensor:
    """Root mean square, least and greatest of the finite values, ``(3,) float64``, on their device."""
    finite, values = some.isfinite(), some.double()
    square = torch.where(finite, values, 0.0).square().sum() / finite.sum().clamp(min=1)
    low, high = torch.where(finite, values, torch.inf).min(), torch.where(finite, values, -torch.inf).max()
    return torch.stack([square.sqrt(), low, high])


def _of_input(values: NDArray[Any]) -> tuple[Sequence[TensorKey], Sequence[float]]:
    return _INPUT, values.tolist()


def digest(tensor: torch.Tensor, start: int = 0) -> int:
    """A checksum over shape and values, going on from `start`.

    Of those that numpy does not know, such as bfloat16, over their bytes.
    """
    if tensor.is_contiguous():
        found = checksum_at(tensor.data_ptr(), tensor.shape, tensor.itemsize, start)
        if found is not None:
            return found
    tensor = tensor.detach() if tensor.requires_grad else tensor
    try:
        values = tensor.numpy()
    except TypeError:
        values = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    return checksum(values, start)
