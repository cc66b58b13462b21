"""``/tdbg/runs/{id}/tensors`` and ``/tdbg/runs/{id}/steps``: what there is to look at."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Mode, Severity
from tdbg_lab.server.digest import heard
from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler

if TYPE_CHECKING:
    from tdbg_lab.run import Run
    from tdbg_lab.server.wire import TensorJson

__all__ = ["handlers"]

MAX_STEPS = 2000
_SEVERITIES = tuple(Severity)  # the worst last


class TensorsHandler(TdbgHandler):
    """The tensors of a run."""

    @web.authenticated
    @authorized
    async def get(self, run_id: str) -> None:
        """Answer tensors in order of first appearance, and the range of steps."""
        await self.answer(await self.read(run_id, _tensors))


class StepsHandler(TdbgHandler):
    """The steps of a run."""

    @web.authenticated
    @authorized
    async def get(self, run_id: str) -> None:
        """Answer at most 2000 steps: evenly chosen, first and last kept."""
        mode = _mode(self.get_query_argument("mode", ""))
        steps = await self.read(run_id, lambda run: run.steps(mode=mode))
        if len(steps) > MAX_STEPS:
            steps = steps[np.linspace(0, len(steps) - 1, MAX_STEPS).astype(np.int64)]
        await self.answer({"steps": steps})


def _mode(text: str) -> Mode | None:
    if not text:
        return None
    try:
        return Mode(text)
    except ValueError:
        raise ConfigError(f"mode is {text[:50]!r}; expected train, eval or predict.") from None


def _tensors(run: Run) -> dict[str, Any]:
    severities: defaultdict[str, list[Severity]] = defaultdict(list)
    for finding in heard(run, run.findings()):
        severities[finding.tensor].append(finding.severity)
    tensors: list[TensorJson] = [
        {
            "name": key.name,
            "kind": str(key.kind),
            "module": key.module,
            "dtype": key.dtype,
            "shape": list(key.shape),
            "collections": list(key.collections),
            "findings": len(severities[key.name]),
            "severity": max(severities[key.name], key=_SEVERITIES.index, default=None),
        }
        for key in run.tensors()
    ]
    steps = run.steps()
    first, last = (int(steps[0]), int(steps[-1])) if len(steps) else (-1, -1)
    return {"tensors": tensors, "steps": {"first": first, "last": last, "count": len(steps)}}


handlers: list[Route] = [
    (rf"/tdbg/runs/{RUN_ID}/tensors", TensorsHandler),
    (rf"/tdbg/runs/{RUN_ID}/steps", StepsHandler),
]
