"""Tensors of devices that are not asked to measure them, brought to main memory.

Apple's devices have no float64, in which sums are added up, and share their memory with the processor;
of others as little is known. Reading from a device waits until it is through with all that it was
told before; so small tensors of one type travel together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tdbg_lab.stats.layouts import Part

__all__ = ["fetched"]

_TOGETHER = (torch.float32, torch.float16, torch.bfloat16)
"""Types that every device can lay side by side."""
_MOST = 1 << 22
"""Elements that travel together at most: they are copied on the device before."""


def fetched(parts: Sequence[Part]) -> list[Part]:
    """The same dense parts in main memory, in their order."""
    found: dict[int, Part] = {}
    for rows in _loads(parts):
        values = [parts[row].values.detach() for row in rows]
        if len(rows) == 1:
            arrived = [values[0].cpu()]
        else:
            sizes = [one.numel() for one in values]
            together = torch.cat([one.reshape(-1) for one in values]).cpu()
            arrived = [
                flat.view(one.shape) for flat, one in zip(torch.split(together, sizes), values, strict=True)
            ]
        found |= {row: parts[row]._replace(values=one) for row, one in zip(rows, arrived, strict=True)}
    return [found[row] for row in range(len(parts))]


def _loads(parts: Sequence[Part]) -> Iterator[list[int]]:
    """Rows of parts that travel together."""
    waiting: dict[torch.dtype, list[int]] = {}
    room: dict[torch.dtype, int] = {}
    for row, part in enumerate(parts):
        kind, size = part.values.dtype, part.values.numel()
        if kind not in _TOGETHER or size > _MOST:
            yield [row]
            continue
        if size > room.get(kind, 0) and kind in waiting:
            yield waiting.pop(kind)
        if kind not in waiting:
            waiting[kind], room[kind] = [], _MOST
        waiting[kind].append(row)
        room[kind] -= size
    yield from waiting.values()
