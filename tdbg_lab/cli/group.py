"""The ``tdbg`` group. Each command is a file; all load what they need when they are called."""

from __future__ import annotations

from importlib import import_module

import click

import tdbg_lab

__all__ = ["tdbg"]

COMMANDS = (
    "demo",
    "doctor",
    "export",
    "import",
    "profile",
    "report",
    "rules",
    "run",
    "runs",
    "set",
    "stop",
    "sync",
)
_MODULES = {"import": "importing"}
"""Modules that cannot have the name of their command."""


class Commands(click.Group):
    """Finds a command in the module of its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """A command by its name."""
        if cmd_name not in COMMANDS:
            return None
        module = _MODULES.get(cmd_name, cmd_name)
        command: click.Command = import_module(f"tdbg_lab.cli.{module}").command
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tdbg_lab.__version__, "--version", prog_name="tdbg")
def tdbg() -> None:
    """See what happens inside a model while it trains."""
