"""``tdbg stop``: ask a training process to stop at the end of its step."""

from __future__ import annotations

import getpass
import time

import click

from tdbg_lab.cli.find import RUN, find_run
from tdbg_lab.errors import ConflictError

__all__ = ["POLL_S", "command", "user"]

POLL_S = 0.1


@click.command("stop")
@RUN
@click.option("--reason", default="", help="Recorded with the request.")
@click.option(
    "--wait",
    "wait_s",
    default=0.0,
    type=click.FloatRange(0),
    help="Seconds to wait for the training to answer.",
)
def command(run: str, reason: str, wait_s: float) -> None:
    """Ask RUN to stop at the end of its training step.

    With --wait, the answer is how it ended: it may have finished, failed or crashed meanwhile.
    """
    from tdbg_lab.records import RunStatus

    opened = find_run(run)
    opened.request_stop(reason=reason, by=user())
    deadline = time.monotonic() + wait_s
    while wait_s and opened.status is RunStatus.RUNNING:
        if time.monotonic() > deadline:
            raise ConflictError(f"The run did not stop within {wait_s:g} s; the request stays.")
        time.sleep(POLL_S)
        opened.refresh()
    click.echo(str(opened.status) if wait_s else "asked to stop")


def user() -> str:
    """Name of who sits at the terminal, where there is one."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user id without a name; ImportError: on Windows
        return ""
