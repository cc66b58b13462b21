"""How far one optimizer step moves each parameter: ``|dw| / |w|``.

Large parameters are represented by evenly spread blocks of elements, so neither memory nor time
grows with the model. What is looked at of all parameters is copied into one piece of memory before
the step: one call for ordinary ones in memory, a few operations for others, such as those on a GPU, where
one for each parameter would be dear.
"""

from __future__ import annotations

from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tdbg_lab.capture.pytorch.gpu_updates import GpuUpdates, sampled_there
from tdbg_lab.capture.pytorch.measuring import on_gpu, record_late_numbers
from tdbg_lab.capture.pytorch.packed import is_packed, unpacked
from tdbg_lab.capture.pytorch.values import PLAIN, local
from tdbg_lab.capture.pytorch.zero import gradient_of, is_divided
from tdbg_lab.records import Kind
from tdbg_lab.stats.engine import engine
from tdbg_lab.stats.layouts import address_of, is_freed
from tdbg_lab.stats.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.plan import Membership
    from tdbg_lab.capture.pytorch.naming import ParameterSite
    from tdbg_lab.capture.pytorch.parameters import Live
    from tdbg_lab.records import TensorKey

__all__ = ["SAMPLED_ELEMENTS", "UpdateProbe", "sampled"]

SAMPLED_ELEMENTS = 2048
"""Elements looked at in a parameter that has more: the ratio of norms of so many independent values
strays by about two parts in a hundred."""
_BLOCK = 64


