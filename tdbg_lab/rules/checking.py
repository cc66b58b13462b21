"""Ask rules about a run after the fact, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError
from tdbg_lab.rules.engine import Engine
from tdbg_lab.rules.feed import Feed
from tdbg_lab.rules.registry import resolve_rules
from tdbg_lab.store.remote import is_url
from tdbg_lab.store.source import is_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tdbg_lab.records import Finding, RuleState
    from tdbg_lab.rules.base import Rule
    from tdbg_lab.rules.registry import Rules

__all__ = ["check_run", "invoke_rule", "run_rules"]


def run_rules(
    run: Any, rules: Rules = "default", parameters: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Finding]:
    """Check everything a run has recorded so far.

    Nothing is written and no action is performed. A rule that raises is left out with a log entry.

    Parameters
    ----------
    run
        A `Run`, or the path of one, or its address (``s3://bucket/run``).
    rules
        ``"default"``, names, `Rule` objects or classes; a mapping or the path of a YAML file changes the
        default rules: ``{"dead_relu": {"patience": 20}, "overfit": True, "vanishing_gradient": False}``.
    parameters
        Thresholds to change, by rule: ``{"dead_relu": {"patience": 20}}``.

    Returns
    -------
    list of Finding
        Earliest first.

    Raises
    ------
    NotFoundError
        If there is no such run or rule.
    ConfigError
        If a threshold is of the wrong type or out of its range.
    """
    return check_run(run, rules, parameters)[0]


def invoke_rule(rule: str | Rule | type[Rule], run: Any) -> list[Finding]:
    """Check a run with one rule; what the rule raises is raised: for writing rules.

    Raises
    ------
    NotFoundError
        If there is no such run or rule.
    """
    return check_run(run, [rule], strict=True)[0]


def check_run(
    run: Any,
    rules: Rules = "default",
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    strict: bool = False,
    on_step: Callable[[int], None] | None = None,
) -> tuple[list[Finding], list[RuleState]]:
    """Like `run_rules`, with where each rule stands.

    `on_step` is called after each step; what it raises ends the check.
    """
    if isinstance(run, str) and is_url(run):
        from tdbg_lab.run import open_run  # pandas, which rules beside a training do not need

        run = open_run(run)  # held on to: the copy goes with it
    path = Path(getattr(run, "path", run))
    if not is_run(path):
        raise NotFoundError(f"There is no run in {path.name!r}: it has no run.json.")
    engine = Engine(resolve_rules(rules, parameters))
    feed = Feed.of(path, engine.needs)
    try:
        for step in feed.steps(last=True):
            engine.check(step, feed.view, strict=strict)
            if on_step is not None:
                on_step(step)
    finally:
        engine.end()
    return engine.findings, engine.states()
