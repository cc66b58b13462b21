"""What a rule is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Finding, Severity, TensorKey, ViewRef
from tdbg_lab.rules.needs import Needs
from tdbg_lab.rules.thresholds import check_range, check_types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tdbg_lab.actions import Action
    from tdbg_lab.rules.view import RunView

__all__ = ["GROUPS", "Needs", "Rule"]

GROUPS = ("tensors", "losses", "data", "setup", "silent", "trees", "profile", "custom")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OWN_GROUP = re.compile(r"tdbg_lab\.rules\.(\w+)\.")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A check of a run, step by step. Subclasses are frozen dataclasses of thresholds.

    A rule has no state: its answer at a step depends on what was recorded up to that step and on
    its own open finding (`RunView.active`), so checking live, after a crash and after the fact
    give the same findings. `check` never raises to say that something was found.

    ::

        @dataclass(frozen=True)
        class LoudGradient(tdbg.Rule):
            threshold: float = 10.0

            def needs(self):
                return Needs(kinds=(Kind.GRADIENT,))

            def check(self, step, run):
                for key, row in run.frame().items(Kind.GRADIENT):
                    if row.l2 > self.threshold:
                        return self.finding(step, f"{key.name} has norm {row.l2:.3g}.", key=key)
                return None
    """

    name: ClassVar[str] = "rule"
    """On the wire, in snake_case; by default made from the name of the class."""
    title: ClassVar[str] = "Rule"
    """For people, in sentence case."""
    group: ClassVar[str] = "custom"
    """Where it is listed: tensors, losses, data, setup, silent, trees, profile or custom. Ours are named
    after the folder they stand in."""
    explains: ClassVar[tuple[str, ...]] = ()
    """Names and groups of rules whose troubles follow from this one while it lasts; ``"*"`` for all."""

    # Not fields: a rule that wants one of them as a threshold declares a field of that name. The first two
    # do not count for a rule whose `classic` is True: documented conditions know no such thing.
    warm_up = 0
    """Recorded steps before the rule is asked."""
    confirmations = 1
    """Checked steps in a row with an answer that make a finding. The finding begins at the first of them."""
    calm = 5
    """Checked steps in a row without an answer that end a finding."""
    time_limit_s = 30.0
    """Time one check may take, s. A rule that takes longer is switched off."""

    actions: tuple[Action, ...] = field(default=(), repr=False)
    """Done at each new finding of this rule, whatever its severity (see `Action.once`)."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower().strip("_")
        if not _NAME.fullmatch(cls.name):
            raise ConfigError(f"{cls.name!r} is not a name for a rule: use lower-case letters, digits and _.")
        if "title" not in cls.__dict__:
            cls.title = cls.name.replace("_", " ").capitalize()
        if "group" not in cls.__dict__ and (own := _OWN_GROUP.match(cls.__module__)):
            cls.group = own[1]
        if cls.group not in GROUPS:
            raise ConfigError(f"{cls.name} has group {cls.group!r}; expected one of {', '.join(GROUPS)}.")

    def __post_init__(self) -> None:
        """Check the thresholds; a rule with ranges extends it, `super().__post_init__()` first."""
        given: Any = self.actions
        object.__setattr__(self, "actions", tuple(given) if isinstance(given, (list, tuple)) else (given,))
        check_types(self)
        self.require("warm_up", at_least=0)
        self.require("confirmations", "calm", at_least=1)

    def require(
        self,
        *names: str,
        at_least: float | None = None,
        above: float | None = None,
        at_most: float | None = None,
        below: float | None = None,
    ) -> None:
        """Say in `__post_init__` that thresholds lie within bounds: ``self.require("share", at_least=0)``.

        Raises
        ------
        ConfigError
            If one does not. None is passed over; types are checked by the base class.
        """
        check_range(self, *names, at_least=at_least, above=above, at_most=at_most, below=below)

    def needs(self) -> Needs:
        """What this rule reads."""
        return Needs()

    def not_applicable(self, run: RunView) -> str:
        """Why this rule has nothing to say about the run as it is so far, or ``""``."""
        needs = self.needs()
        return "" if run.has(needs) else f"No {needs} were recorded so far{needs.hint}."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Look at one recorded step.

        Parameters
        ----------
        step
            The step; `run` ends there.
        run
            What was recorded up to that step.

        Returns
        -------
        Finding or None
            What is wrong at this step. The same trouble is returned again at each step it lasts:
            the runner makes one finding of it.
        """
        raise NotImplementedError

    def idle(self, quiet_s: float, run: RunView) -> Finding | None:  # noqa: ARG002 - for rules that extend it
        """Look at a live run that writes nothing; asked about once a second.

        Parameters
        ----------
        quiet_s
            Time since something was written, s.
        run
            What was recorded so far.

        Returns
        -------
        Finding or None
            What is wrong. After the fact this is not asked.
        """
        return None

    @property
    def parameters(self) -> Mapping[str, float | int | str | bool | None]:
        """The thresholds, for people to see."""
        simple = (float, int, str, bool, type(None))
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "actions"}
        return {name: value if isinstance(value, simple) else str(value) for name, value in values.items()}

    def finding(
        self,
        step: int,
        message: str,
        *,
        severity: Severity = Severity.WARNING,
        key: TensorKey | None = None,
        tensor: str = "",
        evidence: Mapping[str, float | int | str] | None = None,
        advice: Sequence[str] = (),
        view: ViewRef | None = None,
        step_first: int | None = None,
        rank: int | None = None,
        fix: Mapping[str, float | int | str | bool] | None = None,
    ) -> Finding:
        """Make a finding of this rule about one tensor (`key`, or just its name)."""
        return Finding(
            rule=self.name,
            severity=severity,
            step_first=step if step_first is None else step_first,
            step_last=step,
            message=message,
            tensor=key.name if key else tensor,
            module=key.module if key else "",
            evidence=dict(evidence or {}),
            advice=tuple(advice),
            view=view,
            rank=rank,
            fix=None if fix is None else dict(fix),
        )
