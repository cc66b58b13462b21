"""Whether the Triton kernels can be called now. One answer a process."""

from __future__ import annotations

import logging
import threading
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch

from tdbg_lab.background import start_thread
from tdbg_lab.stats.dtypes import float8_tables

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["TritonKernels", "triton_kernels"]

log = logging.getLogger(__name__)


@cache
def triton_kernels() -> TritonKernels:
    """Those of this process."""
    return TritonKernels()


class TritonKernels:
    """Their readiness, and the tables that they read. Safe from any thread.

    Attributes
    ----------
    broken
        They cannot be used here: no Triton, no C compiler for it, a device that it does not know.
    """

    def __init__(self) -> None:
        self.broken = find_spec("triton") is None
        self._beginning = threading.Lock()
        self._begun = self._done = False
        self._tables: dict[torch.device, Tensor] = {}

    def usable(self) -> bool:
        """Whether to call them now: not while a thread compiles them."""
        return not self.broken and self._begun is self._done

    def warm_up(self) -> None:
        """Compile, in a thread and once, what float32, bfloat16 and float16 need, or load it from a cache."""
        with self._beginning:
            if self._begun or self.broken:
                return
            self._begun = True
        start_thread(self._compile, "tdbg-lab GPU warm-up")

    def _compile(self) -> None:
        """Nothing is launched: another thread may be about to capture a graph."""
        try:
            from tdbg_lab.stats import cuda, cuda_samples

            cuda.compile_kernels()
            cuda_samples.compile_kernels()
        except Exception:
            self.broken = True
            log.warning("The Triton kernels cannot be used; torch operations measure.", exc_info=True)
        self._done = True

    def tables(self, device: torch.device) -> Tensor:
        """``(5, 256) float32`` on the device, see `tdbg_lab.stats.dtypes.float8_tables`."""
        found = self._tables.get(device)
        if found is None:
            found = self._tables[device] = torch.from_numpy(float8_tables().copy()).to(device)
        return found
