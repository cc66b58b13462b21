"""The rule runner: ``python -m tdbg_lab.rules RUN_DIR [options]``.

``--rules default|all|none|a,b|rules.yaml``
    Which rules, by name, or a YAML or JSON file that changes the default ones (``default``).
``--param dead_relu.threshold_layer=60``
    A threshold, any number of times.
``--stop-on critical``
    Ask training to stop at findings of this severity and above, whatever the rule.
``--action dead_relu=stop``
    Ask training to stop at any finding of this rule, any number of times.
``--custom-stdin``
    More rules, and actions for all rules, come through standard input, as
    `tdbg_lab.rules.payload.pack` makes them; read to its end.
``--stand-in``
    End when another runner looks after the run, such as the training's own that was killed or frozen.
``--once``
    Check what there is and end, without following the run.

It ends by itself when the run has ended (after a last look), when its process is gone or its directory
deleted. An interrupt from the keyboard is not meant for it; a SIGTERM ends it with the status
``stopped``. Exit code 0 in each of these cases, 2 for wrong options. Start it in a session of its own;
`tdbg_lab.rules.launch` does.
"""

from __future__ import annotations

import argparse
import logging
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tdbg_lab.actions import StopTraining
from tdbg_lab.background import stay_behind
from tdbg_lab.errors import ConfigError, TdbgError
from tdbg_lab.records import Severity
from tdbg_lab.rules.choice import parameters_of
from tdbg_lab.rules.payload import MAX_BYTES, unpack
from tdbg_lab.rules.presence import Presence
from tdbg_lab.rules.registry import resolve_rules
from tdbg_lab.rules.runner import Runner
from tdbg_lab.rules.waiting import wakes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.actions import Action
    from tdbg_lab.records import RuleState
    from tdbg_lab.rules.base import Rule

log = logging.getLogger("tdbg_lab.rules")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the rule runner; gives the exit code."""
    options = _parser().parse_args(argv)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    stop = threading.Event()
    stay_behind(stop, nice=5)
    try:
        rules, broken, actions = _rules(options)
        presence = Presence(options.run)
    except TdbgError as error:
        log.error("%s", error)  # noqa: TRY400 - the user's mistake, not ours
        return 2
    stop_on = Severity(options.stop_on) if options.stop_on else None
    runner = Runner(
        options.run,
        rules,
        broken=broken,
        actions=actions,
        stop_on=stop_on,
        name=presence.name,
        stands_in=options.stand_in,
    )
    over = (lambda: "checked once") if options.once else presence.over
    log.debug("Ended: %s", runner.run(wakes(options.run, stop), over, stop.is_set))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tdbg_lab.rules", description="Check a run with rules.")
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="run directory")
    parser.add_argument(
        "--rules", default="default", help="default, all, none, names joined by commas, or a file"
    )
    parser.add_argument("--param", action="append", default=[], metavar="RULE.NAME=VALUE", help="a threshold")
    parser.add_argument("--action", action="append", default=[], metavar="RULE=stop", help="act on findings")
    parser.add_argument(
        "--stop-on", choices=[str(one) for one in Severity], help="stop training from this severity"
    )
    parser.add_argument("--custom-stdin", action="store_true", help="more rules come through standard input")
    parser.add_argument("--stand-in", action="store_true", help="end when another runner looks after the run")
    parser.add_argument("--once", action="store_true", help="check what there is and end")
    return parser


def _rules(options: argparse.Namespace) -> tuple[list[Rule], list[RuleState], list[Action]]:
    rules = resolve_rules(options.rules, parameters_of(options.param))
    data = sys.stdin.buffer.read(MAX_BYTES) if options.custom_stdin else b""
    custom, broken, actions = unpack(data) if data else ([], [], [])
    own = {rule.name for rule in custom}
    rules = [*(rule for rule in rules if rule.name not in own), *custom]
    for text in options.action:
        name, _, action = text.partition("=")
        if action != "stop" or all(rule.name != name for rule in rules):
            raise ConfigError(f"--action {text!r} is not of the form RULE=stop with a rule that runs.")
        rules = [replace(r, actions=(*r.actions, StopTraining())) if r.name == name else r for r in rules]
    return rules, broken, actions


if __name__ == "__main__":
    sys.exit(main())
