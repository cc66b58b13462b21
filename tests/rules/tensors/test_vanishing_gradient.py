from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tdbg_lab.records import Severity
from tdbg_lab.rules import VanishingGradient
from tests.rules.made import Made

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


def write(
    made: Made,
    ratio: Callable[[int], float],
    loss: Callable[[int], float] | None,
    *,
    steps: int = 60,
    size: float = 1e-2,
    **more: Any,
) -> Made:
    """Three layers; the gradients of the first two are `ratio` of that of the last."""
    weight = np.random.default_rng(0).normal(size=(8, 8))
    for step in range(steps):
        noise = np.random.default_rng(step).normal(size=(8, 8)) * size
        tensors = {f"{name}.weight": weight for name in "abc"}
        tensors |= {
            f"gradient/{name}.weight": noise * factor
            for name, factor in zip("abc", (ratio(step), ratio(step), 1.0), strict=True)
        }
        if loss is not None:
            tensors["loss/x"] = loss(step) + np.random.default_rng(step + 999).normal() * 0.01
        made.step(step, tensors | more)
    return made


def test_early_layers_without_gradient_are_found_while_the_loss_is_stuck(made: Made) -> None:
    write(made, lambda _: 1e-6, lambda _: 2.3)
    (finding,), _ = made.check(VanishingGradient())
    assert finding.tensor == "gradient/a.weight"
    assert finding.evidence["relative_to_strongest"] == pytest.approx(1e-6, rel=0.01)
    assert finding.evidence["layers_count"] == 2
    assert finding.step_first == 20
    assert finding.severity is Severity.CRITICAL
    assert finding.view is not None
    assert finding.view.name == "overview"


@pytest.mark.parametrize(
    ("ratio", "loss"),
    [
        (lambda _: 1e-6, lambda step: 2.3 * 0.97**step),
        (lambda _: 1e-6, lambda _: 0.01 if _ > 5 else 2.3),
        (lambda _: 1e-2, lambda _: 2.3),
        (lambda step: 1e-6 if step % 4 else 1.0, lambda _: 2.3),
        (lambda step: 1e-6 if step < 15 else 1.0, lambda _: 2.3),
    ],
    ids=["loss falls", "converged", "usual spread", "now and then", "at the start"],
)
def test_healthy_gradients_are_left_alone(made: Made, ratio, loss) -> None:
    write(made, ratio, loss)
    assert made.check(VanishingGradient())[0] == []


def test_small_gradients_of_all_layers_alike_are_no_trouble_until_there_are_none(
    made: Made, tmp_path: Path
) -> None:
    write(made, lambda _: 1.0, lambda _: 2.3, size=1e-6)
    assert made.check(VanishingGradient())[0] == []
    none = write(Made(tmp_path / "none"), lambda _: 1.0, lambda _: 2.3, size=1e-9)
    (finding,), _ = none.check(VanishingGradient())
    assert finding.evidence["layers_count"] == 3


def test_without_a_loss_it_is_a_notice_only(made: Made) -> None:
    write(made, lambda _: 1e-6, None)
    (finding,), _ = made.check(VanishingGradient())
    assert finding.severity is Severity.NOTICE


def test_embedding_rows_that_were_not_used_do_not_count(made: Made) -> None:
    sparse = np.zeros((20_000, 4))
    sparse[:3] = 1e-2
    write(made, lambda _: 1.0, lambda _: 2.3, **{"gradient/embedding.weight": sparse})
    assert made.check(VanishingGradient())[0] == []


def test_rising_learning_rate_suspends_the_rule(made: Made) -> None:
    for step in range(60):
        write_step = {"optimizer/lr/0": 1e-5 * 1.1**step, "loss/x": 2.3}
        weight = np.ones((4, 4))
        made.step(step, write_step | {"gradient/a.weight": weight * 1e-9, "gradient/b.weight": weight})
    assert made.check(VanishingGradient())[0] == []


def test_exact_zeros_wait_for_the_dead_units_that_cause_them(made: Made) -> None:
    write(made, lambda _: 0.0, lambda _: 2.3, steps=60)
    (finding,), _ = made.check(VanishingGradient())
    assert "exactly zero" in finding.message
    for step in range(60, 80):
        made.step(step, {"activation/relu": np.zeros((64, 4)), "gradient/a.weight": np.zeros((4, 4))})
    alone, _ = made.check("dead_relu", VanishingGradient(patience_zero=70))
    assert [finding.rule for finding in alone] == ["dead_relu"]


