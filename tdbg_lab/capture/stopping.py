"""Why a training is asked to stop, and what is done before it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.records import Finding
    from tdbg_lab.store import Request

__all__ = ["StopReason", "save_first"]


class StopReason(str):
    """Why to stop, as one sentence; what the callbacks ``checkpoint`` and ``on_stop`` are given.

    Attributes
    ----------
    step
        Steps completed.
    by
        Who asked: ``rule dead_relu``, the name of a person.
    finding
        The finding behind it, None when a person asked.
    """

    __slots__ = ("by", "finding", "step")

    step: int
    by: str
    finding: Finding | None

    def __new__(cls, text: str, *, step: int, by: str = "", finding: Finding | None = None) -> Self:
        """Make one of its text."""
        made = super().__new__(cls, text)
        made.step, made.by, made.finding = step, by, finding
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    @classmethod
    def of(cls, request: Request, engine: Engine) -> StopReason:
        """The reason in a request; the finding it names is looked up in the run."""
        text = request.reason or "a stop was requested"
        finding = None
        identity = request.arguments.get("finding")
        if identity:
            known = engine.guard.run("control", _findings, engine) or ()
            finding = next((one for one in known if one.id == identity), None)
        return cls(text, step=engine.step, by=request.by, finding=finding)


def save_first(engine: Engine, checkpoint: Callable[[StopReason], object] | None, reason: StopReason) -> str:
    """Call the user's `checkpoint`; what it raises is told, and the stop goes on.

    Returns
    -------
    str
        What to add to the answer.
    """
    if checkpoint is None:
        return ""
    try:
        checkpoint(reason)
    except Exception as error:  # noqa: BLE001 - the user's code; the stop was asked for all the same
        text = f"the checkpoint callback failed ({type(error).__name__}: {error})"[:500]
        engine.guard.notice("checkpoint", text)
        return f"; {text}"
    return "; the checkpoint callback was called first"


def _findings(engine: Engine) -> list[Finding]:
    from tdbg_lab.store import read_findings

    return read_findings(engine.folder.path)
