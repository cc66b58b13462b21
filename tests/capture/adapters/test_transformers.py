"""The callback for Hugging Face's Trainer, with the real Trainer on tiny random models."""

from __future__ import annotations

import contextlib
import gc
import logging
import time

import pytest
import torch
from torch.nn.functional import cross_entropy

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")


def gpt2():
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, n_positions=8, vocab_size=16))


def texts(n=8):
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(0, 16, (n, 6), generator=generator)
    return [{"input_ids": row, "labels": row} for row in rows]


def trainer(model, *callbacks, data=None, kind=Trainer, **arguments):
    known = {"per_device_train_batch_size": 2, "max_steps": 4, "logging_steps": 2, "use_cpu": True}
    known |= {"report_to": "none", "disable_tqdm": True, "save_strategy": "no", "seed": 3}
    return kind(
        model=model,
        args=TrainingArguments("out", **{**known, **arguments}),
        train_dataset=data or texts(),
        eval_dataset=data or texts(4),
        callbacks=list(callbacks),
    )


def watch(**settings):
    return tdbg.TransformersCallback(
        store="runs/hf", **{"save_every": 1, "profiler": False, "strict": True, **settings}
    )


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A run with gradient accumulation, a schedule and evaluations."""
    folder = tmp_path_factory.mktemp("evaluated")
    callback = watch(hyperparameters={"note": "mine"})
    model = gpt2()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        training = trainer(
            model,
            callback,
            gradient_accumulation_steps=2,
            eval_strategy="steps",
            eval_steps=2,
            learning_rate=0.1,
            lr_scheduler_type="linear",
            data=texts(16),
        )
        training.train()
        run = tdbg.open_run(folder / "runs/hf")
    return run, model, training


def test_run_has_one_step_per_update_with_everything_in_it(evaluated):
    run, _, _ = evaluated
    assert run.status == "finished"
    assert run.steps(mode="train").tolist() == [0, 1, 2, 3]
    names = run.tensor_names()
    assert {"transformer.h.0.mlp.c_fc.weight", "gradient/transformer.h.0.mlp.c_fc.weight"} <= set(names)
    assert {"activation/transformer.h.0.mlp.c_fc", "loss/GPT2LMHeadModel"} <= set(names)
    assert run.tensor("gradient/transformer.h.0.mlp.c_fc.weight").steps().tolist() == [0, 1, 2, 3]


def test_learning_rate_follows_the_schedule_step_by_step(evaluated):
    run, _, _ = evaluated
    assert run.scalars("optimizer/lr/0").values.tolist() == pytest.approx([0.1, 0.075, 0.05, 0.025])


def test_accumulated_batches_are_micro_steps_of_one_step(evaluated):
    run, _, _ = evaluated
    calls = run.stats(["activation/transformer.ln_f"], ["count"], mode="train")
    assert calls["count"].tolist() == [2 * 2 * 6 * 8] * 4  # both micro-batches, merged


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_of_accumulated_batches_is_the_one_that_the_trainer_logs(tmp_path, monkeypatch, smoothing):
    """Each batch's is divided by the labels of all; the last step of an epoch has fewer batches."""
    monkeypatch.chdir(tmp_path)
    training = trainer(
        gpt2(),
        watch(),
        gradient_accumulation_steps=4,
        label_smoothing_factor=smoothing,
        logging_steps=1,
        data=texts(14),
    )
    training.train()
    run = tdbg.open_run("runs/hf")
    (name,) = run.tensor_names(kind="loss", mode="train")
    assert name == ("loss/objective" if smoothing else "loss/GPT2LMHeadModel")
    logged = run.scalars("loss", mode="train")
    assert run.scalars(name).steps.tolist() == logged.steps.tolist()
    assert run.scalars(name).values.tolist() == pytest.approx(logged.values.tolist(), abs=1e-4)


