"""Whether this machine has a GPU, told without loading a framework."""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["gpu_seen"]


def gpu_seen() -> bool:
    """Whether the driver of an NVIDIA GPU is there."""
    return Path("/proc/driver/nvidia/gpus").is_dir() or shutil.which("nvidia-smi") is not None
