"""Where a store stands: whether training has ended, whether a directory is free."""

from __future__ import annotations

from tdbg_lab.smdebug.core.access_layer.utils import check_dir_exists, has_training_ended, training_has_ended

__all__ = ["check_dir_exists", "has_training_ended", "training_has_ended"]