class OwnLoss(Trainer):
    """Computes the loss itself, of all labels of the step, as trainers of TRL do."""

    def compute_loss(self, model, inputs, *, return_outputs=False, num_items_in_batch=None):
        outputs = model(inputs["input_ids"])
        of_each = cross_entropy(
            outputs.logits[:, :-1].transpose(1, 2), inputs["labels"][:, 1:], reduction="sum"
        )
        loss = of_each / num_items_in_batch
        return (loss, outputs) if return_outputs else loss


def test_loss_that_a_trainer_computes_itself_is_the_one_that_it_logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {"gradient_accumulation_steps": 4, "logging_steps": 1, "data": texts(14)}
    trainer(gpt2(), watch(), kind=OwnLoss, **settings).train()
    run = tdbg.open_run("runs/hf")
    assert run.tensor_names(kind="loss", mode="train") == ["loss/objective"]
    logged = run.scalars("loss", mode="train").values.tolist()
    assert run.scalars("loss/objective").values.tolist() == pytest.approx(logged, abs=1e-4)


def test_what_the_trainer_logs_is_logged_in_its_mode(evaluated):
    run, _, training = evaluated
    history = training.state.log_history
    losses = [entry["loss"] for entry in history if "loss" in entry]
    logged = run.scalars("loss", mode="train")
    assert logged.steps.tolist() == [1, 3]
    assert logged.values.tolist() == pytest.approx(losses, abs=1e-4)
    evaluations = run.scalars("eval_loss", mode="eval")
    assert evaluations.steps.tolist() == [2, 4]
    assert evaluations.values.tolist() == pytest.approx([e["eval_loss"] for e in history if "eval_loss" in e])
    assert run.scalars("train_loss", mode="train").steps.tolist() == [3]


def test_evaluation_is_captured_in_eval_mode(evaluated):
    run, _, _ = evaluated
    assert run.modes() == ["train", "eval"]
    # This trainer evaluates what it is trained on.
    assert run.scalars("loss/GPT2LMHeadModel/training_data", mode="eval").steps.tolist() == [2, 4]


def test_hyperparameters_are_the_trainers_and_the_users(evaluated):
    run, _, _ = evaluated
    known = run.info.hyperparameters
    assert known["gradient_accumulation_steps"] == 2
    assert known["learning_rate"] == 0.1
    assert known["model"]["n_embd"] == 8
    assert known["note"] == "mine"


def test_nothing_is_left_on_the_model_after_training(evaluated, hooks):
    _, model, training = evaluated
    assert hooks(model, training.optimizer.optimizer) == 0


def test_saving_and_callbacks_are_phases():
    class Slow(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            time.sleep(0.002)

    trainer(gpt2(), watch(profiler=True), Slow(), save_strategy="steps", save_steps=2).train()
    phases = tdbg.open_run("runs/hf").spans()["phase"].astype(str).value_counts()
    assert phases["callback"] >= 4
    assert phases["checkpoint"] >= 2


def test_weights_are_bitwise_the_same_with_and_without():
    weights = []
    for callbacks in ([], [watch()]):
        model = gpt2()
        trainer(model, *callbacks).train()
        weights.append([value.clone() for value in model.state_dict().values()])
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))


