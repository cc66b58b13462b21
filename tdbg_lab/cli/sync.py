"""``tdbg sync``: send what waits for an object store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from tdbg_lab.cli.seconds import SECONDS
from tdbg_lab.cli.table import clean
from tdbg_lab.errors import NotFoundError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.store.remote.spool import Spooled

__all__ = ["command"]

POLL_S = 0.2
_MAX_TOLD = 5


@click.command("sync", short_help="Send runs that wait in the spool to their object store.")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--list", "only_list", is_flag=True, help="Only say what waits.")
@click.option(
    "--wait",
    "wait_s",
    default=600.0,
    show_default=True,
    type=SECONDS,
    help="Seconds to wait for a sender that is already at work on a run that has ended.",
)
def command(runs: tuple[str, ...], *, only_list: bool, wait_s: float) -> None:
    """Send runs that wait in the spool to their object store: all of them, or those of name or address RUN.

    Training sends its run by itself; this is for what is left after an outage, a crash, or in a
    container that ends with its script.
    """
    from tdbg_lab.store.remote.service import unsent_runs

    _require_known(runs)
    waiting = [each for each in unsent_runs() if not runs or _is_one_of(each, runs)]
    if not waiting:
        click.echo("Nothing waits to be sent.")
        return
    if only_list:
        for each in waiting:
            _list(each)
        return
    left = [problem for each in waiting if (problem := _send(each, wait_s)) is not None]
    if left:
        raise StoreError(f"{len(left)} of {len(waiting)} runs are not sent: {left[0]}")


def _require_known(runs: Sequence[str]) -> None:
    """Check that each run that was named is in the spool.

    Raises
    ------
    NotFoundError
        If one is not.
    """
    from tdbg_lab.store.remote.spool import spooled_runs

    spooled = list(spooled_runs()) if runs else []
    for name in runs:
        if not any(_is_one_of(each, [name]) for each in spooled):
            known = ", ".join(clean(_place(each)) for each in spooled[:_MAX_TOLD])
            there = (
                f"it holds {known}{', ...' if len(spooled) > _MAX_TOLD else ''}" if known else "it is empty"
            )
            raise NotFoundError(f"There is no run {name!r} in the spool: {there}.")


def _is_one_of(spooled: Spooled, runs: Sequence[str]) -> bool:
    """Whether it is named: by its name, by its address, or by its folder in the spool."""
    known = {spooled.name, _place(spooled), str(spooled.path)}
    return any(run.rstrip("/") in known for run in runs)


def _list(spooled: Spooled) -> None:
    state = spooled.state()
    problem = f": {state.problem}" if state.problem else ""
    click.echo(f"{_place(spooled)}  {state.waiting_bytes} bytes wait in {spooled.path}{problem}")


def _send(spooled: Spooled, wait_s: float) -> str | None:
    """Send one run and say how it went; the problem, if any."""
    from tdbg_lab.store.remote.sending import send

    if spooled.is_running():
        click.echo(f"{_place(spooled)}  is running: its training sends it")
        return None
    deadline = time.monotonic() + wait_s
    while (outcome := send(spooled, once=True)).busy:
        if time.monotonic() > deadline:
            return f"another process still sends {spooled.name} after {wait_s:g} s."
        time.sleep(POLL_S)
    if outcome.problem is None:
        click.echo(f"{_place(spooled)}  is sent")
    else:
        click.echo(f"{_place(spooled)}  is kept in {spooled.path}: {outcome.problem}")
    return outcome.problem


def _place(spooled: Spooled) -> str:
    try:
        return str(spooled.place()[0])
    except (OSError, ValueError):
        return spooled.name
