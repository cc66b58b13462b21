"""Whether gradients were reset between two steps, and whether each of them came to a step.

Watched on one parameter of each optimizer, by what PyTorch tells without waiting for a device: a gradient
that was set to None is another tensor afterwards; adding to one raises its version by exactly one, and so
does nothing else in a healthy loop. In a step that is not looked at, backward passes are only counted, up to
the usual number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

import torch
from torch.nn.parameter import is_lazy

from tdbg_lab.capture.pytorch.fleeting import Fleeting
from tdbg_lab.capture.pytorch.values import distributed
from tdbg_lab.capture.pytorch.zero import has_parts
from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch.optim import Optimizer
    from torch.utils.hooks import RemovableHandle

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.notes import Notes
    from tdbg_lab.capture.pytorch.checks.pace import Pace

__all__ = ["GradientWatch"]

_ABANDONED = 4
"""Gradients thrown away since the last step from which it is told before the next step: it may never come."""
_TRAIN = Mode.TRAIN
_WAITING = 16
"""The same for backward passes whose gradients pile up."""
_TURNS = 128
"""Gradients of an optimizer that never stepped thrown away, from which it is told where several models train:
in a game one side may begin long before the other."""


class GradientWatch:
    """The gradient of one parameter of one optimizer, from step to step.

    Parameters
    ----------
    suffix
        Of the names of its facts, by which those of several optimizers differ.
    game
        Whether several models are trained.

    Attributes
    ----------
    following
        Whether the passes of this step are followed.
    discarded
        Backward passes since the last step whose gradient was thrown away by a reset.
    """

    def __init__(self, engine: Engine, notes: Notes, pace: Pace, suffix: str, *, game: bool) -> None:
        self.engine = engine
        self._notes = notes
        self._pace = pace
        self._stale_name = f"stale_gradients{suffix}"
        self._discarded_name = f"discarded_gradients{suffix}"
        self._waiting_name = f"waiting_gradients{suffix}"
        self._name = self._module = ""
        self._stepped = False
        self._least_unstepped = _TURNS if game else _ABANDONED
        self._probe: ref[torch.Tensor] | None = None
        self._hook: RemovableHandle | None = None
        self._grad: ref[torch.Tensor] | None = None
        self._version = -1
        self._weights_version = -1
        self._added = self._reset = self._unclear = 0
        self._stale = 0
        self._odd = False
        self._noted: tuple[int, int] | None = None
        """What was noted at the last step: stale, and discarded."""
        self._told_early = False
        self._from_the_start = True
        """Whether all passes of this step were followed."""
        self.following = True
        self.passes = 0
        """Backward passes since the last step."""
        self.usual = 1
        """Those of the last step that was followed from its start."""
        self.discarded = 0

    def choose(self, optimizer: Optimizer, ours: Mapping[int, tuple[str, str]]) -> None:
        """Watch the last parameter that has a gradient, or may get one, if none is watched yet.

        `ours` has path and module of the parameters of the models by their ``id``.
        """
        probe = None if self._probe is None else self._probe()
        if probe is not None and (probe.grad is not None or not self._stale_choice(optimizer, ours)):
            return
        chosen = self._candidate(optimizer, ours)
        if chosen is None or chosen is probe:
            return
        self.detach()
        self._probe = ref(chosen)
        self._name, self._module = ours[id(chosen)]
        self._hook = chosen.register_post_accumulate_grad_hook(_Telling(ref(self)))  # type: ignore[no-untyped-call]
        self.after_step(follow=True)

    def _stale_choice(self, optimizer: Optimizer, ours: Mapping[int, tuple[str, str]]) -> bool:
        """Whether the watched parameter has no gradient while another one has."""
        other = self._candidate(optimizer, ours)
        return other is not None and other.grad is not None

    @staticmethod
    def _candidate(optimizer: Optimizer, ours: Mapping[int, tuple[str, str]]) -> torch.Tensor | None:
        plain: list[torch.Tensor] = [
            one
            for group in optimizer.param_groups
            for one in group["params"]
            if one.requires_grad
            and one.is_leaf
            and id(one) in ours
            and not distributed(one)
            and not has_parts(one)  # DeepSpeed takes its gradient away after each pass
            and not is_lazy(one)  # of a `LazyLinear` that was not called yet
        ]
        moved = [one for one in plain if one.grad is not None and not one.grad.is_sparse]
        chosen = moved or plain
        return chosen[-1] if chosen else None

    def accumulated(self, parameter: torch.Tensor) -> None:
        """Autograd added to the gradient of the watched parameter, in a step that is followed or too long."""
        self.passes += 1
        if not self.following:
            self._begin(None)  # no step may ever come
            self.following = True
            self._pace.wake()
        grad = parameter.grad
        if grad is None:
            return
        if self._grad is None or self._grad() is not grad:
            if self._reset and parameter._version == self._weights_version:  # noqa: SLF001
                self.discarded += 1
            self._reset += 1
            self._weights_version = parameter._version  # noqa: SLF001
        elif grad._version == self._version + 1:  # noqa: SLF001
            self._added += 1
        else:
            self._unclear += 1
        self._grad, self._version = ref(grad), grad._version  # noqa: SLF001
        if self.discarded >= _ABANDONED or self._added >= _WAITING:
            self._tell_early()

    def _tell_early(self) -> None:
        """Say so while no step comes: at the powers of two, so that it stays little."""
        for name, count, least in (
            (self._discarded_name, self.discarded, _ABANDONED),
            (self._waiting_name, self._added, _WAITING),
        ):
            if count >= least and count & (count - 1) == 0:
                self._told_early = True
                self._notes.set(name, float(count))
                if not self._stepped and name is self._discarded_name and count >= self._least_unstepped:
                    self._notes.set(f"never_stepped/{self._name}", float(count), module=self._module)
                self._notes.write()

    def before_step(self, *, closure: bool) -> None:
        """The optimizer is about to step: judge what came since its last one, if some of it was followed."""
        if not self.following:
            return
        if not self._stepped:
            self._stepped = True
            self._notes.clear(f"never_stepped/{self._name}")
        if self._from_the_start:
            stale = self._added > 0 and not self._reset and not self._unclear and not closure
            self._stale = self._stale + 1 if stale else 0
            self.usual = max(1, self.passes)
        now = self._stale, 0 if closure else self.discarded
        if now != self._noted or self._told_early:
            if not self._odd and any(now):
                self._pace.wake()
            self._odd = any(now)
            self._noted, self._told_early = now, False
            self._notes.set(self._stale_name, float(now[0]))
            self._notes.set(self._discarded_name, float(now[1]))
            self._notes.clear(self._waiting_name)

    def after_step(self, *, follow: bool) -> None:
        """The optimizer has stepped, or a scaler left the step out: what comes now belongs to the next.

        Parameters
        ----------
        follow
            Whether the passes of the next step are followed.
        """
        self.passes = 0
        self.following = self._from_the_start = follow
        if follow:
            probe = None if self._probe is None else self._probe()
            self._begin(None if probe is None else probe.grad)

    def _begin(self, grad: torch.Tensor | None) -> None:
        """From now on passes are followed; the gradient as it is, if it is known to be of an earlier step."""
        if grad is None:
            self._grad, self._version = None, -1
        else:
            self._grad, self._version = ref(grad), grad._version  # noqa: SLF001
        self._added = self._reset = self._unclear = self.discarded = 0
        self._weights_version = -1

    def detach(self) -> None:
        """Take the hook off. Idempotent."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None


class _Telling(Fleeting):
    """The hook on the parameter: keeps nothing alive."""

    __slots__ = ("_weak",)

    def __init__(self, weak: ref[GradientWatch]) -> None:
        self._weak = weak

    def __call__(self, parameter: torch.Tensor) -> None:
        """Called by autograd after it added to the gradient; nothing within compiled code."""
        if torch.compiler.is_dynamo_compiling() or torch.compiler._is_compiling_flag:  # noqa: SLF001
            return
        watch = self._weak()
        if watch is None:
            return
        engine = watch.engine
        if not engine.open or engine.recorder.mode is not _TRAIN:
            return
        if not watch.following and watch.passes < watch.usual:
            watch.passes += 1  # only counted
        else:
            engine.guard.run("check/gradients", watch.accumulated, parameter)
