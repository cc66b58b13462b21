"""The callback for Lightning's Trainer, with the real Trainer on tiny modules."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import time

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError

pytest.importorskip("lightning")

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Callback, ModelCheckpoint

pytestmark = pytest.mark.filterwarnings("ignore")


class Classifier(pl.LightningModule):
    """Calls its parts in ``training_step``, and a function for the loss."""

    def __init__(self, width=8, rate=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.body = nn.Sequential(nn.Linear(4, width), nn.ReLU())
        self.head = nn.Linear(width, 3)

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self.head(self.body(x)), y)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self.head(self.body(x)), y)
        self.log("val_loss", loss)
        return {"loss": loss}

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.rate)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Gan(pl.LightningModule):
    """Two optimizers, stepped by hand."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Linear(2, 4)
        self.critic = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))

    def training_step(self, batch, index):
        x, _ = batch
        makes, judges = self.optimizers()
        fake = self.generator(x[:, :2])
        makes.zero_grad()
        self.manual_backward(-self.critic(fake).mean())
        makes.step()
        judges.zero_grad()
        self.manual_backward(self.critic(fake.detach()).mean() - self.critic(x).mean())
        judges.step()

    def configure_optimizers(self):
        return [torch.optim.SGD(one.parameters(), lr=0.01) for one in (self.generator, self.critic)]


def data(n=24):
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(n, 4, generator=generator), torch.randint(0, 3, (n,), generator=generator)
    return DataLoader(TensorDataset(x, y), batch_size=6)


def watch(**settings):
    return tdbg.LightningCallback(
        store="runs/pl", **{"save_every": 1, "profiler": False, "strict": True, **settings}
    )


def fit(module, *callbacks, val=True, checkpoint=None, **options):
    known = {"max_epochs": 2, "logger": False, "accelerator": "cpu", "enable_checkpointing": False}
    known |= {"enable_progress_bar": False, "enable_model_summary": False, "log_every_n_steps": 2}
    trainer = pl.Trainer(callbacks=list(callbacks), **{**known, **options})
    trainer.fit(module, data(), data(12) if val else None, ckpt_path=checkpoint)
    return trainer


def module(kind=Classifier):
    torch.manual_seed(0)
    return kind()


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = module()
        trainer = fit(made, watch(hyperparameters={"note": "mine"}))
        run = tdbg.open_run(folder / "runs/pl")
    return run, made, trainer


def test_run_has_one_step_per_update_with_everything_in_it(fitted):
    run, _, _ = fitted
    assert run.status == "finished"
    assert run.steps(mode="train").tolist() == list(range(8))
    names = set(run.tensor_names())
    assert {"body.0.weight", "gradient/head.bias", "activation/body.1", "optimizer/grad_norm"} <= names
    for name in ("activation/body.1", "gradient/head.bias", "loss/training"):  # the first step too
        assert run.tensor(name).steps(mode="train").tolist() == list(range(8))


def test_schedule_is_followed_step_by_step(fitted):
    run, _, _ = fitted
    assert run.scalars("optimizer/lr/0").values.tolist() == pytest.approx([0.1 / 2**n for n in range(8)])


def test_metrics_are_logged_where_and_when_the_trainer_logs_them(fitted):
    run, _, trainer = fitted
    losses = run.scalars("loss/training", mode="train").values
    every_second = run.scalars("train_loss_step", mode="train")
    assert every_second.steps.tolist() == [1, 3, 5, 7]
    assert every_second.values.tolist() == pytest.approx(losses[1::2].tolist())
    epochs = run.scalars("train_loss_epoch", mode="train")
    assert epochs.steps.tolist() == [3, 7]
    assert epochs.values[-1] == pytest.approx(losses[4:].mean())
    evaluated = run.scalars("val_loss", mode="eval")
    assert evaluated.steps.tolist() == [4, 8]
    assert evaluated.values[-1] == pytest.approx(float(trainer.callback_metrics["val_loss"]))


def test_validation_is_in_eval_mode_and_the_sanity_check_in_none(fitted):
    run, _, _ = fitted
    assert run.tensor("activation/body.1").steps(mode="eval").tolist() == [4, 8]
    assert run.scalars("loss/validation", mode="eval").steps.tolist() == [4, 8]


def test_hyperparameters_are_the_modules_the_trainers_and_the_users(fitted):
    run, _, _ = fitted
    known = run.info.hyperparameters
    assert (known["width"], known["rate"], known["max_epochs"], known["note"]) == (8, 0.1, 2, "mine")


def test_nothing_is_left_after_the_fit(fitted, hooks):
    _, made, trainer = fitted
    assert hooks(made, trainer.optimizers[0]) == 0
    assert not {"training_step", "validation_step"} & set(vars(made))
    assert trainer.loggers == []


