"""Images that are not normalised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Mode, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding, TensorKey
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.view import RunView

__all__ = ["CheckInputImages"]


@rule("check_input_images", title="Input images")
@dataclass(frozen=True, kw_only=True)
class CheckInputImages(Rule):
    """Images that go into the model on a scale it was not made for.

    Pixels from 0 to 1 train well without a mean of zero, so that alone is no trouble. What is found are
    values far from 1 (pixels from 0 to 255), hardly any contrast, or a mean many times the spread, over
    `threshold_samples` images of the first recorded steps.

    With `classic`, the condition of SageMaker Debugger to the letter: after `threshold_samples` images the
    mean of a channel is above `threshold_mean` in size (AWS developer guide, CheckInputImages).
    """

    explains: ClassVar = NOT_LEARNING

    max_scale: float = 10.0
    """Largest root mean square of the pixels."""
    min_std: float = 0.01
    """Least standard deviation of the pixels."""
    max_offset: float = 10.0
    """Largest mean, in standard deviations."""
    threshold_samples: int = 500
    """Images that are needed (AWS developer guide)."""
    regex: str | None = None
    """Names of the images; None for the input, with three or four dimensions, of the first layer."""
    window: int = 64
    """Recorded steps over which images are gathered."""
    classic: bool = False
    threshold_mean: float = 0.2
    """Classic: largest mean of a channel, in size."""
    channel: int = 1
    """Classic: axis of the channels."""

    _ADVICE: ClassVar = (
        "Divide pixels by 255, then subtract the mean and divide by the standard deviation of each channel.",
        "Use the normalisation that a pretrained model was trained with.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("max_scale", "max_offset", above=0)
        self.require("min_std", "threshold_mean", at_least=0)
        self.require("threshold_samples", "window", "channel", at_least=1)

    def needs(self) -> Needs:
        """Inputs; classic: with raw values where there are, for means of channels."""
        return Needs(kinds=(Kind.INPUT, Kind.CUSTOM), steps=self.window, raw=self.classic)

    def not_applicable(self, run: RunView) -> str:
        """No images."""
        if self._images(run) is not None:
            return ""
        return (
            "No input images were recorded so far: collections={'inputs': True} in attach(), or "
            "handle.record('images', x) and regex='images'."
        )

    def check(self, step: int, run: RunView) -> Finding | None:
        """Judge the images of the recorded steps so far."""
        key = self._images(run)
        if key is None:
            return None
        mode = run.modes[0] if run.modes else Mode.TRAIN
        frames = [frame for frame in run.frames(key.kind, self.window, mode) if key.name in frame.index]
        images = sum(_images_in(frame, key.name) for frame in frames)
        if not frames or frames[-1].step != step or images < self.threshold_samples:
            return None
        return self._classic(step, run, key, frames) if self.classic else self._scale(step, key, frames)

    def _images(self, run: RunView) -> TensorKey | None:
        if self.regex is not None:
            return next(iter(run.tensors(regex=self.regex)), None)
        first = next(iter(run.tensors(Kind.INPUT)), None)
        return first if first is not None and len(first.shape) in {3, 4} else None

    def _scale(self, step: int, key: TensorKey, frames: list[Frame]) -> Finding | None:
        rows = [(frame.block, frame.index[key.name]) for frame in frames]
        counts = np.array([block.finite_count[row] for block, row in rows], np.float64)
        n = counts.sum()
        if n == 0:
            return None
        mean = float(
            np.nansum([block.mean[row] * c for (block, row), c in zip(rows, counts, strict=True)]) / n
        )
        square = float(np.nansum([block.l2[row] ** 2 for block, row in rows]) / n)
        std = float(np.sqrt(max(square - mean**2, 0.0)))
        told = {"mean": mean, "std": std, "steps_count": len(frames)}
        if square**0.5 > self.max_scale:
            message = f"{key.name} is on a scale of {square**0.5:.3g}, not of about 1"
        elif std < self.min_std:
            message = f"{key.name} has hardly any contrast: its standard deviation is {std:.2g}"
        elif abs(mean) > self.max_offset * std:
            message = f"{key.name} has a mean of {mean:.3g}, {abs(mean) / std:.0f} standard deviations from 0"
        else:
            return None
        return self._found(step, key, f"{message} (mean {mean:.3g}, std {std:.3g}).", told)

    def _classic(self, step: int, run: RunView, key: TensorKey, frames: list[Frame]) -> Finding | None:
        means = [one for frame in frames if (one := self._channel_means(run, key, frame)) is not None]
        means = [one for one in means if len(one) == len(means[-1])]
        mean = np.mean(means, axis=0)
        worst = int(np.abs(mean).argmax())
        if abs(mean[worst]) <= self.threshold_mean:
            return None
        message = f"Channel {worst} of {key.name} has a mean of {mean[worst]:.3g}, not of about 0."
        return self._found(step, key, message, {"channel": worst, "mean": float(mean[worst])})

    def _channel_means(self, run: RunView, key: TensorKey, frame: Frame) -> NDArray[np.float64] | None:
        raw = run.raw(key.name, frame.step, frame.mode)
        if raw is not None and raw.ndim > self.channel:
            axes = tuple(axis for axis in range(raw.ndim) if axis != self.channel)
            return np.asarray(raw.mean(axis=axes), np.float64)
        row, block = frame.index[key.name], frame.block
        means = block.channel_mean[block.channel_offsets[row] : block.channel_offsets[row + 1]]
        return (means if len(means) else block.mean[row : row + 1]).astype(np.float64)

    def _found(self, step: int, key: TensorKey, message: str, told: dict[str, float | int]) -> Finding:
        view = ViewRef("histogram", {"tensor": key.name})
        return self.finding(step, message, key=key, evidence=told, advice=self._ADVICE, view=view)


def _images_in(frame: Frame, name: str) -> int:
    key = frame.keys[frame.index[name]]
    per_image = int(np.prod(key.shape[1:])) if len(key.shape) > 1 else 1
    return int(frame.block.count[frame.index[name]]) // max(per_image, 1)
