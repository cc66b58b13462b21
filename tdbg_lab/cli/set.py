"""``tdbg set``: change a setting of a training while it goes on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from tdbg_lab.cli.find import RUN, find_run
from tdbg_lab.cli.seconds import SECONDS
from tdbg_lab.cli.stop import POLL_S
from tdbg_lab.cli.table import MAX_LINE_CHARS, clean
from tdbg_lab.errors import ConfigError, ConflictError
from tdbg_lab.run.asker import user_name

if TYPE_CHECKING:
    from tdbg_lab.run import Run

__all__ = ["command"]


@click.command("set", short_help="Change settings of RUN while it trains.")
@RUN
@click.argument("settings", nargs=-1, metavar="[SETTING]...")
@click.option("--group", type=click.IntRange(0), help="Parameter group; all by default.")
@click.option("--optimizer", default="", help="Name of one of several optimizers.")
@click.option("--reason", default="", help="Recorded with the request.")
@click.option(
    "--wait",
    "wait_s",
    default=5.0,
    show_default=True,
    type=SECONDS,
    help="Seconds to wait for the training to answer.",
)
def command(
    run: str, settings: tuple[str, ...], *, group: int | None, optimizer: str, reason: str, wait_s: float
) -> None:
    """Change settings of RUN at the end of its training step; without one, show the changes so far.

    A SETTING is learning_rate=1e-4, 'learning_rate*=0.1', clip_norm=1.0 or clip_norm=off.
    """
    from tdbg_lab.store import SettingChange

    opened = find_run(run)
    if not settings:
        _show(opened)
        return
    changes = [SettingChange.parse(text, group=_group(text, group), optimizer=optimizer) for text in settings]
    asked = [opened.request_setting(change, reason=reason, by=user_name()) for change in changes]
    if not wait_s:
        click.echo("asked to set " + ", ".join(map(str, changes)))
        return
    for identity in asked:
        click.echo(_answer(opened, identity, wait_s))


def _group(text: str, group: int | None) -> int | None:
    return group if text.startswith(("learning_rate", "lr")) else None


def _answer(run: Run, identity: str, wait_s: float) -> str:
    """What the training said.

    Raises
    ------
    ConfigError
        It refused.
    ConflictError
        It said nothing in time, or before it ended.
    """
    from tdbg_lab.records import RunStatus

    deadline = time.monotonic() + wait_s
    while True:
        ended = run.status is not RunStatus.RUNNING  # asked first: the last answer is written before that
        record = next((one for one in run.setting_changes() if one.id == identity), None)
        if record is not None and record.state != "pending":
            if record.state == "refused":
                raise ConfigError(f"The training refused {record.change}: {record.answer}")
            return clean(f"{record.change}: {record.answer}", MAX_LINE_CHARS)
        if ended:
            raise ConflictError(f"The run is {run.status}: it did not answer.")
        if time.monotonic() > deadline:
            raise ConflictError(f"The training has not answered within {wait_s:g} s; the request stays.")
        time.sleep(POLL_S)
        run.refresh()


def _show(run: Run) -> None:
    from tdbg_lab.cli.table import table

    rows = [
        [
            "-" if one.step is None else str(one.step),
            str(one.change),
            one.state,
            one.by or "-",
            clean(one.answer),
        ]
        for one in run.setting_changes()
    ]
    click.echo(
        table(["STEP", "SETTING", "STATE", "BY", "ANSWER"], rows) if rows else "No setting was changed."
    )