def test_gradient_accumulation_and_clipping():
    fit(module(), watch(), val=False, accumulate_grad_batches=2, gradient_clip_val=1e-3)
    run = tdbg.open_run("runs/pl")
    assert run.steps(mode="train").tolist() == [0, 1, 2, 3]
    assert run.stats(["activation/head"], ["count"])["count"].tolist() == [2 * 6 * 3] * 4
    assert run.scalars("optimizer/grad_norm_clipped").values == pytest.approx([1e-3] * 4, rel=1e-2)
    assert (run.scalars("optimizer/grad_norm").values > 1e-2).all()
    assert run.info.hyperparameters["gradient_clip_val"] == 1e-3


def test_two_optimizers_stepped_by_hand_are_one_step():
    fit(module(Gan), watch(), val=False)
    run = tdbg.open_run("runs/pl")
    assert run.steps(mode="train").tolist() == list(range(8))
    for name in ("activation/generator", "activation/critic.1", "gradient/generator.weight"):
        assert run.tensor(name).steps().tolist() == list(range(8)), name
    assert run.scalars("optimizer/lr/1.0").values.tolist() == [0.01] * 8


def test_stop_request_ends_the_fit():
    callback = watch()

    class Asks(Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            if trainer.global_step == 1:
                callback.handle.run.request_stop("enough", by="test")

    trainer = fit(module(), callback, Asks(), max_epochs=200, val=False)
    run = tdbg.open_run("runs/pl")
    assert (run.status, run.info.error) == ("stopped", "enough")
    assert trainer.global_step < 800


def test_exception_detaches_and_passes(hooks):
    class Broken(Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            if trainer.global_step == 2:
                raise ZeroDivisionError("broken batch")

    made = module()
    with pytest.raises(ZeroDivisionError, match="broken batch"):
        fit(made, watch(), Broken())
    run = tdbg.open_run("runs/pl")
    assert (run.status, run.info.error) == ("failed", "ZeroDivisionError: broken batch")
    assert hooks(made) == 0
    assert "training_step" not in vars(made)


def test_signal_to_terminate_stops_the_run_and_says_so(hooks):
    class Terminates(Callback):
        def on_train_batch_end(self, trainer, *_):
            if trainer.global_step == 3:
                os.kill(os.getpid(), signal.SIGTERM)

    one = module()
    with pytest.raises(SystemExit):
        fit(one, watch(), Terminates())
    run = tdbg.open_run("runs/pl")
    assert (run.status, run.info.error) == ("stopped", "terminated")
    assert hooks(one) == 0


def test_copies_and_pickles_of_the_module_have_steps_of_their_own():
    copies = []

    class Copying(Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            pl_module.trainer, trainer = None, pl_module.trainer
            copies.extend([copy.deepcopy(pl_module), pickle.loads(pickle.dumps(pl_module))])
            pl_module.trainer = trainer

    callback = watch()
    fit(module(), callback, Copying(), max_steps=1, max_epochs=1)
    assert len(copies) == 2
    for one in copies:
        assert one.training_step.__self__ is one
        assert one.validation_step.__self__ is one
    assert callback.handle.run.last_step == 0


def test_fit_from_a_checkpoint_counts_on_from_its_step(tmp_path):
    for kind in (Classifier, Gan):
        first, second = watch(), watch()
        fit(module(kind), first, max_epochs=1).save_checkpoint(tmp_path / kind.__name__)
        fit(module(kind), second, max_epochs=2, checkpoint=tmp_path / kind.__name__)
        made, goes_on = (one.handle.run.steps(mode="train").tolist() for one in (first, second))
        assert made[0] == 0
        assert goes_on == [len(made) + step for step in made]


def test_weights_and_checkpoint_places_are_the_same_with_and_without(tmp_path):
    weights, places = [], []
    for name, callbacks in (("plain", []), ("watched", [watch()])):
        made, keeper = module(), ModelCheckpoint(save_last=True)
        fit(made, *callbacks, keeper, enable_checkpointing=True, default_root_dir=tmp_path / name)
        weights.append([value.clone() for value in made.state_dict().values()])
        places.append(keeper.last_model_path.removeprefix(str(tmp_path / name)))
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))
    assert places[0] == places[1]


def test_saving_and_callbacks_are_phases(tmp_path):
    class Slow(Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            time.sleep(0.002)

    keeper = ModelCheckpoint(dirpath=tmp_path / "kept")
    fit(module(), watch(profiler=True), Slow(), keeper, val=False, enable_checkpointing=True)
    spans = tdbg.open_run("runs/pl").spans()
    assert {"checkpoint", "callback"} <= set(spans["phase"].astype(str))
    assert spans.loc[spans["phase"].astype(str) == "checkpoint", "step"].tolist() == [4, 8]


def test_module_that_calls_itself_is_captured_the_same():
    class Whole(Classifier):
        def forward(self, x):
            return self.head(self.body(x))

        def training_step(self, batch, index):
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

    fit(module(Whole), watch(), val=False)
    run = tdbg.open_run("runs/pl")
    assert run.tensor("activation/body.1").steps().tolist() == list(range(8))
    assert "activation/body.1:1" not in run.tensor_names()


def test_wrong_setting_is_said_when_the_callback_is_made():
    with pytest.raises(ConfigError, match=r"save_every is 'x' \(str\)"):
        tdbg.LightningCallback(save_every="x")
