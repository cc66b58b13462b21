"""Made-up runs for tests, demos and work on the user interface."""

from __future__ import annotations

from tdbg_lab.testing.blocks import block_of
from tdbg_lab.testing.fake import FakeTraining, fake_run

__all__ = ["FakeTraining", "block_of", "fake_run"]
