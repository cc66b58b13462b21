"""Which findings an action is for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdbg_lab.actions.texts import texts
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.records import Finding

__all__ = ["Pattern"]

_ORDER = tuple(Severity)


@dataclass(frozen=True, kw_only=True)
class Pattern:
    r"""A pattern of findings; all that is given must hold.

    ::

        Pattern(severity="critical")
        Pattern(rule="vanishing|exploding", tensor=r"encoder\.")
        Pattern(severity="warning", count=3, within_steps=100)   # three in a hundred steps
        Pattern(all_of=("loss_not_decreasing", "dead_relu"))     # both have been found

    Raises
    ------
    ConfigError
        A field is wrong.
    """

    severity: Severity | str = Severity.NOTICE
    """This severity and worse ones."""
    rule: str = ""
    """Regular expression to be found in the name of the rule."""
    tensor: str = ""
    """Regular expression to be found in the name of the tensor or the module."""
    count: int = 1
    """So many findings like this, the newest included."""
    within_steps: int | None = None
    """How far the findings may be apart, training steps; None: the whole run."""
    all_of: tuple[str, ...] = ()
    """Names of rules each of which must have such a finding."""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "severity", Severity(self.severity))
        except ValueError:
            raise ConfigError(
                f"severity of a Pattern is {self.severity!r}; expected {', '.join(_ORDER)}."
            ) from None
        for name in ("rule", "tensor"):
            try:
                re.compile(getattr(self, name))
            except (re.error, TypeError) as error:
                raise ConfigError(f"{name} of a Pattern is not a regular expression: {error}.") from error
        count: object = self.count
        if type(count) is not int or count < 1:
            raise ConfigError(f"count of a Pattern is {count!r}; expected a whole number, at least 1.")
        within: object = self.within_steps
        if within is not None and (type(within) is not int or within < 0):
            raise ConfigError(
                f"within_steps of a Pattern is {within!r}; expected a number of steps, or None."
            )
        object.__setattr__(self, "all_of", texts(self.all_of, "all_of of a Pattern", "names of rules"))

    def fits(self, finding: Finding) -> bool:
        """Whether a finding is one that counts."""
        if _ORDER.index(finding.severity) < _ORDER.index(Severity(self.severity)):
            return False
        if self.all_of and finding.rule not in self.all_of:
            return False
        if self.rule and re.search(self.rule, finding.rule) is None:
            return False
        return not self.tensor or any(re.search(self.tensor, one) for one in (finding.tensor, finding.module))

    def met(self, findings: Sequence[Finding]) -> bool:
        """Whether the pattern is complete now.

        Parameters
        ----------
        findings
            All of the run so far, in the order they were made; the last one is the occasion.
        """
        if not findings or not self.fits(findings[-1]):
            return False
        newest = findings[-1]
        counted = [
            one
            for one in findings
            if self.fits(one)
            and (self.within_steps is None or newest.step_last - one.step_last <= self.within_steps)
        ]
        return len(counted) >= self.count and set(self.all_of) <= {one.rule for one in counted}
