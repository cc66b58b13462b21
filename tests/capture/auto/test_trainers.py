"""Trainers of Hugging Face and Lightning are followed without a callback in the program."""

from __future__ import annotations

import pytest
import torch

import tdbg_lab as tdbg

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def hugging_face():
    """Makes a real Trainer on a tiny random model."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    def make(*callbacks, **arguments):
        torch.manual_seed(0)
        sizes = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=8, n_positions=8, vocab_size=16)
        known = {"per_device_train_batch_size": 2, "max_steps": 3, "logging_steps": 1, "use_cpu": True}
        known |= {"report_to": "none", "disable_tqdm": True, "save_strategy": "no", "seed": 3}
        rows = [{"input_ids": row, "labels": row} for row in torch.arange(48).reshape(8, 6) % 16]
        return transformers.Trainer(
            model=transformers.GPT2LMHeadModel(sizes),
            args=transformers.TrainingArguments("out", **{**known, **arguments}),
            train_dataset=rows,
            callbacks=list(callbacks),
        )

    return make


def lightning_training(*callbacks, fails_at=None):
    """Train a tiny module with the real Trainer of Lightning."""
    pl = pytest.importorskip("lightning.pytorch")

    class Small(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(4, 2)

        def training_step(self, batch, index):
            if index == fails_at:
                raise RuntimeError("out of luck")
            return self.head(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    torch.manual_seed(0)
    rows = torch.utils.data.TensorDataset(torch.ones(8, 4))
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=list(callbacks),
    )
    trainer.fit(Small(), torch.utils.data.DataLoader(rows, batch_size=2))
    return trainer


def weights(model):
    return [one.detach().clone() for one in model.parameters()]


def test_hugging_face_training_is_one_run_and_trains_the_same(watched, hugging_face):
    bare = hugging_face()
    bare.train()
    ends = []

    def program():
        trainer = hugging_face()
        known = list(trainer.callback_handler.callbacks)
        trainer.train()
        assert trainer.callback_handler.callbacks == known
        ends.append(weights(trainer.model))

    (run,) = watched(program)
    assert (run.status, run.last_step) == ("finished", 2)
    assert any(name.startswith("gradient/transformer.h.0") for name in run.tensor_names())
    assert len(run.scalars("loss").values) == 3
    assert run.info.hyperparameters["max_steps"] == 3
    assert all(torch.equal(a, b) for a, b in zip(weights(bare.model), ends[0], strict=True))


def test_hugging_face_training_that_raises_is_failed_at_once(watched, hugging_face, tmp_path):
    from transformers import TrainerCallback

    class Broken(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            raise RuntimeError("out of luck")

    def program():
        try:
            hugging_face(Broken()).train()
        except RuntimeError:
            run = tdbg.open_run(tmp_path / "runs" / "auto")
            assert (run.status, run.info.error) == ("failed", "RuntimeError: out of luck")

    (run,) = watched(program)
    assert run.status == "failed"


def test_own_callback_is_not_doubled(watched, hugging_face, tmp_path):
    own = tdbg.TransformersCallback(store=tmp_path / "own", profiler=False, strict=True)
    assert watched(lambda: hugging_face(own).train()) == []
    assert tdbg.open_run(tmp_path / "own").status == "finished"


def test_two_trainings_are_two_runs_and_the_trainer_is_given_back(watched, hugging_face):
    import transformers

    original = transformers.Trainer.train

    def program():
        hugging_face(max_steps=1).train()
        hugging_face(max_steps=2).train()

    first, second = watched(program)
    assert (first.last_step, second.last_step) == (0, 1)
    assert transformers.Trainer.train is original


def test_lightning_fit_is_one_run(watched):
    trainers = []
    (run,) = watched(lambda: trainers.append(lightning_training()))
    assert (run.status, run.last_step) == ("finished", 3)
    assert {"head.weight", "gradient/head.weight", "activation/head"} <= set(run.tensor_names())
    assert run.tensor_names(kind="loss") == ["loss/training"]
    assert not any("tdbg" in type(one).__module__ for one in trainers[0].callbacks)


def test_lightning_fit_that_raises_is_failed_at_once(watched, tmp_path):
    def program():
        try:
            lightning_training(fails_at=2)
        except RuntimeError:
            assert tdbg.open_run(tmp_path / "runs" / "auto").status == "failed"

    (run,) = watched(program)
    assert run.info.error == "RuntimeError: out of luck"
