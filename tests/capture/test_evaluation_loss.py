"""What the function that computes the loss of a training says in evaluations."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from loss_training import LOSS, made, step, told
from torch import nn
from torch.nn import functional as F

from tdbg_lab import run_rules
from tdbg_lab.capture.pytorch.loss_functions import FUNCTIONS

HEARD = [(one.owner, one.name) for one in FUNCTIONS]
ORIGINALS = [getattr(*one) for one in HEARD]


def batch(seed, n=6):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 4, generator=generator), torch.randint(0, 3, (n,), generator=generator)


def train(model, optimizer, loss_of, steps=4):
    """Steps of a training; gives the losses."""
    model.train()
    return [step(optimizer, loss_of(model(x), y)) for x, y in map(batch, range(steps))]


def evaluate(model, loss_of, seeds=(50, 51)):
    """The losses of an evaluation."""
    model.eval()
    with torch.no_grad():
        return [loss_of(model(x), y).item() for x, y in map(batch, seeds)]


def of_classes(logits, y, **how):
    return F.cross_entropy(logits, y, **how)


def of_likelihoods(logits, y, **how):
    return F.nll_loss(F.log_softmax(logits, 1), y, **how)


def of_soft_labels(logits, y, **how):
    return F.cross_entropy(logits, F.one_hot(y, 3).float() * 0.9 + 0.1 / 3, **how)


def of_numbers(outputs, y, **how):
    return F.mse_loss(outputs, F.one_hot(y, 3).float(), **how)


def of_answers(outputs, y, **how):
    return F.binary_cross_entropy_with_logits(outputs, F.one_hot(y, 3).float(), **how)


def of_counts(outputs, y, **how):
    return F.poisson_nll_loss(outputs, F.one_hot(y, 3).float(), **how)


def of_divergence(outputs, y, reduction="batchmean"):
    return F.kl_div(F.log_softmax(outputs, 1), F.one_hot(y, 3) * 0.9 + 0.1 / 3, reduction=reduction)


LOSSES = [
    of_classes,
    of_likelihoods,
    of_soft_labels,
    of_numbers,
    of_answers,
    of_counts,
    of_divergence,
    partial(of_classes, label_smoothing=0.1),
    partial(of_classes, weight=torch.tensor([1.0, 2.0, 5.0])),
    partial(of_classes, ignore_index=1),
]


@pytest.mark.filterwarnings("ignore:reduction")  # "mean" of a divergence is not its mathematical one
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss_of", LOSSES)
def test_evaluation_tells_the_loss_of_the_training(attach, loss_of, reduction):
    """Whatever it is reduced to there: programs sum it up, and divide it by the number of rows at the end."""
    model, optimizer = made()
    losses, evaluated = [], []
    with attach(model, optimizer=optimizer) as handle:
        for _ in range(2):
            losses += train(model, optimizer, loss_of)
            evaluated.append(sum(evaluate(model, loss_of)) / 2)
            evaluate(model, lambda x, y: loss_of(x, y, reduction=reduction).sum())
    assert told(handle.run, mode="train") == pytest.approx(losses)
    assert told(handle.run) == pytest.approx(evaluated)
    assert handle.run.tensor_names(kind="loss") == [LOSS]
    assert not handle.problems


@pytest.mark.parametrize("scale", [1, 0.5, 3])
def test_a_scaled_loss_is_scaled_in_evaluations_too(attach, scale):
    model, optimizer = made()
    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, lambda x, y: scale * of_classes(x, y))
        evaluated = evaluate(model, of_classes)
    assert told(handle.run) == pytest.approx([scale * sum(evaluated) / 2])


def test_an_accumulated_loss_is_told_as_it_was_before_it_was_divided(attach):
    model, optimizer = made()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with attach(model, optimizer=optimizer) as handle:
        for step in range(3):
            for seed in range(4):
                x, y = batch(4 * step + seed)
                scaler.scale(of_classes(model(x), y) / 4).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        evaluated = evaluate(model, of_classes)
    assert told(handle.run) == pytest.approx([sum(evaluated) / 2])
    assert told(handle.run)[0] / told(handle.run, mode="train")[-1] == pytest.approx(1, abs=0.5)


class WithLoss(nn.Module):
    """Returns its loss beside what it gives."""

    def __init__(self):
        super().__init__()
        self.body, _ = made()

    def forward(self, x, y):
        logits = self.body(x)
        return logits, F.cross_entropy(logits, y)


def test_loss_that_a_model_computes_itself(attach):
    model = WithLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer) as handle:
        for seed in range(4):
            optimizer.zero_grad()
            model(*batch(seed))[1].backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            evaluated = [model(*batch(seed))[1].item() for seed in (50, 51, 52)]
    assert told(handle.run) == pytest.approx([sum(evaluated) / 3])


def test_loss_module_that_was_not_given(attach):
    model, optimizer = made()
    criterion = nn.CrossEntropyLoss()
    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, criterion)
        evaluated = evaluate(model, criterion)
    assert told(handle.run) == pytest.approx([sum(evaluated) / 2])


def test_an_evaluation_with_gradients_is_one_too(attach):
    model, optimizer = made()
    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, of_classes)
        model.eval()
        value = of_classes(model(batch(50)[0]), batch(50)[1]).item()
    assert told(handle.run) == pytest.approx([value])


def test_a_model_that_is_called_by_its_parts(attach):
    model, optimizer = made()

    def step(seed):
        x, y = batch(seed)
        for part in model:
            x = part(x)
        return of_classes(x, y)

    with attach(model, optimizer=optimizer) as handle:
        for seed in range(6):
            optimizer.zero_grad()
            step(seed).backward()
            optimizer.step()
        with torch.no_grad():
            evaluated = [step(seed).item() for seed in (50, 51)]
    assert told(handle.run) == pytest.approx([sum(evaluated) / 2])


SUMS = [
    lambda x, y: of_classes(x, y) + of_numbers(x, y),
    lambda x, y: 0.7 * of_classes(x, y) - of_counts(x, y, reduction="sum") / 50,
    lambda x, y: sum([of_numbers(x, y), 2 * of_numbers(x / 2, y), 3 * of_classes(x, y)]),
    lambda x, y: torch.stack([of_classes(x, y), of_answers(x, y), of_classes(2 * x, y)]).mean() * 4,
    lambda x, y: torch.sum(torch.stack((of_classes(x, y), of_divergence(x, y)))),
    lambda x, y: doubled(of_classes(x, y) + of_numbers(x, y)),
]


def doubled(loss):
    """Of more paths than anybody walks."""
    for _ in range(20):
        loss = (loss + loss) / 2
    return loss


@pytest.mark.parametrize("loss_of", SUMS)
def test_a_sum_of_losses_is_told_as_a_whole(attach, loss_of):
    model, optimizer = made()
    losses, evaluated = [], []
    with attach(model, optimizer=optimizer) as handle:
        for _ in range(2):
            losses += train(model, optimizer, loss_of)
            evaluated.append(sum(evaluate(model, loss_of)) / 2)
    assert told(handle.run, mode="train") == pytest.approx(losses)
    assert told(handle.run) == pytest.approx(evaluated)
    assert handle.run.tensor_names(kind="loss") == [LOSS]
    assert not handle.problems


def test_a_sum_of_which_a_part_grows_is_not_told(attach):
    """What it is in an evaluation nothing tells, but the function that returns it."""
    model, optimizer = made()
    weights = iter(torch.linspace(0, 1, 12))
    with attach(model, optimizer=optimizer) as handle:
        for seed in range(12):
            x, y = batch(seed)
            outputs, weight = model(x), float(next(weights))
            optimizer.zero_grad()
            (of_classes(outputs, y) + weight * of_numbers(outputs, y)).backward()
            optimizer.step()
        evaluate(model, SUMS[0])
    assert not told(handle.run)
    assert [getattr(*one) for one in HEARD] == ORIGINALS


def of_rows_that_count(x, y):
    losses, counts = F.cross_entropy(x, y, reduction="none"), (y != 0).float()
    return (losses * counts).sum() / counts.sum()


@pytest.mark.parametrize(
    "loss_of",
    [
        of_rows_that_count,
        lambda x, y: of_classes(x, y) + 0.1 * x.square().mean(),
        lambda x, y: of_classes(x, y) + of_numbers(x, y),
        lambda x, y: -F.log_softmax(x, 1).gather(1, y[:, None]).mean(),
    ],
)
def test_what_says_something_else_is_not_told(attach, loss_of):
    """A part of the loss, or one of another kind, is no loss of the evaluation."""
    model, optimizer = made()
    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, loss_of, 12)
        assert [getattr(*one) for one in HEARD] == ORIGINALS
        evaluate(model, of_classes)
    assert not told(handle.run)


def test_a_loss_that_is_given_has_its_own_name_alone(attach):
    model, optimizer = made()
    criterion = nn.CrossEntropyLoss()
    with attach(model, optimizer=optimizer, loss=criterion) as handle:
        train(model, optimizer, criterion)
        evaluate(model, criterion)
        evaluate(model, of_classes)
    assert handle.run.tensor_names(kind="loss") == ["loss/CrossEntropyLoss"]
    assert len(handle.run.scalars("loss/CrossEntropyLoss", mode="eval").values) == 1


def test_two_trainings_are_told_apart(attach, tmp_path):
    first, second = made(), made()
    with (
        attach(first[0], optimizer=first[1]) as one,
        attach(second[0], optimizer=second[1], store=tmp_path / "other") as other,
    ):
        train(*first, of_classes)
        evaluated = evaluate(first[0], of_classes)
        train(*second, of_numbers)
        evaluate(second[0], of_classes)
        others = evaluate(second[0], of_numbers)
    assert told(one.run) == pytest.approx([sum(evaluated) / 2])
    assert told(other.run) == pytest.approx([sum(others) / 2])


def test_trainings_in_threads_have_their_own_losses(attach, tmp_path):
    """Each calls its model, and only then computes the other one its loss."""
    in_turn, trained = threading.Barrier(2), [made(), made()]

    def run(number):
        model, optimizer = trained[number]
        with attach(model, optimizer=optimizer, store=tmp_path / str(number)) as handle:
            train(model, optimizer, of_classes)
            model.eval()
            evaluated = []
            for seed in (50, 51):
                x, y = batch(seed + 10 * number)
                with torch.no_grad():
                    outputs = model(x)
                    in_turn.wait(10)
                    evaluated.append(of_classes(outputs, y).item())
                    in_turn.wait(10)
        return handle, sum(evaluated) / 2

    with ThreadPoolExecutor(2) as pool:
        for handle, expected in pool.map(run, range(2)):
            assert told(handle.run) == pytest.approx([expected])


def test_functions_are_as_they_were_while_a_model_is_trained_and_afterwards(attach):
    model, optimizer = made()
    with attach(model, optimizer=optimizer):
        train(model, optimizer, of_classes)
        evaluate(model, of_classes)
        assert [getattr(*one) for one in HEARD] != ORIGINALS
        train(model, optimizer, of_classes, 1)
        assert [getattr(*one) for one in HEARD] == ORIGINALS
        evaluate(model, of_classes)
    assert [getattr(*one) for one in HEARD] == ORIGINALS


def test_weights_are_the_same_bit_for_bit(attach):
    bare, watched = made(), made()
    for _ in range(2):
        train(*bare, of_classes)
        evaluate(bare[0], of_classes)
    with attach(watched[0], optimizer=watched[1]):
        for _ in range(2):
            train(*watched, of_classes)
            evaluate(watched[0], of_classes)
    assert all(map(torch.equal, bare[0].parameters(), watched[0].parameters()))


def test_scripts_and_compiled_functions_find_the_function_while_it_is_listened_to(attach):
    model, optimizer = made()
    x, y = batch(7)
    with attach(model, optimizer=optimizer) as handle:
        train(model, optimizer, of_classes)
        evaluate(model, of_classes)
        assert [getattr(*one) for one in HEARD] != ORIGINALS
        script = torch.jit.script(of_plain_classes)
        compiled = torch.compile(of_plain_classes, backend="aot_eager", fullgraph=True)
        expected = F.cross_entropy(x[:, :3], y)
        assert torch.equal(script(x[:, :3], y), expected)
        assert torch.equal(compiled(x[:, :3], y), expected)
    assert torch.equal(torch.jit.script(of_plain_classes)(x[:, :3], y), expected)
    assert not handle.problems


def of_plain_classes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x, y)


def test_a_validation_that_drifts_off_is_found(attach):
    """Of a program without a loss module: it learns its few rows by heart."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    x, y = torch.randn(64, 20), torch.randint(0, 2, (64,))
    held, labels = torch.randn(64, 20), torch.randint(0, 2, (64,))
    with attach(model, optimizer=optimizer, save_every=10) as handle:
        for _ in range(40):
            model.train()
            for rows in torch.randperm(64).split(16):
                optimizer.zero_grad()
                F.cross_entropy(model(x[rows]), y[rows]).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                F.cross_entropy(model(held), labels)
    assert "overfit" in {one.rule for one in run_rules(handle.run, ["overfit"])}