def test_stop_request_ends_the_training_and_train_returns():
    callback = watch()

    class Asks(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step == 1:
                callback.handle.run.request_stop("enough", by="test")

    training = trainer(gpt2(), callback, Asks(), max_steps=500, data=texts(64))
    training.train()
    run = tdbg.open_run("runs/hf")
    assert run.status == "stopped"
    assert run.info.error == "enough"
    assert training.state.global_step < 500


def test_exception_in_training_detaches_and_passes(hooks):
    class Broken(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step == 2:
                raise ZeroDivisionError("broken batch")

    model = gpt2()
    with pytest.raises(ZeroDivisionError, match="broken batch"), watch() as callback:
        trainer(model, callback, Broken()).train()
    run = tdbg.open_run("runs/hf")
    assert (run.status, run.info.error) == ("failed", "ZeroDivisionError: broken batch")
    assert hooks(model) == 0


def test_training_again_makes_a_second_run_and_closes_one_that_was_left():
    callback = watch()

    class Broken(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        trainer(gpt2(), callback, Broken()).train()
    trainer(gpt2(), callback).train()
    first, second = tdbg.open_run("runs/hf"), tdbg.open_run("runs/hf-2")
    assert (first.status, second.status) == ("failed", "finished")
    assert "did not reach its end" in first.info.error


def test_training_of_which_nothing_is_left_has_failed():
    class Broken(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            raise ZeroDivisionError

    with contextlib.suppress(ZeroDivisionError):
        trainer(gpt2(), watch(), Broken()).train()
    gc.collect()
    run = tdbg.open_run("runs/hf")
    assert (run.status, run.info.error) == ("failed", "CaptureError: the training did not reach its end")


def test_bert_classifier_with_a_dict_of_inputs_is_captured():
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=16
    )
    data = [{"input_ids": row["input_ids"], "labels": torch.tensor(i % 2)} for i, row in enumerate(texts())]
    trainer(BertForSequenceClassification(config), watch(), data=data).train()
    run = tdbg.open_run("runs/hf")
    assert run.last_step == 3
    assert "activation/bert.encoder.layer.0.attention.self.query" in run.tensor_names()
    assert len(run.scalars("loss/BertForSequenceClassification").values) == 4


class Holder:
    """What SetFit calls its model: no module, but an object that has one."""

    def __init__(self, body):
        self.body, self.head = body, None


class TellsHolder(tdbg.TransformersCallback):
    """Is told of the holder instead of the model, as by SetFit."""

    def on_train_begin(self, *args, model, **kwargs):
        super().on_train_begin(*args, model=Holder(model), **kwargs)


def test_model_that_an_object_holds_is_captured():
    callback = TellsHolder(store="runs/hf", profiler=False, strict=True)
    trainer(gpt2(), callback).train()
    run = callback.handle.run
    assert "gradient/transformer.wte.weight" in run.tensor_names(kind="gradient")
    assert len(run.scalars("loss", mode="train").values) == 2


def test_run_directory_that_cannot_be_made_leaves_training_alone(tmp_path, caplog):
    (tmp_path / "runs").write_text("in the way")
    with caplog.at_level(logging.WARNING, "tdbg_lab"):
        trainer(gpt2(), watch(strict=False)).train()
    assert "nothing is captured; the training goes on" in caplog.text


def test_training_from_a_checkpoint_counts_on_from_its_step():
    trainer(gpt2(), save_strategy="steps", save_steps=2).train()
    callback = watch(profile_steps=(3, 4))
    trainer(gpt2(), callback).train(resume_from_checkpoint="out/checkpoint-2")
    run = callback.handle.run
    assert run.steps(mode="train").tolist() == [2, 3]
    assert run.scalars("loss").steps.tolist() == [3], "where the Trainer says so: at the end of its 4th step"
    assert [profile.first_step for profile in run.profiles()] == [3]


def test_training_from_a_checkpoint_takes_up_its_run_there():
    trainer(gpt2(), watch(), save_strategy="steps", save_steps=2).train()
    callback = watch(if_exists="resume")
    trainer(gpt2(), callback).train(resume_from_checkpoint="out/checkpoint-2")
    run = callback.handle.run
    assert run.steps(mode="train").tolist() == [0, 1, 2, 3]
    weights = run.tensor("transformer.wte.weight")
    assert run.stats(weights.name, "count")["count"].nunique() == 1, (
        "none is merged with that of the attempt before"
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"save_evry": 5}, r"has no setting 'save_evry'; expected one of .* \(did you mean 'save_every'\?\)"),
        ({"save_every": 0}, r"save_every is 0 \(int\)"),
        ({"model": 1}, "has no setting 'model'"),
        ({"store": 5}, r"store is 5 \(int\); expected the folder of a run"),
        ({"profile_steps": (5, 1)}, r"profile_steps is \(5, 1\)"),
    ],
)
def test_wrong_setting_is_said_when_the_callback_is_made(settings, sentence):
    with pytest.raises(ConfigError, match=sentence):
        tdbg.TransformersCallback(**settings)
