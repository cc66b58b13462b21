"""A finding as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.store.jsonable import encodable

if TYPE_CHECKING:
    from tdbg_lab.actions.base import ActionContext
    from tdbg_lab.records import Finding

__all__ = ["body_of", "title_of"]


def title_of(finding: Finding, context: ActionContext) -> str:
    """One line, without line breaks whatever the run is called."""
    title = f"[{finding.severity}] {finding.rule} in {context.run_name or context.run_path.name}"
    return encodable(" ".join(title.split())[:200])


def body_of(finding: Finding, context: ActionContext) -> str:
    """Plain text: what, where, the numbers, what to do."""
    lines = [finding.message, "", f"Run: {context.run_name or context.run_path.name} ({context.run_path})"]
    lines.append(f"Steps: {finding.step_first} to {finding.step_last}")
    if finding.tensor:
        lines.append(f"Tensor: {finding.tensor}")
    lines += [f"{key}: {_number(value)}" for key, value in finding.evidence.items()]
    if finding.advice:
        lines += ["", "What to do:", *(f"- {advice}" for advice in finding.advice)]
    return encodable("\n".join(lines))


def _number(value: float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
