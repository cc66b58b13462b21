"""Charts for notebooks: how busy the machine was, and how long steps and phases took.

They take the readers of `tdbg_lab.smdebug.profiler` and the arguments that the predecessor's had.
Each is a Plotly figure: ``chart.figure``; in a notebook it shows itself, and ``update_data`` draws
there what is new.
"""

from __future__ import annotations

from tdbg_lab.smdebug.profiler.analysis.notebook_utils.heatmap import Heatmap
from tdbg_lab.smdebug.profiler.analysis.notebook_utils.metrics_histogram import MetricsHistogram
from tdbg_lab.smdebug.profiler.analysis.notebook_utils.step_histogram import StepHistogram
from tdbg_lab.smdebug.profiler.analysis.notebook_utils.step_timeline_chart import StepTimelineChart
from tdbg_lab.smdebug.profiler.analysis.notebook_utils.timeline_charts import TimelineCharts
from tdbg_lab.smdebug.profiler.analysis.notebook_utils.training_job import TrainingJob

__all__ = [
    "Heatmap",
    "MetricsHistogram",
    "StepHistogram",
    "StepTimelineChart",
    "TimelineCharts",
    "TrainingJob",
]