def sampled(value: torch.Tensor) -> torch.Tensor:
    """All elements of a tensor (of this rank's shard), or evenly spread blocks of a large one; 1-D."""
    value = local(value).detach()
    if is_packed(value):
        value = unpacked(value)
    n = value.numel()
    stride = n // SAMPLED_ELEMENTS  # of blocks
    if stride < 2 or not value.is_contiguous():
        return value.reshape(-1)
    return value.as_strided((n // _BLOCK // stride, _BLOCK), (stride * _BLOCK, 1)).reshape(-1)


def _plan(n: int) -> tuple[int, int, int]:
    """(blocks, width, step) of what `sampled` takes of `n` elements that lie behind each other."""
    stride = n // SAMPLED_ELEMENTS
    return (1, n, 0) if stride < 2 else (n // _BLOCK // stride, _BLOCK, stride * _BLOCK)


class _InMemory:
    """Ordinary float32 parameters in the memory of the processor, around one step."""

    def __init__(self) -> None:
        self.keys: list[TensorKey] = []
        self.values: list[torch.Tensor] = []
        self.addresses: list[int] = []
        self._lengths: list[int] = []
        self._samples: Samples | None = None

    def copy(self) -> None:
        """Note what the parameters are."""
        self._lengths = [value.numel() for value in self.values]
        self._samples = Samples(self.addresses, [_plan(n) for n in self._lengths])

    def ratios(self) -> list[float]:
        """How far each has moved since `copy`, in units of its size then."""
        addresses = [_address(value) for value in self.values]
        lengths = [value.numel() for value in self.values]
        if self._samples is None or 0 in addresses or lengths != self._lengths:
            return []  # somebody exchanged what they hold
        found: list[float] = self._samples.ratios(addresses).tolist()
        return found


def _address(value: torch.Tensor) -> int:
    """Where an ordinary float32 parameter lies in the memory of the processor; 0 if it does not."""
    ordinary = value.dtype is torch.float32 and value.is_cpu and type(value) in PLAIN
    return address_of(value) if ordinary and value.is_contiguous() and not value.is_neg() else 0


class _Watched:
    """Other parameters of one device around one step."""

    def __init__(self) -> None:
        self.keys: list[TensorKey] = []
        self.values: list[torch.Tensor] = []
        self.lengths: list[int] = []
        self.old: torch.Tensor | None = None

    def copy(self) -> None:
        """Note what the parameters are."""
        self.old = self._now()

    def _now(self) -> torch.Tensor:
        """What is looked at of all of them, one behind the other; real numbers of 32 bits at least."""
        pieces = [sampled(value) for value in self.values]
        self.lengths = [piece.numel() for piece in pieces]
        flat = torch.cat(pieces)
        return flat if flat.dtype.itemsize >= 4 else flat.float()

    def ratios(self) -> Sequence[float] | torch.Tensor:
        """How far each has moved since `copy`, in units of its size then; on a GPU, 1-D and there."""
        if self.old is None:
            return []
        lengths, now = self.lengths, self._now()
        if lengths != self.lengths:  # somebody exchanged what they hold
            return []
        if not now.is_cpu:
            ratios = _norms_on_device(now - self.old, lengths) / _norms_on_device(self.old, lengths)
            return ratios if on_gpu(ratios) else ratios.tolist()
        with np.errstate(all="ignore"):
            found: list[float] = (_norms(now - self.old, lengths) / _norms(self.old, lengths)).tolist()
        return found


def _norms(flat: torch.Tensor, lengths: Sequence[int]) -> NDArray[np.float64]:
    """L2 norms of the pieces of these lengths, none of which is 0."""
    squares = np.square(flat.numpy(), dtype=np.float64)
    norms: NDArray[Any] = np.sqrt(np.add.reduceat(squares, np.cumsum([0, *lengths[:-1]])))
    return norms


def _norms_on_device(flat: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
    return torch.stack(torch._foreach_norm(flat.split_with_sizes(lengths)))  # noqa: SLF001


def _named(
    keys: list[TensorKey], reached: list[bool] | None, ratios: Sequence[float] | NDArray[Any]
) -> tuple[list[TensorKey], list[float]]:
    """Keys and ratios of those that were reached, or of all; of none where there are no ratios."""
    found: list[float] = np.asarray(ratios).tolist()
    if reached is None or not found:
        return keys[: len(found)], found
    return list(compress(keys, reached)), list(compress(found, reached))


class UpdateProbe:
    """Copies before the step, compares after it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, tuple[TensorKey, Membership]] = {}
        self._closure = False
        """Whether gradients are computed within the step."""
        self._here = _InMemory()
        self._elsewhere: dict[torch.device, _Watched] = {}
        self._there: dict[torch.device, GpuUpdates] = {}

    @torch.no_grad()
    def before(self, live: Live, due: int, owned: Collection[int], *, closure: bool) -> None:
        """Of the parameters `live`, copy those in `owned` (their ``id``) whose ratio is due.

        Parameters
        ----------
        closure
            Whether gradients are computed within the step: who has one now says nothing.
        """
        self._here, self._elsewhere, self._closure = _InMemory(), {}, closure
        for one in self._there.values():
            one.clear()
        quick = engine().ready
        for site, value in live:
            if id(value) not in owned or not value.requires_grad:
                continue
            if not closure and gradient_of(value) is None:
                continue
            key, membership = self._known.get(site.name) or self._key(site)
            if not membership.mask & due:
                continue
            self._watch(key, value, quick=quick)
        for held in self._all():
            held.copy()

    def _watch(self, key: TensorKey, value: torch.Tensor, *, quick: bool) -> None:
        divided = is_divided(value)
        address = _address(value) if quick and not divided else 0
        if address:
            self._here.keys.append(key)
            self._here.values.append(value)
            self._here.addresses.append(address)
        elif not divided and (memory := sampled_there(value)) is not None:
            there = self._there.get(value.device)
            if there is None:
                there = self._there[value.device] = GpuUpdates(value.device, _plan)
            there.add(key, value, memory)
        elif _measurable(part := local(value)):
            watched = self._elsewhere.get(part.device)
            if watched is None:
                watched = self._elsewhere[part.device] = _Watched()
            watched.keys.append(key)
            watched.values.append(value)

    @torch.no_grad()
    def after(self) -> None:
        """Add one number per copied parameter that has a gradient."""
        held = self._all()
        self._here, self._elsewhere = _InMemory(), {}
        for one in held:
            ratios, recorder = one.ratios(), self._engine.recorder
            reached = [gradient_of(value) is not None for value in one.values] if self._closure else None
            if isinstance(ratios, torch.Tensor):
                record_late_numbers(recorder, ratios, partial(_named, one.keys, reached))
            else:
                recorder.add_scalars(*_named(one.keys, reached, ratios))
        for there in self._there.values():
            there.clear()

    def _all(self) -> list[_InMemory | _Watched | GpuUpdates]:
        """What holds some parameters."""
        held: list[_InMemory | _Watched | GpuUpdates]
        held = [self._here, *self._elsewhere.values(), *self._there.values()]
        return [one for one in held if one.keys]

    def _key(self, site: ParameterSite) -> tuple[TensorKey, Membership]:
        name = f"optimizer/update_ratio/{site.name}"
        found = self._known[site.name] = self._engine.key(name, Kind.OPTIMIZER, path=site.path)
        return found


def _measurable(value: torch.Tensor) -> bool:
    return (
        value.is_floating_point()
        and value.layout is torch.strided
        and value.numel() > 0
        and not is_freed(value)
    )
