"""Numbers that lie on a device, held there until many are read at once.

To read one waits until the device is through with all that it was told before: done at each step, as for
a loss, device and processor would work in turn.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import torch

from tdbg_lab.stats.block import empty_block
from tdbg_lab.stats.device import Results
from tdbg_lab.stats.fetching import fetched
from tdbg_lab.stats.layouts import Part

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["HeldNumbers"]

log = logging.getLogger(__name__)


class HeldNumbers:
    """Holds numbers of devices that are not CUDA's, of which `tdbg_lab.stats.device.DeviceBuffer` knows more.

    Examples
    --------
    >>> held = HeldNumbers()
    >>> first = held.add_numbers(loss)
    >>> held.send().read().numbers[first]
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._kept: list[Tensor] = []
        self._n = 0

    def add_numbers(self, values: Tensor) -> int:
        """Hold real numbers, which may change at once; the place that the first one will have."""
        first = self._n
        self._kept.append(values.detach().reshape(-1).clone())
        self._n += values.numel()
        return first

    def send(self) -> Arrived | None:
        """Read what is held, and wait for it; None when nothing is. Never raises: what fails is lost."""
        if not self._kept:
            return None
        kept, self._kept, self._n = self._kept, [], 0
        try:
            numbers = torch.cat([part.values.double() for part in fetched([Part(one, None) for one in kept])])
        except Exception:
            log.warning("Numbers of a device could not be read.", exc_info=True)
            numbers = torch.empty(0)
        return Arrived(Results(empty_block(0), numbers.numpy(), np.zeros(0, np.uint8)))


class Arrived:
    """What was read already."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def arrived(self) -> bool:
        """It has."""
        return True

    def wait(self, timeout_s: float) -> None:
        """There is nothing to wait for."""

    def read(self) -> Results:
        """What has arrived."""
        return self._results
