"""The tensors and steps a rule says it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, KeysView, Sequence

    from tdbg_lab.smdebug.core.tensor import Tensor
    from tdbg_lab.smdebug.trials.trial import Trial

__all__ = ["RequiredTensors", "RequiredTensorsForTrial"]


class RequiredTensorsForTrial:
    """What is needed of one trial."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._steps: dict[str, list[int]] = {}

    def add(self, name: str, steps: Iterable[int], should_match_regex: bool = False) -> None:
        """Need a tensor, or all that match a pattern, at some steps.

        Raises
        ------
        TensorUnavailable
            If there is no such tensor.
        """
        names = self.trial.tensor_names(regex=name) if should_match_regex else [self.trial.tensor(name).name]
        for one in names:
            known = self._steps.setdefault(one, [])
            known.extend(step for step in steps if step not in known)

    def get_names(self) -> KeysView[str]:
        """Names of the tensors that are needed."""
        return self._steps.keys()

    def get_tensor_steps(self, name: str) -> list[int]:
        """Steps at which one is needed, in the order they were asked for.

        Raises
        ------
        KeyError
            If it is not needed.
        """
        return self._steps[name]

    def get(self) -> list[Tensor]:
        """The tensors that are needed."""
        return [self.trial.tensor(name) for name in self._steps]

    def fetch(self) -> None:
        """Wait for all steps that are needed.

        Raises
        ------
        StepUnavailable, NoMoreData
            If one never comes.
        """
        steps = {step for needed in self._steps.values() for step in needed}
        self.trial.wait_for_steps(sorted(steps))

    def clear(self) -> None:
        """Need nothing."""
        self._steps = {}


class RequiredTensors:
    """What is needed of the trial of a rule, and of others."""

    def __init__(self, base_trial: Trial, other_trials: Sequence[Trial] | None = None) -> None:
        self.base_trial = base_trial
        self.other_trials = list(other_trials or ())
        self._of = {id(one): RequiredTensorsForTrial(one) for one in (base_trial, *self.other_trials)}

    def _needed(self, trial: Trial | None) -> RequiredTensorsForTrial:
        wanted = self.base_trial if trial is None else trial
        return self._of.setdefault(id(wanted), RequiredTensorsForTrial(wanted))

    def add(
        self,
        name: str,
        steps: Iterable[int],
        trial: Trial | None = None,
        should_match_regex: bool = False,
    ) -> None:
        """Need a tensor, or all that match a pattern, at some steps; of `trial`, or of the rule's own.

        Raises
        ------
        TensorUnavailable
            If there is no such tensor.
        """
        self._needed(trial).add(name, list(steps), should_match_regex)

    def get_names(self, trial: Trial | None = None) -> KeysView[str]:
        """Names of the tensors that are needed."""
        return self._needed(trial).get_names()

    def get_tensor_steps(self, name: str, trial: Trial | None = None) -> list[int]:
        """Steps at which one is needed."""
        return self._needed(trial).get_tensor_steps(name)

    def get(self, trial: Trial | None = None) -> list[Tensor]:
        """The tensors that are needed."""
        return self._needed(trial).get()

    def fetch(self) -> None:
        """Wait for all steps that are needed, of all trials."""
        for one in self._of.values():
            one.fetch()

    def clear(self) -> None:
        """Need nothing."""
        for one in self._of.values():
            one.clear()