def test_classic_condition_is_the_mean_absolute_gradient(made: Made) -> None:
    made.step(0, {"gradient/a.weight": np.full((3, 3), 2e-7)})
    made.step(1, {"gradient/a.weight": np.full((3, 3), -0.9e-7)})
    (finding,), _ = made.check(VanishingGradient(classic=True))
    assert (finding.step_first, finding.step_last) == (1, 1)
    assert finding.evidence["mean_abs_gradient"] == pytest.approx(0.9e-7)
    assert made.check(VanishingGradient(classic=True, threshold=1e-8))[0] == []


def test_part_that_begins_at_zero_is_no_measure_for_the_others(made: Made) -> None:
    weight, random = np.random.default_rng(0).normal(size=(8, 8)), np.random.default_rng(1)
    for step in range(60):
        slopes = {f"gradient/{name}.weight": 1e-2 * random.normal(size=(8, 8)) for name in "abc"}
        weights = {"a.weight": weight, "b.weight": weight, "c.weight": 1e-5 * weight}
        made.step(step, weights | slopes | {"loss/x": 2.3})
    assert made.check(VanishingGradient())[0] == []


@pytest.mark.parametrize("early", [1.0, 1e-6])
def test_queries_and_keys_are_left_alone_while_a_layer_before_them_has_a_gradient(
    made: Made, early: float
) -> None:
    weight = np.random.default_rng(0).normal(size=(8, 8))
    names = {"embed": early, "attention.query": 1e-6, "attention.k_proj": 1e-6, "attention.value": 1.0}
    for step in range(40):
        noise = np.random.default_rng(step).normal(size=(8, 8))
        tensors = {f"{name}.weight": weight for name in names}
        tensors |= {f"gradient/{name}.weight": noise * factor for name, factor in names.items()}
        made.step(step, tensors | {"loss/x": 2.3 + noise[0, 0] * 0.01})
    findings, _ = made.check(VanishingGradient())
    assert [one.evidence["layers_count"] for one in findings] == ([] if early == 1.0 else [3])


@pytest.mark.parametrize("early", [1.0, 1e-6])
def test_so_are_those_of_keras_whose_biases_have_an_axis_for_the_heads(made: Made, early: float) -> None:
    weight = np.random.default_rng(0).normal(size=(8, 8))
    names = {"embed/embeddings": early, "mha/query/kernel": 1e-6, "mha/key/kernel": 1e-6, "dense/kernel": 1.0}
    biases = {
        "mha/key/bias": 1e-12,
        "mha/value/bias": 10.0,
    }  # the second begins at zero: it is strong beyond measure
    for step in range(40):
        noise = np.random.default_rng(step).normal(size=(8, 8))
        tensors = dict.fromkeys(names, weight) | dict.fromkeys(biases, 0.01 * weight)
        tensors |= {f"gradient/{name}": noise * factor for name, factor in (names | biases).items()}
        made.step(step, tensors | {"loss/x": 2.3 + noise[0, 0] * 0.01})
    findings, _ = made.check(VanishingGradient())
    assert [one.evidence["layers_count"] for one in findings] == ([] if early == 1.0 else [3])


@pytest.mark.parametrize(("early", "found"), [(1e-6, False), (1e-12, True)], ids=["small", "vanished"])
def test_a_policy_is_compared_with_itself_and_not_with_its_critic(
    made: Made, early: float, *, found: bool
) -> None:
    gradients = {"policy.a": early, "policy.b": 1e-6, "critic.a": 1.0, "critic.b": 1.0}
    weight = np.random.default_rng(0).normal(size=(8, 8))
    for step in range(60):
        noise = np.random.default_rng(step).normal(size=(8, 8))
        tensors: dict[str, Any] = {f"optimizer/lr/{name}.0": 1e-3 for name in ("policy", "critic")}
        for name, size in gradients.items():
            tensors |= {f"{name}.weight": weight, f"gradient/{name}.weight": noise * size}
        made.step(step, tensors)
    findings, _ = made.check(VanishingGradient())
    assert [one.tensor for one in findings] == (["gradient/policy.a.weight"] if found else [])
