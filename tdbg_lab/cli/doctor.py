"""``tdbg doctor``: whether everything is in place."""

from __future__ import annotations

import click

__all__ = ["command"]

UNHEALTHY = 1
MARKS = {"ok": ("ok", "green"), "note": ("--", "yellow"), "wrong": ("!!", "red")}


@click.command("doctor", short_help="Check this installation, and say what to do.")
def command() -> int:
    """Check this installation, and say what to do when something is wrong."""
    from tdbg_lab.cli.checks import examine

    checks = examine()
    for check in checks:
        mark, colour = MARKS[check.state]
        click.echo(f"{click.style(mark, fg=colour)}  {check.what}: {check.found}")
        if check.advice:
            click.echo(f"      {check.advice}")
    wrong = sum(check.state == "wrong" for check in checks)
    click.echo("All is well." if not wrong else f"{wrong} of {len(checks)} checks failed.")
    return UNHEALTHY if wrong else 0
