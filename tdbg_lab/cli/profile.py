"""``tdbg profile``: profile a training process while it goes on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from tdbg_lab.cli.find import RUN, find_run
from tdbg_lab.cli.seconds import SECONDS
from tdbg_lab.cli.table import MAX_LINE_CHARS, clean
from tdbg_lab.errors import ConflictError
from tdbg_lab.run.asker import user_name

if TYPE_CHECKING:
    from tdbg_lab.run import Run

__all__ = ["command"]

POLL_S = 0.1


@click.command("profile")
@RUN
@click.option("--steps", type=int, help="Length of the window in steps (5).")
@click.option("--seconds", type=float, help="Length in seconds, instead.")
@click.option("--start", type=int, help="Step to begin with; default: the next one.")
@click.option("--operators/--no-operators", default=True, help="Record operators with torch.profiler.")
@click.option("--stacks/--no-stacks", default=True, help="Record Python calls with the operators.")
@click.option(
    "--python",
    type=click.Choice(["sampling", "calls", "off"]),
    default="sampling",
    help="Record Python functions: pyinstrument, cProfile, or not.",
)
@click.option("--wait", "wait_s", default=0.0, type=SECONDS, help="Seconds to wait for it.")
def command(run: str, wait_s: float, **window: Any) -> None:
    """Profile the next steps of RUN while it goes on."""
    opened = find_run(run)
    identity = opened.request_profile(by=user_name(), **window)
    click.echo(_answer(opened, identity, wait_s) if wait_s else "asked to profile")


def _answer(run: Run, identity: str, wait_s: float) -> str:
    from tdbg_lab.records import RunStatus
    from tdbg_lab.store import requests

    deadline = time.monotonic() + wait_s
    while True:
        found = next((one for one in requests(run.path) if one.id == identity), None)
        if found is not None and found.state != "pending":
            if found.state == "refused":
                raise ConflictError(found.answer or "The training refused.")
            return clean(found.answer or "done", MAX_LINE_CHARS)
        run.refresh()
        if run.status is not RunStatus.RUNNING:
            raise ConflictError(f"The run is {run.status}: it was not profiled.")
        if time.monotonic() > deadline:
            raise ConflictError(f"The profile was not done within {wait_s:g} s; the request stays.")
        time.sleep(POLL_S)
