"""MXNet is retired: there is no hook, and importing this says so."""

from __future__ import annotations

from tdbg_lab.errors import MissingDependencyError

raise MissingDependencyError(
    "MXNet is retired, so there is no hook for it: "
    "runs that smdebug recorded with MXNet open with tdbg_lab.smdebug.trials.create_trial(path) "
    "or tdbg_lab.open_run(path)."
)
