"""Sequences that are mostly one token: padding, or unknown words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Kind, Mode, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.view import RunView

__all__ = ["NLPSequenceRatio"]

_SHARE = "check/token_share"
_EXACT_BELOW = 8
"""Whole numbers below have a bin of their own."""
_EVALUATIONS, _FAR_LESS = 2, 30.0
"""Evaluations that are needed, and points by which the share of a token in each of them must be lower for
training not to see the same sequences: that of padding changes by some points with the rows kept back."""


@rule("nlp_sequence_ratio", title="Ratio of tokens in sequences")
@dataclass(frozen=True, kw_only=True)
class NLPSequenceRatio(Rule):
    """Token ids that make up too much of the sequences.

    Much padding wastes time and is harmless where it is masked: that is a notice, when the share over
    `patience` recorded steps is above the threshold; above `threshold_warning` percent a warning, for
    hardly anything but that token is learnt from. Where token ids were not recorded, the commonest token of
    each saved batch is known for models of PyTorch that embed their first input; if it is none of
    `token_values` it counts from `threshold_warning` on. Where evaluations have far less of it in rows of the
    same length, training does not see what is in them: a warning.

    With `classic`, the condition of SageMaker Debugger to the letter: the share of a token in one recorded
    step is above its threshold (AWS developer guide, NLPSequenceRatio).
    """

    token_values: str = "0"  # noqa: S105 - no password
    """Token ids, joined by commas. Ids from 8 on need raw values (AWS developer guide: 0)."""
    token_thresholds_percent: str = "50"  # noqa: S105
    """Largest share of each token, percent, joined by commas (AWS developer guide: 50)."""
    threshold_warning: float = 90.0
    """Share, percent, from which it is a warning: a step then costs ten times what its tokens need."""
    patience: int = 10
    """Recorded steps over which shares are averaged."""
    regex: str = r"(?i)embedding\d*_input|^input/.*(embed|wte|tok)|input_ids|^tokens?$"
    """Names of token ids."""
    classic: bool = False

    _ADVICE: ClassVar = (
        "Much padding: put sequences of like length into one batch (bucketing).",
        "Many unknown words: use another vocabulary or a subword tokenizer.",
        "Check that padding is masked in attention and left out of the loss (ignore_index).",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("threshold_warning", at_least=0, at_most=100)
        self.require("patience", at_least=1)
        tokens, limits = self._limits_of("token_values"), self._limits_of("token_thresholds_percent")
        if len(tokens) != len(limits):
            raise ConfigError(
                f"{self.name}.token_thresholds_percent has {len(limits)} numbers; expected {len(tokens)}, "
                "one for each of token_values."
            )

    def needs(self) -> Needs:
        """Token ids: inputs of an embedding, or recorded."""
        kinds = (Kind.INPUT, Kind.CUSTOM, Kind.CHECK)
        return Needs(kinds=kinds, regex=f"{self.regex}|^{_SHARE}$", steps=self.patience, raw=True)

    def not_applicable(self, run: RunView) -> str:
        """No token ids."""
        if run.tensors(Kind.INPUT, Kind.CUSTOM, regex=self.regex):
            return ""
        if run.tensors(Kind.CHECK, regex=f"^{_SHARE}$") and not self.classic:
            return ""
        return (
            "No token ids were recorded so far: collections={'inputs': True} in attach() captures "
            "those that go into an embedding, or handle.record('tokens', ids)."
        )

    def check(self, step: int, run: RunView) -> Finding | None:
        """Measure the share of each token."""
        recorded = run.tensors(Kind.INPUT, Kind.CUSTOM, regex=self.regex)
        if not recorded and not self.classic:
            return self._commonest(step, run)
        for key in recorded:
            for mode in run.modes or [Mode.TRAIN]:
                frames = [one for one in run.frames(key.kind, self.patience, mode) if key.name in one.index]
                frames = frames[-1:] if self.classic else frames
                enough = self.classic or len(frames) == self.patience
                if not frames or frames[-1].step != step or not enough:
                    continue
                found = self._judge(step, run, key, frames)
                if found is not None:
                    return found
        return None

    def _judge(self, step: int, run: RunView, key: TensorKey, frames: list[Frame]) -> Finding | None:
        limits = zip(
            self._limits_of("token_values"), self._limits_of("token_thresholds_percent"), strict=True
        )
        for token, limit in limits:
            shares = [_share(run, frame, key.name, int(token)) for frame in frames]
            known = [share for share in shares if share is not None]
            percent = 100.0 * float(np.mean(known)) if known else 0.0
            if percent > limit:
                view = ViewRef("histogram", {"tensor": key.name})
                return self._found(step, key, (int(token), percent, limit), len(known), view)
        return None

    def _commonest(self, step: int, run: RunView) -> Finding | None:
        """The token that was the commonest of the last saved batches, where it is always the same."""
        series = run.scalars(_SHARE)
        if not len(series.steps) or series.steps[-1] != step:
            return run.active
        tokens = run.scalars("check/token").values[-self.patience :]
        if len(tokens) < self.patience or (tokens != tokens[0]).any():
            return None
        percent = 100.0 * float(series.values[-self.patience :].mean())
        limits = dict(
            zip(self._limits_of("token_values"), self._limits_of("token_thresholds_percent"), strict=True)
        )
        limit = limits.get(float(tokens[0]), self.threshold_warning)
        if percent <= limit:
            return None
        view = ViewRef("scalars", {"tensors": [_SHARE]})
        share = int(tokens[0]), percent, limit
        return self._found(step, None, share, len(tokens), view, held=_elsewhere(run, share))

    def _found(
        self,
        step: int,
        key: TensorKey | None,
        share: tuple[int, float, float],
        steps: int,
        view: ViewRef,
        *,
        held: float | None = None,
    ) -> Finding:
        """A token with its share and its limit, percent; `held` is a much lower one of evaluations."""
        token, percent, limit = share
        high = self.classic or percent > self.threshold_warning or held is not None
        less = "" if held is None else f" In evaluations it is {held:.0f} %, in rows of the same length."
        return self.finding(
            step,
            f"{percent:.0f} % of {key.name if key else 'the input'} is token {token}, more than {limit:g} %."
            f"{less}",
            severity=Severity.WARNING if high else Severity.NOTICE,
            key=key,
            evidence={"token": token, "share_percent": round(percent, 2), "steps_count": steps},
            advice=self._ADVICE,
            view=view,
        )

    def _limits_of(self, name: str) -> list[float]:
        text = str(getattr(self, name))
        try:
            return [float(part) for part in text.split(",")]
        except ValueError:
            raise ConfigError(
                f"{self.name}.{name} is {text!r}; expected numbers joined by commas, like '0,1'."
            ) from None


def _elsewhere(run: RunView, share: tuple[int, float, float]) -> float | None:
    """What share of evaluations the same token makes up, percent, if that is far less in rows as long."""
    found = {
        mode: [run.scalars(f"check/{fact}", mode).values for fact in ("token", "token_share", "token_row")]
        for mode in (Mode.TRAIN, Mode.EVAL)
    }
    tokens, shares, rows = found[Mode.EVAL]
    if len(shares) < _EVALUATIONS or not len(found[Mode.TRAIN][2]) or rows[-1] != found[Mode.TRAIN][2][-1]:
        return None
    same = np.where(tokens == share[0], shares, np.minimum(shares, 1 - shares))
    most = 100.0 * float(same.max())
    return most if most < share[1] - _FAR_LESS else None


def _share(run: RunView, frame: Frame, name: str, token: int) -> float | None:
    """Share of a token, 0 to 1; None where neither raw values nor statistics tell."""
    raw = run.raw(name, frame.step, frame.mode)
    if raw is not None and raw.size:
        return float((raw == token).mean())
    block, row = frame.block, frame.index[name]
    n = int(block.count[row])
    if not n:
        return None
    if token == 0:
        return float(block.zero_count[row]) / n
    if not 0 < token < _EXACT_BELOW:
        return None
    own = slice(int(block.hist_offsets[row]), int(block.hist_offsets[row + 1]))
    wanted = int(np.float32(token).view(np.uint32)) >> 21
    counts = block.hist_counts[own][block.hist_bins[own] == wanted]
    return float(counts.sum()) / n
