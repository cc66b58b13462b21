"""``tdbg rules``: check a run against the rules, watch many, tell what rules there are."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tdbg_lab.cli.find import RUN, find_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tdbg_lab.records import Finding, RuleState
    from tdbg_lab.rules import Rule

__all__ = ["command"]

FAILED = 1
LEVELS = ("notice", "warning", "critical")


class RulesGroup(click.Group):
    """``tdbg rules RUN`` is short for ``tdbg rules check RUN``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``check`` in front of what names no command."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["check", *args]
        return super().parse_args(ctx, args)


def choosing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that choose rules and thresholds."""
    for option in (
        click.option("--param", "params", multiple=True, metavar="RULE.NAME=VALUE", help="A threshold."),
        click.option(
            "--config",
            type=click.Path(exists=True, dir_okay=False),
            help="YAML or JSON file that changes the default rules: names with true, false or thresholds.",
        ),
        click.option("--rule", "names", multiple=True, help="This rule only; may be given again."),
    ):
        command = option(command)
    return command


@click.group("rules", cls=RulesGroup, short_help="Check runs against the rules, now or while they go on.")
def command() -> None:
    """Check runs against the rules: tdbg rules RUN, or one of the commands below."""


@command.command("check", short_help="Check what RUN has recorded against the rules.")
@RUN
@choosing
@click.option("--recorded", is_flag=True, help="Show what was found during training instead of checking now.")
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Do the checks on a Dask cluster: tcp://host:8786.",
)
@click.option(
    "--fail-on",
    type=click.Choice(LEVELS),
    help="Exit with 1 when there is a finding of this severity or a worse one.",
)
def check(run: str, fail_on: str | None, scheduler: str | None, *, recorded: bool, **chosen: Any) -> int:
    """Check what RUN has recorded against the rules, and show the findings."""
    from tdbg_lab.rules import check_run

    opened = find_run(run)
    if recorded:
        findings, states = opened.findings(), opened.rule_states()
    elif scheduler is not None:
        from tdbg_lab.rules.cluster import check_on_cluster

        findings, states = check_on_cluster([opened.path], _chosen(**chosen), scheduler)[opened.path]
    else:
        findings, states = check_run(opened, _chosen(**chosen))
    _show(findings, states)
    worst = max((LEVELS.index(str(finding.severity)) for finding in findings), default=-1)
    return FAILED if fail_on is not None and worst >= LEVELS.index(fail_on) else 0


@command.command("watch", short_help="Check every running run below ROOT while it goes on.")
@click.argument("root", type=click.Path(exists=True, file_okay=False, path_type=Path))
@choosing
@click.option("--stop-on", type=click.Choice(LEVELS), help="Ask training to stop from this severity on.")
def watch(root: Path, stop_on: str | None, **chosen: Any) -> None:
    """Check every running run below ROOT while it goes on, until interrupted.

    Runs that have a rule runner of their own are left to it.
    """
    from tdbg_lab.records import Severity
    from tdbg_lab.rules.waiting import wakes
    from tdbg_lab.rules.watching import Watch

    rules = _chosen(**chosen)
    watching = Watch(root, lambda: rules, stop_on=Severity(stop_on) if stop_on else None)
    click.echo(f"{len(rules)} rules look after the runs below {root}; Ctrl+C ends it.")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    watching.run(wakes(root, stop), _tell)


@command.command("list")
def list_() -> None:
    """List every rule there is."""
    from tdbg_lab.cli.table import table
    from tdbg_lab.rules import list_rules
    from tdbg_lab.rules.registry import DEFAULT

    known = sorted(list_rules(), key=lambda cls: (cls.group, cls.name))
    rows = [[cls.name, cls.group, "yes" if cls.name in DEFAULT else "-", cls.title] for cls in known]
    click.echo(table(["RULE", "GROUP", "DEFAULT", "TITLE"], rows))


@command.command("explain")
@click.argument("name")
def explain(name: str) -> None:
    """Tell what the rule NAME sees, and what its thresholds mean."""
    from tdbg_lab.rules import find_rule
    from tdbg_lab.rules.manual import description_of, thresholds_of

    cls = find_rule(name)
    click.echo(f"{cls.title} ({cls.name}, {cls.group})\n")
    for paragraph in description_of(cls):
        click.echo(click.wrap_text(paragraph, width=88) + "\n")
    for one in thresholds_of(cls):
        click.echo(f"{one.name}: {one.type} = {one.default!r}")
        if one.help:
            click.echo(click.wrap_text(one.help, 88, "    ", "    "))


def _chosen(names: Sequence[str], config: str | None, params: Sequence[str]) -> list[Rule]:
    from tdbg_lab.rules import resolve_rules
    from tdbg_lab.rules.choice import parameters_of

    if names and config:
        raise click.UsageError("Give --rule or --config, not both.")
    if not all(name.strip(" ,") for name in names):
        raise click.UsageError("--rule names no rule; expected one that `tdbg rules list` shows.")
    return resolve_rules(Path(config) if config else list(names) or "default", parameters_of(params))


def _tell(path: Path, finding: Finding) -> None:
    from tdbg_lab.cli.table import clean

    severity = str(finding.severity).upper()
    found = f"step {finding.step_first} {severity} {clean(finding.rule)}: {clean(finding.message, 500)}"
    click.echo(f"{clean(path.name)} {found}")


def _show(findings: Sequence[Finding], states: Sequence[RuleState]) -> None:
    from tdbg_lab.cli.table import clean, table

    if states:
        rows = [
            [
                state.rule,
                str(state.status).replace("_", " "),
                str(state.step_checked) if state.step_checked >= 0 else "-",
                f"{state.cost_ms:.0f} ms",
                state.reason or "-",
            ]
            for state in states
        ]
        click.echo(table(["RULE", "STATUS", "CHECKED TO STEP", "COST", "REASON"], rows))
    else:
        click.echo("No rules have looked at this run.")
    rule_of = {finding.id: finding.rule for finding in findings}
    for finding in findings:
        where = f"steps {finding.step_first}-{finding.step_last}"
        cause = f", follows from {clean(rule_of[finding.cause])}" if finding.cause in rule_of else ""
        click.echo(f"\n{str(finding.severity).upper()} {clean(finding.rule)} ({where}{cause})")
        click.echo(f"  {clean(finding.message, 1000)}")
        for advice in finding.advice:
            click.echo(f"  - {clean(advice, 1000)}")
