"""A JupyterLab of one's own and a Chromium that looks at it, for benchmarks of what the browser shows."""

from chromium.lab import Lab, Training
from chromium.page import Page

__all__ = ["Lab", "Page", "Training"]
