"""Whether the training loss leaves anything to be explained."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from tdbg_lab.records import Kind
from tdbg_lab.rules.losses.evidence import keeps_labels, sees_classes
from tdbg_lab.rules.middle import median
from tdbg_lab.rules.trend import trend_of

if TYPE_CHECKING:
    from tdbg_lab.rules.view import RunView

__all__ = [
    "LossState",
    "gathers",
    "is_game",
    "is_policy",
    "knows",
    "knows_nothing",
    "learns",
    "loss_state",
    "no_single_loss",
]

_LAST = 10
"""Values whose median says how good predictions are now."""
_NOTHING = 0.3
"""Agreement of predictions and labels (Cohen's kappa, correlation) below which nothing was learnt before."""
_ALIKE = 0.8
"""Correlation with the targets of a regression that explains two thirds of them."""
_LEARNT_FRAC = 0.1
"""A fall by this share of the start is no luck."""
_GATHERED = 3
"""Steps before which data were gathered, from which that is how all of it is made."""
_WORTH_FRAC = 0.005
"""A fall that is significant but smaller than this share of the start is not learning."""


class LossState(Enum):
    """What the only training loss does."""

    STUCK = "stuck"
    """Still high, and it does not fall."""
    FALLS = "falls"
    LOW = "low"
    """It has fallen far already: small gradients and updates are those of a converged model."""
    EARLY = "early"
    """Fewer than nine points."""
    UNKNOWN = "unknown"
    """There is none, or it need not fall: of several (GANs), of a program that gathers its own data."""


def loss_state(run: RunView, *, high_percent: float = 50.0, min_z: float = 2.0) -> LossState:
    """Judge the training loss up to the checked step.

    Parameters
    ----------
    run
        What was recorded.
    high_percent
        Loss, percent of its start, above which it is still high.
    min_z
        A fall of so many standard errors is no noise.
    """
    losses = run.losses()
    if len(losses) != 1 or is_game(run) or is_policy(run):
        return LossState.UNKNOWN
    trend = trend_of(run.scalars(losses[0]).values)
    if trend is None:
        return LossState.EARLY
    if trend.now < high_percent / 100.0 * trend.start:
        return LossState.LOW
    falls = trend.fall_z >= min_z and trend.fall_frac > _WORTH_FRAC
    return LossState.FALLS if falls else LossState.STUCK


def learns(run: RunView) -> bool:
    """Whether the only training loss falls, or has fallen and stays down.

    Or else, whether predictions have come to go with their labels and still do, as those of values that teach
    themselves. What is odd about a layer does little harm then.
    """
    state = loss_state(run)
    if state is not LossState.STUCK:
        return state in {LossState.FALLS, LossState.LOW}
    loss = run.losses()[0]
    trend = trend_of(run.scalars(loss).values)
    if trend is None:
        return False
    fall = trend.start - trend.now
    fell = fall > max(_LEARNT_FRAC * abs(trend.start), trend.noise) and trend.now - trend.best < 0.5 * fall
    return fell or keeps_labels(run, loss)


def knows(run: RunView, loss: str) -> bool:
    """Whether predictions are far better than chance already, as those of a trained model are.

    Parameters
    ----------
    run
        What was recorded.
    loss
        Name of a loss whose predictions and targets were seen, ``"loss/CrossEntropyLoss"``. Of classes, it
        must be below half of the entropy of the labels; of numbers, predictions must go with the targets.
    """
    values, entropy = run.scalars(loss).values, run.scalars(f"check/{loss}/entropy").values
    correlation = run.scalars(f"check/{loss}/correlation").values[-_LAST:]
    if len(entropy) and len(values):
        return float(median(values[-_LAST:])) < 0.5 * float(median(entropy[-_LAST:]))
    return len(correlation) > 0 and float(median(correlation)) > _ALIKE


def knows_nothing(run: RunView) -> bool:
    """Whether the first predictions that a loss was given go with its labels no more than by chance."""
    found = []
    for name in run.losses():
        hits, chance, numbers = (
            run.scalars(f"check/{name}/{fact}").values[:1] for fact in ("hits", "chance", "correlation")
        )
        if len(hits) and len(chance):
            found.append(float((hits[0] - chance[0]) / max(1 - chance[0], 1e-6)))
        elif len(numbers):
            found.append(float(numbers[0]))
    return bool(found) and max(found) < _NOTHING


def is_game(run: RunView) -> bool:
    """Whether several models are trained, each with an optimizer of its own: their losses need not fall.

    Optimizers that take turns are players, whatever they are called. Several optimizers for the parts of one
    model, which step on the gradients of one backward pass, are no game.
    """
    if len(run.scalars("check/turns").values):
        return True
    players = {
        key.name.removeprefix("optimizer/lr/").rpartition(".")[0]
        for key in run.tensors(Kind.OPTIMIZER, regex=r"^optimizer/lr/.*[.]")
    }
    if len(players) < 2:
        return False
    return players == {key.name.partition(".")[0] for key in run.tensors(Kind.WEIGHT)}


def gathers(run: RunView) -> bool:
    """Whether a batch was gathered by the program: by what its model did without gradients."""
    return _gathered(run) > 0


def is_policy(run: RunView) -> bool:
    """Whether the loss is one of a program that gathers its own data, and not of classes that are told.

    It is of other data each time: a better policy earns more, and the errors of what it expects are larger.
    Numbers that it learns are what it expects itself: they say nothing of how good it is.
    """
    return _gathered(run) >= _GATHERED and not any(sees_classes(run, loss) for loss in run.losses())


def _gathered(run: RunView) -> float:
    """Steps before which data were gathered, three at most; 0 where none were seen."""
    found = run.scalars("check/gathers").values
    return float(found[-1]) if len(found) else 0.0


def no_single_loss(run: RunView, game: str) -> str:
    """Why a rule on one training loss has nothing to judge; ``""`` when it has.

    Parameters
    ----------
    game
        What losses may do in a game, for the sentence: ``"need not fall"``.
    """
    names = run.losses()
    if not names:
        return "No training loss was recorded so far."
    if len(names) > 1 or is_game(run):
        return f"Several losses or models were recorded: in a game losses {game}."
    if is_policy(run):
        return f"The program gathers its own data, as one that learns by acting: its loss {game}."
    return ""
