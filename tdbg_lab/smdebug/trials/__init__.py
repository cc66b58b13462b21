"""Reading what was saved: ``create_trial`` and what it gives."""

from __future__ import annotations

from tdbg_lab.smdebug.trials.local_trial import LocalTrial
from tdbg_lab.smdebug.trials.profiler_trial import ProfilerTrial
from tdbg_lab.smdebug.trials.s3_trial import S3Trial
from tdbg_lab.smdebug.trials.trial import Trial
from tdbg_lab.smdebug.trials.utils import create_trial

__all__ = ["LocalTrial", "ProfilerTrial", "S3Trial", "Trial", "create_trial"]
