"""The ``tdbg`` command. Errors are one clear sentence and exit code 2, never a traceback."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tdbg_lab.errors import TdbgError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.cli.launch import Launch

__all__ = ["main"]

USAGE_ERROR = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code.

    A program that the command launches runs out here, where click handles no exceptions: they are
    the program's own.
    """
    outcome = _outcome(arguments)
    if isinstance(outcome, int):
        return outcome
    try:
        return outcome()
    except TdbgError as error:
        return _fail(error)


def _outcome(arguments: Sequence[str] | None) -> int | Launch:
    """What the command comes to: an exit code, or a program to run."""
    import click

    from tdbg_lab.cli.group import tdbg
    from tdbg_lab.cli.launch import Launch
    from tdbg_lab.cli.terminal import any_characters

    try:
        with any_characters():
            result = tdbg.main(args=arguments, prog_name="tdbg", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return USAGE_ERROR
    except Exception as error:  # noqa: BLE001 - the boundary of the command
        return _fail(error)
    return result if isinstance(result, int | Launch) else 0


def _fail(error: Exception) -> int:
    """Say in one sentence what went wrong."""
    import click

    from tdbg_lab.cli.table import MAX_LINE_CHARS, clean

    if os.environ.get("TDBG_TRACEBACK"):
        raise error
    if isinstance(error, TdbgError):
        text = str(error)
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    else:
        text = (
            f"Something unexpected happened ({type(error).__name__}: {error}); TDBG_TRACEBACK=1 shows where."
        )
    click.echo(f"Error: {' '.join(clean(text, MAX_LINE_CHARS).split())}", err=True)
    return USAGE_ERROR
