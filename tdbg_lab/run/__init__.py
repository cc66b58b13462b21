"""Reading a run: names, steps, values, statistics, samples, spans, findings - while it grows.

As a program, ``python -m tdbg_lab.run script.py``, it captures the script: so the names load on first use,
before anything that the script may configure is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.lazy import on_demand

if TYPE_CHECKING:
    from tdbg_lab.run.opening import list_runs, open_run
    from tdbg_lab.run.reading import Run
    from tdbg_lab.store.info import RunInfo
    from tdbg_lab.store.listing import RunSummary
    from tdbg_lab.store.results import HistogramSeries, Overview, Series
    from tdbg_lab.store.tensor import Tensor

__all__ = [
    "HistogramSeries",
    "Overview",
    "Run",
    "RunInfo",
    "RunSummary",
    "Series",
    "Tensor",
    "list_runs",
    "open_run",
]

__getattr__ = on_demand(
    __name__,
    {
        "HistogramSeries": "tdbg_lab.store.results",
        "Overview": "tdbg_lab.store.results",
        "Run": "tdbg_lab.run.reading",
        "RunInfo": "tdbg_lab.store.info",
        "RunSummary": "tdbg_lab.store.listing",
        "Series": "tdbg_lab.store.results",
        "Tensor": "tdbg_lab.store.tensor",
        "list_runs": "tdbg_lab.run.opening",
        "open_run": "tdbg_lab.run.opening",
    },
)
