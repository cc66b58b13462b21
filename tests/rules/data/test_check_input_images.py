from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from tdbg_lab.errors import ConfigError
from tdbg_lab.rules import CheckInputImages, check_run
from tests.rules import nets
from tests.rules.made import Made

if TYPE_CHECKING:
    from pathlib import Path


class Scaled(torch.nn.Sequential):
    factor = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x * self.factor)


@pytest.mark.parametrize(("factor", "fires"), [(255.0, True), (1.0, False), (0.01, True)])
def test_pixels_up_to_255_are_found_and_those_up_to_1_are_not(tmp_path: Path, factor: float, fires) -> None:
    torch.manual_seed(0)
    model = Scaled(*nets.cnn())
    model.factor = factor
    run = nets.train(
        tmp_path / "run",
        model,
        torch.optim.SGD(model.parameters(), 1e-4),
        image=True,
        steps=60,
        collections=["inputs", "losses"],
    )
    assert bool(check_run(run, [CheckInputImages(regex="^input/0$")])[0]) is fires


@pytest.mark.parametrize(
    ("mean", "images", "fires"), [(0.25, 500, True), (0.2, 500, False), (0.25, 499, False)]
)
def test_classic_judges_the_mean_once_there_are_enough(
    tmp_path: Path, mean: float, images: int, fires
) -> None:
    made = Made(tmp_path / "run").step(0, {"input/conv": np.full((images, 1, 2, 2), np.float32(mean))})
    rule = CheckInputImages(classic=True, threshold_mean=float(np.float32(0.2)))
    assert bool(made.check(rule)[0]) is fires


def test_run_without_images_says_how_to_record_them(tmp_path: Path) -> None:
    made = Made(tmp_path / "run").step(0, {"input/lin": np.ones((4, 4))})
    assert "collections={'inputs': True}" in made.check(CheckInputImages())[1]["check_input_images"].reason


def test_no_images_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"check_input_images.threshold_samples is 0"):
        CheckInputImages(threshold_samples=0)
