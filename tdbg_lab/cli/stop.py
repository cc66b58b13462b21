"""``tdbg stop``: ask a training process to stop at the end of its step."""

from __future__ import annotations

import time

import click

from tdbg_lab.cli.find import RUN, find_run
from tdbg_lab.cli.seconds import SECONDS
from tdbg_lab.errors import ConflictError
from tdbg_lab.run.asker import user_name

__all__ = ["POLL_S", "command"]

POLL_S = 0.1


@click.command("stop")
@RUN
@click.option("--reason", default="", help="Recorded with the request.")
@click.option(
    "--wait",
    "wait_s",
    default=0.0,
    type=SECONDS,
    help="Seconds to wait for the training to answer.",
)
def command(run: str, reason: str, wait_s: float) -> None:
    """Ask RUN to stop at the end of its training step.

    With --wait, the answer is how it ended: it may have finished, failed or crashed meanwhile.
    """
    from tdbg_lab.records import RunStatus

    opened = find_run(run)
    opened.request_stop(reason=reason, by=user_name())
    deadline = time.monotonic() + wait_s
    while wait_s and opened.status is RunStatus.RUNNING:
        if time.monotonic() > deadline:
            raise ConflictError(f"The run did not stop within {wait_s:g} s; the request stays.")
        time.sleep(POLL_S)
        opened.refresh()
    click.echo(str(opened.status) if wait_s else "asked to stop")
