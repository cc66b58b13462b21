"""The handler for Ignite's engines, with real engines on a tiny model."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import CaptureError, ConfigError, ConflictError

pytest.importorskip("ignite")

from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import LRScheduler
from ignite.metrics import Accuracy, RunningAverage


def batches(n=4):
    generator = torch.Generator().manual_seed(0)
    return [
        (torch.randn(6, 4, generator=generator), torch.randint(0, 3, (6,), generator=generator))
        for _ in range(n)
    ]


class Setup:
    """A model, its optimizer, a trainer and an evaluator."""

    def __init__(self, **options):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.loss = nn.CrossEntropyLoss()
        self.trainer = create_supervised_trainer(self.model, self.optimizer, self.loss, **options)
        self.evaluator = create_supervised_evaluator(self.model, {"accuracy": Accuracy()})

    def watch(self, **settings):
        known = {"store": "runs/ignite", "save_every": 1, "profiler": False, "strict": True}
        handler = tdbg.IgniteHandler(**{**known, **settings})
        return handler.attach(
            self.trainer,
            self.model,
            optimizer=self.optimizer,
            loss=self.loss,
            evaluators={"val": self.evaluator},
        )


def run_of(path="runs/ignite"):
    return tdbg.open_run(path)


def test_run_has_steps_losses_metrics_and_both_modes(hooks):
    setup = Setup()
    setup.watch(hyperparameters={"note": "mine"})
    RunningAverage(output_transform=lambda loss: loss).attach(setup.trainer, "average")
    setup.trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: setup.evaluator.run(batches(2)))
    setup.trainer.run(batches(), max_epochs=2)
    run = run_of()
    assert run.status == "finished"
    assert run.steps(mode="train").tolist() == list(range(8))
    assert {"0.weight", "gradient/0.weight", "activation/1"} <= set(run.tensor_names())
    losses = run.scalars("loss/CrossEntropyLoss", mode="train")
    assert run.scalars("output", mode="train").values.tolist() == losses.values.tolist()
    assert run.scalars("average", mode="train").steps.tolist() == [3, 7]
    accuracy = run.scalars("val/accuracy", mode="eval")
    assert accuracy.steps.tolist() == [4, 8]
    assert accuracy.values[-1] == setup.evaluator.state.metrics["accuracy"]
    assert run.info.hyperparameters == {"max_epochs": 2, "epoch_length": 4, "note": "mine"}
    assert hooks(setup.model, setup.optimizer) == 0


def test_gradient_accumulation_and_schedule_count_updates():
    setup = Setup(gradient_accumulation_steps=2)
    setup.watch()
    schedule = LRScheduler(torch.optim.lr_scheduler.ExponentialLR(setup.optimizer, 0.5))
    setup.trainer.add_event_handler(Events.ITERATION_COMPLETED(every=2), schedule)
    setup.trainer.run(batches(), max_epochs=1)
    run = run_of()
    assert run.steps(mode="train").tolist() == [0, 1]
    rates = run.scalars("optimizer/lr/0").values.tolist()
    assert rates[1] == pytest.approx(rates[0] / 2)
    assert run.stats(["activation/0"], ["count"])["count"].tolist() == [2 * 6 * 8] * 2


def test_stop_request_terminates_the_engine():
    setup = Setup()
    handler = setup.watch()
    setup.trainer.add_event_handler(
        Events.ITERATION_STARTED(once=2), lambda: handler.handle.run.request_stop("enough", by="test")
    )
    state = setup.trainer.run(batches(), max_epochs=100)
    run = run_of()
    assert (run.status, run.info.error) == ("stopped", "enough")
    assert state.iteration < 400


def test_exception_detaches_and_passes_with_nobody_else_listening(hooks):
    setup = Setup()
    setup.watch()

    @setup.trainer.on(Events.ITERATION_COMPLETED(once=3))
    def broken():
        raise ZeroDivisionError("broken")

    with pytest.raises(ZeroDivisionError):
        setup.trainer.run(batches(), max_epochs=1)
    assert (run_of().status, run_of().info.error) == ("failed", "ZeroDivisionError: broken")
    assert hooks(setup.model, setup.optimizer) == 0


def test_users_own_exception_handler_still_decides():
    setup = Setup()
    setup.watch()
    seen = []
    setup.trainer.add_event_handler(Events.EXCEPTION_RAISED, lambda error: seen.append(type(error)))

    @setup.trainer.on(Events.ITERATION_COMPLETED(once=3))
    def broken():
        raise ZeroDivisionError("broken")

    setup.trainer.run(batches(), max_epochs=1)
    assert seen == [ZeroDivisionError]


def test_interrupted_engine_goes_on_in_the_same_run():
    setup = Setup()
    setup.watch()
    setup.trainer.add_event_handler(Events.ITERATION_COMPLETED(once=2), setup.trainer.interrupt)
    data = batches()
    setup.trainer.run(data, max_epochs=1)
    assert run_of().status == "running"
    setup.trainer.run(data, max_epochs=1)
    assert run_of().status == "finished"
    assert run_of().last_step == 3


def test_second_run_of_the_engine_is_a_second_run():
    setup = Setup()
    setup.watch()
    setup.trainer.run(batches(), max_epochs=1)
    setup.trainer.run(batches(), max_epochs=1)
    assert run_of("runs/ignite-2").last_step == 3


def test_detach_leaves_the_engine_as_it_was():
    setup = Setup()
    handlers = {event: len(found) for event, found in setup.trainer._event_handlers.items()}
    handler = setup.watch()
    handler.detach()
    assert "run" not in vars(setup.trainer)
    left = {event: len(found) for event, found in setup.trainer._event_handlers.items() if found}
    assert left == {event: n for event, n in handlers.items() if n}


def test_handlers_of_the_engine_are_phases():
    setup = Setup()
    setup.watch(profiler=True)
    setup.trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: time.sleep(0.002))
    setup.trainer.run(batches(), max_epochs=2)
    phases = run_of().spans()["phase"].astype(str).value_counts()
    assert phases["callback"] >= 2


def test_weights_are_bitwise_the_same_with_and_without():
    plain, watched = Setup(), Setup()
    watched.watch()
    for setup in (plain, watched):
        setup.trainer.run(batches(), max_epochs=2)
    pairs = zip(plain.model.parameters(), watched.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_what_is_not_an_engine_is_refused_in_one_sentence():
    setup = Setup()
    handler = tdbg.IgniteHandler()
    with pytest.raises(CaptureError, match="engine is of type Linear; expected an ignite Engine"):
        handler.attach(nn.Linear(1, 1), setup.model)
    with pytest.raises(CaptureError, match="evaluators 'val' is of type str"):
        handler.attach(setup.trainer, setup.model, evaluators={"val": "x"})
    handler.attach(setup.trainer, setup.model)
    with pytest.raises(ConflictError, match="follows the engine already"):
        handler.attach(setup.trainer, setup.model)
    with pytest.raises(ConfigError, match="has no setting 'every'"):
        tdbg.IgniteHandler(every=1)
