"""Optimizer steps: where a step of the run ends, and what is read around it.

With several optimizers a step ends when each of those that take part has stepped, or when one of
them steps a second time.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tdbg_lab.capture.pytorch.by_hand import ByHand
from tdbg_lab.capture.pytorch.clipping import ClipWatch
from tdbg_lab.capture.pytorch.gradient_norms import GradientNorms
from tdbg_lab.capture.pytorch.graphs import within_graph
from tdbg_lab.capture.pytorch.players import Players, moved_by
from tdbg_lab.capture.pytorch.scaler import ScalerWatch
from tdbg_lab.capture.pytorch.shown import TellingOptimizer
from tdbg_lab.capture.pytorch.updates import UpdateProbe
from tdbg_lab.capture.pytorch.values import FEW_NUMBERS
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from torch.optim import Optimizer

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.checks.watch import CheckWatch
    from tdbg_lab.capture.pytorch.objectives import Objectives
    from tdbg_lab.capture.pytorch.parameters import Live, ParameterProbe

__all__ = ["OptimizerWatch"]


class OptimizerWatch:
    """Everything that happens around ``optimizer.step()``."""

    def __init__(self, engine: Engine, parameters: ParameterProbe) -> None:
        self._engine = engine
        self.parameters = parameters
        self.by_hand = ByHand(engine, parameters)
        """What there is to see while no optimizer has stepped."""
        self._updates = UpdateProbe(engine)
        self.scalers = ScalerWatch(engine, self.on_skipped, self._concerns)
        self._skipped_told = 0
        self._norms = GradientNorms(engine, parameters)
        self._clipping = ClipWatch(self._before_clipping)
        self._optimizer_mask = engine.plan.mask_of(Kind.OPTIMIZER)
        self._names: WeakKeyDictionary[Optimizer, str] = WeakKeyDictionary()
        self._live = 0
        """How many optimizers there were when those that take part were looked through last."""
        self._stepped: set[str] = set()
        self._expected: set[str] = set()
        self._loose: set[str] = set()
        """Optimizers of numbers that stand alone, which may step several times within a step of the model."""
        self._unsaid = ""
        """What is to be said of an optimizer of a few strange numbers, unless another one moves the model."""
        self._closure = False
        self.within_closure = False
        """Whether an optimizer that was given a closure is stepping."""
        self.alone = False
        """Whether there is one optimizer only."""
        self._resting = False
        """Whether nothing of the step that the optimizer is making is looked at."""
        self._telling = False
        """Whether one of them tells something of the step it has made."""
        self._fresh = False
        """Whether an optimizer was added in this step, of which an earlier one may have seen the forward."""
        self._late: Optimizer | None = None
        """The optimizer that is making a step which belongs to the one that was closed last."""
        self._owned: set[int] = set()
        self._players = Players(self._names)
        self.checks: CheckWatch | None = None
        """Looks at the loop for rules on silent errors."""
        self.objectives: Objectives | None = None
        """What the program calls ``backward`` on, where that is looked at."""

    def add(self, name: str, optimizer: Optimizer, instead_of: Optimizer | None = None) -> None:
        """Watch one more optimizer, or one that makes the steps of another one from now on."""
        if "" in self._names.values():
            self._number_first()
        self._names[optimizer] = name
        self._expected.add(name)
        self._live = 0
        self._players.look()
        self._fresh = True
        self._telling = self._telling or isinstance(optimizer, TellingOptimizer)
        self.alone = len(self._names) == 1
        self._engine.guard.run("optimizer/strangers", self._note_strangers, optimizer)
        if self.checks is not None:
            self.checks.add(optimizer, instead_of)

    def replace(self, old: Optimizer, new: Optimizer) -> None:
        """From now on another one makes the steps that `old` has made, under its name."""
        self.add(self._names.pop(old), new, instead_of=old)

    def join(self, name: str, optimizer: Optimizer) -> None:
        """Watch one more optimizer, which is about to step for the first time."""
        others = [moved for one in self._names if (moved := moved_by(one))]
        self.add(name, optimizer)
        engine = self._engine
        # The others have stepped, and nothing was trained since: their step was closed too early.
        closed = bool(others) and not (self._stepped or engine.forwards or engine.backwards)
        if closed and moved_by(optimizer).isdisjoint(set().union(*others)):
            self._late = optimizer

    def _number_first(self) -> None:
        """The optimizer that had no name, being the only one, gets one."""
        for one, name in list(self._names.items()):
            self._names[one] = name or "0"
        self._expected = {name or "0" for name in self._expected}
        self._stepped = {name or "0" for name in self._stepped}
        self._norms.rename("", "0")

    def _note_strangers(self, optimizer: Optimizer) -> None:
        """Say it when an optimizer has none of the parameters that are watched."""
        known = {id(value) for _, value in self.parameters.live()}
        given = [one for group in optimizer.param_groups for one in group["params"]]
        if known and given and not any(id(one) in known for one in given):
            n = len(given)
            moved = "a tensor that is no" if n == 1 else f"{n} tensors of which none is a"
            message = (
                f"{type(optimizer).__name__} updates {moved} parameter of the model, so that its values and "
                "gradients are not seen: it was made for another model, for copies that functional_call is "
                "given, or for tensors that stand alone, as a temperature does"
            )
            if sum(one.numel() for one in given) <= FEW_NUMBERS:
                self._loose.add(self._names[optimizer])
                self._unsaid = message
            else:
                self._engine.guard.notice("strangers", message)

    def detach(self) -> None:
        """Give back what is watched besides the optimizers. Idempotent."""
        self.scalers.detach()
        if self.objectives is not None:
            self.objectives.detach()
            if self._engine.open:
                self._engine.guard.run("loss/objective", self.objectives.close)
        if self._engine.open and self._skipped_told != self.scalers.skipped:  # no step was made since
            self._engine.guard.run("optimizer/skipped_steps", self._add_skipped)
        self._clipping.detach()
        if self.checks is not None:
            self.checks.detach()

    def __contains__(self, optimizer: object) -> bool:
        return optimizer in self._names

    def __len__(self) -> int:
        return len(self._names)

    def named(self) -> dict[str, Optimizer]:
        """The optimizers by their names."""
        return {name: optimizer for optimizer, name in self._names.items()}

    def moved(self) -> set[int]:
        """Ids of what the optimizers move; of several, as of the beginning of the step."""
        return set().union(*map(moved_by, self._names)) if self.alone else self._players.moved

    def known(self) -> set[int]:
        """Ids of what the optimizers move, and of what the models hold."""
        return self.moved().union(id(value) for _, value in self.parameters.live())

    @property
    def has_closure(self) -> bool:
        """Whether the last step was given a closure, which computes gradients within it."""
        return self._closure

    # -- the two hooks ----------------------------------------------------------------------------

    def before(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The optimizer is about to step: gradients are complete, clipped and unscaled."""
        engine = self._engine
        if self._late is optimizer or (self._loose and self._is_repeated(optimizer)):
            return
        if self._names[optimizer] in self._stepped - self._loose:
            # A second time: the others do not take part in every step.
            self._expected = set(self._stepped)
            self._close()
        first = not self._stepped
        engine.before_step()
        self.scalers.steps_seen += 1
        self._resting = self._may_rest(optimizer, args, kwargs)
        if self._resting:
            self._closure = False
            return
        name = self._names[optimizer]
        self._note_player(name, look=first)
        if self._skipped_told != self.scalers.skipped:
            engine.guard.run("optimizer/skipped_steps", self._add_skipped)
        self._closure = (len(args) > 1 or bool(kwargs)) and any(map(callable, (*args[1:], *kwargs.values())))
        self.within_closure = self._closure
        due = engine.mask
        if self.checks is not None:
            self.checks.before_step(optimizer, closure=self._closure, first=first)
        if "found_inf" in optimizer.__dict__:
            engine.guard.run("optimizer/skipped_steps", self._note_fused_skip, optimizer, due)
        if due & (self._optimizer_mask | self.parameters.mask):
            self._read_before(optimizer, name, due, first=first)

    def _read_before(self, optimizer: Optimizer, name: str, due: int, *, first: bool) -> None:
        """Read what is due before the step."""
        guard, live = self._engine.guard, self.parameters.live()
        self._owned = self._ids(optimizer, live, first=first)
        if not self._closure:
            self._read(optimizer, name, due, live, values=first)
        elif first:
            record = partial(self.parameters.record, values=True, gradients_of=None)
            guard.run("parameters", record, live, due)
        if due & self._optimizer_mask:
            copy = partial(self._updates.before, closure=self._closure)
            guard.run("optimizer/update_ratio", copy, live, due, self._owned)

    def after(self, optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:
        """The optimizer has stepped."""
        engine = self._engine
        if self._late is optimizer:
            self._late = None
            return
        if self._resting:
            self._resting = False
            if self.checks is not None:
                self.checks.after_rest(optimizer)
            engine.close_step()
            return
        name = self._names[optimizer]
        self.within_closure = False
        self._read_after(optimizer, name)
        if self.checks is not None:
            self.checks.after_step(optimizer)
        self._stepped.add(name)
        if self._stepped >= self._expected or self._stepped >= self._still_expected():
            if self._fresh or engine.rootless or not engine.forwards:
                self._look_for_roots()
            self._close()
        elif engine.rootless:
            engine.watch_layers()

    def _read_after(self, optimizer: Optimizer, name: str) -> None:
        """Read what is due and known after the step only."""
        engine = self._engine
        if engine.mask & self._optimizer_mask:
            engine.guard.run("optimizer/update_ratio", self._updates.after)
        if isinstance(optimizer, TellingOptimizer):
            engine.guard.run("optimizer/grad_norm", self._take_told, optimizer, name)
        if self._closure:
            engine.enter_train_step()
            live = self.parameters.live()
            self._owned = self._ids(optimizer, live, first=not self._stepped)
            self._read(optimizer, name, engine.mask, live, values=False)

    def _is_repeated(self, optimizer: Optimizer) -> bool:
        """Whether an optimizer of numbers that stand alone steps once more after the step of the model."""
        engine, name = self._engine, self._names[optimizer]
        if self.alone or name not in self._loose or self._stepped:
            return False
        if engine.forwards or engine.rootless or not engine.step:  # it begins a step
            return False
        self._late = optimizer
        self._note_player(name, look=False)
        return True

    def _still_expected(self) -> set[str]:
        """Optimizers that take part in each step, without those that the program has no longer."""
        if len(self._names) != self._live:
            live = set(self._names.values())
            self._expected = self._expected & live or live
            self._live = len(live)
            self.alone = self._live == 1
        return self._expected

    def _may_rest(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Whether this step is an ordinary one of a single optimizer at which nothing is due.

        Then its boundaries are all that happens: small models make such steps in a few milliseconds, of
        which each further call of ours is a thousandth.
        """
        engine, checks, losses = self._engine, self.checks, self.objectives
        return (
            self.alone
            and not engine.mask & engine.costly
            and engine.forwards > 0
            and not (self._fresh or engine.rootless or self._stepped or self._telling)
            and not (len(args) > 1 or kwargs or "found_inf" in optimizer.__dict__)
            and self._skipped_told == self.scalers.skipped
            and (losses is None or not (losses.accumulation.held or losses.unplaced or losses.added.held))
            and (checks is None or checks.rests(optimizer))
        )

    def on_skipped(self, optimizer: Optimizer) -> None:
        """A GradScaler left out a step because of infinite gradients."""
        engine = self._engine
        engine.enter_train_step()
        self._norms.clear()  # those gradients are gone
        if optimizer in self._names:
            self._note_player(self._names[optimizer], look=True)
        if self.objectives is not None:
            engine.guard.run("loss/objective", self.objectives.end_passes)
        if self.checks is not None:
            self.checks.skipped(optimizer, self.scalers.in_a_row, self.scalers.scale)
        if engine.mask and optimizer in self._names:
            live = self.parameters.live()
            self._owned = self._ids(optimizer, live, first=True)
            record = partial(self.parameters.record, values=False, gradients_of=self._owned)
            engine.guard.run("parameters", record, live, engine.mask)

    def _note_player(self, name: str, *, look: bool) -> None:
        """What ``backward`` was called on last was this optimizer's, and of those that move the same.

        Parameters
        ----------
        look
            Whether to see if one was given more parameters; what was not seen is seen at the next step.
        """
        if self.objectives is not None and not self.alone:
            if look:
                self._players.look()
            self.objectives.stepped(name, self._players.rivals_of(name))

    def _concerns(self, optimizer: Optimizer) -> bool:
        """Whether an optimizer is ours, or will be with its first step: it moves parameters of the model."""
        if self._names:
            return optimizer in self._names
        known = {id(value) for _, value in self.parameters.live()}
        return any(id(one) in known for group in optimizer.param_groups for one in group["params"])

    def _add_skipped(self) -> None:
        """The steps left out so far, once in a step: several rows of it would merge to their mean."""
        self._skipped_told = self.scalers.skipped
        key, membership = self._engine.key("optimizer/skipped_steps", Kind.OPTIMIZER)
        if membership.mask:
            self._engine.recorder.add_scalar(key, float(self.scalers.skipped))

    def _note_fused_skip(self, optimizer: Optimizer, due: int) -> None:
        """A fused optimizer is called, and leaves its step out itself: that still counts as a step."""
        found = getattr(optimizer, "found_inf", None)
        if found is None:
            return
        membership = self._engine.key("optimizer/skipped_steps", Kind.OPTIMIZER)[1]
        if (found.device.type == "cpu" or membership.mask & due) and float(
            found
        ) > 0:  # no waiting for a device
            self.scalers.skipped += 1
            self._add_skipped()

    # -- reading ----------------------------------------------------------------------------------

    def _look_for_roots(self) -> None:
        """A whole step without a root forward: the model runs inside compiled code, or by its parts."""
        engine = self._engine
        if not engine.forwards_ever or not (engine.forwards or self._fresh):
            engine.rootless = True
        elif engine.forwards and not engine.mask & engine.module_bits:
            engine.rootless = False  # nothing was forced to run eagerly, and still it was seen
        self._fresh = False

    def _before_clipping(self, parameters: list[torch.Tensor]) -> None:
        engine = self._engine
        if engine.open and engine.mask & self._optimizer_mask and not within_graph(engine):
            engine.guard.run("optimizer/grad_norm", self._note_unclipped, {id(one) for one in parameters})

    def _note_unclipped(self, clipped: set[int]) -> None:
        live = self.parameters.live()
        own = {name: self._ids(one, live, first=len(self._names) == 1) for one, name in self._names.items()}
        self._norms.before_clipping(clipped, own)

    def _close(self) -> None:
        if self._unsaid:
            if self.alone:
                self._engine.guard.notice("strangers", self._unsaid)
            self._unsaid = ""
        self._stepped.clear()
        self._norms.clear()
        if self.checks is not None:
            self.checks.close_step()
        if self.objectives is not None:
            self._engine.guard.run("loss/objective", self.objectives.close)
        self._engine.close_step()

    def _read(self, optimizer: Optimizer, name: str, due: int, live: Live, *, values: bool) -> None:
        guard = self._engine.guard
        if due & self._optimizer_mask:
            guard.run("optimizer/lr", self._rates, optimizer, name, due)
        scale = guard.run("optimizer/scale", self._fused_scale, optimizer) or 1.0
        record = partial(self.parameters.record, values=values, gradients_of=self._owned, scale=scale)
        norm = guard.run("parameters", record, live, due)
        if due & self._optimizer_mask:
            if isinstance(optimizer, TellingOptimizer):
                self._norms.see(norm)
            else:
                put = partial(self._norms.record, owned=self._owned, scale=scale)
                guard.run("optimizer/grad_norm", put, name, self._suffix(name), due, norm)

    def _rates(self, optimizer: Optimizer, name: str, due: int) -> None:
        for index, group in enumerate(optimizer.param_groups):
            rate = group.get("lr")
            key, membership = self._engine.key(f"optimizer/lr/{self.prefix(name)}{index}", Kind.OPTIMIZER)
            if rate is not None and membership.mask & due:
                self._engine.recorder.add_scalar(key, float(rate))

    def _take_told(self, optimizer: TellingOptimizer, name: str) -> None:
        """What it tells of the step: that it was left out, or the norm of its gradients."""
        if optimizer.left_out:
            self.scalers.left_out()
            self._add_skipped()
            if self.checks is not None:
                self.checks.skipped(optimizer, self.scalers.in_a_row, optimizer.grad_scale or 1.0)
        elif (due := self._engine.mask) & self._optimizer_mask:
            self._norms.record_told(optimizer, self._suffix(name), due)

    def _suffix(self, name: str) -> str:
        """What stands behind the name of a series of one optimizer."""
        return f"/{name}" if self.prefix(name) else ""

    def prefix(self, name: str) -> str:
        """What stands before the number of a parameter group in the name of a series."""
        return f"{name}." if len(self._names) > 1 else ""

    def _fused_scale(self, optimizer: Optimizer) -> float:
        """The scale that a fused optimizer is about to take out of the gradients itself."""
        scale = getattr(optimizer, "grad_scale", None)
        return float(scale) if scale is not None else 1.0

    def _ids(self, optimizer: Optimizer, live: Live, *, first: bool) -> set[int]:
        """Parameters of this optimizer; with the first one of a step, also those of none."""
        owned = moved_by(optimizer)
        if first:
            others = {
                id(one)
                for other in self._names
                if other is not optimizer
                for group in other.param_groups
                for one in group["params"]
            }
            owned |= {id(value) for _, value in live} - others
        return owned
