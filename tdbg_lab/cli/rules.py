"""``tdbg rules``: check a run against the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tdbg_lab.cli.find import RUN, find_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.records import Finding, RuleState

__all__ = ["command"]

FAILED = 1
LEVELS = ("notice", "warning", "critical")


@click.command("rules")
@RUN
@click.option("--rule", "names", multiple=True, help="Check this rule only; may be given again.")
@click.option("--recorded", is_flag=True, help="Show what was found during training instead of checking now.")
@click.option(
    "--fail-on",
    type=click.Choice(LEVELS),
    help="Exit with 1 when there is a finding of this severity or a worse one.",
)
def command(run: str, names: Sequence[str], fail_on: str | None, *, recorded: bool) -> int:
    """Check what RUN has recorded against the rules, and show the findings."""
    from tdbg_lab.rules import check_run

    opened = find_run(run)
    if recorded:
        findings, states = opened.findings(), opened.rule_states()
    else:
        findings, states = check_run(opened, list(names) or "default")
    _show(findings, states)
    worst = max((LEVELS.index(str(finding.severity)) for finding in findings), default=-1)
    return FAILED if fail_on is not None and worst >= LEVELS.index(fail_on) else 0


def _show(findings: Sequence[Finding], states: Sequence[RuleState]) -> None:
    from tdbg_lab.cli.table import clean, table

    if states:
        rows = [
            [state.rule, str(state.status).replace("_", " "), str(state.step_checked), state.reason or "-"]
            for state in states
        ]
        click.echo(table(["RULE", "STATUS", "CHECKED TO STEP", "REASON"], rows))
    else:
        click.echo("No rules have looked at this run.")
    for finding in findings:
        where = f"steps {finding.step_first}-{finding.step_last}"
        click.echo(f"\n{str(finding.severity).upper()} {finding.rule} ({where})")
        click.echo(f"  {clean(finding.message, 1000)}")
        for advice in finding.advice:
            click.echo(f"  - {clean(advice, 1000)}")
