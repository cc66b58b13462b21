"""What `frameworks.py` measures: the same small training bare, with tdbg-lab or with a peer.

A training is made once for each arm and then runs in blocks. `block` gives the seconds a step took
in it, process CPU and wall. Libraries that train by themselves begin anew in each block: their
clocks start after the first saved steps, so that opening a run is not in them.
"""

from __future__ import annotations

import contextlib
import io
import os
import time

import numpy as np

OURS = {"tdbg-1": 1, "tdbg-10": 10}
WARM_UP = 11
"""Steps before the clocks start: 0 and 10 are saved in every arm."""


def clocks():
    return np.array([time.process_time(), time.perf_counter()])


class Stopwatch:
    """Runs from the end of the warm-up to the last step of a block."""

    def __init__(self, steps):
        self.steps = steps
        self.done = 0

    def step(self):
        """A step is over."""
        self.done += 1
        if self.done == WARM_UP:
            self._start = clocks()
        elif self.done == WARM_UP + self.steps:
            self.spent = (clocks() - self._start) / self.steps


def no_problems(handle):
    if handle.problems:
        raise RuntimeError(handle.problems)


def wandb_run(folder):
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=str(folder))
    import wandb

    return wandb.init(project="frameworks", dir=str(folder), settings=wandb.Settings(silent=True))


class Histograms:
    """TensorBoard histograms of all weights and gradients of a PyTorch model, every step."""

    def __init__(self, net, folder):
        from torch.utils.tensorboard import SummaryWriter

        self.net, self.writer = net, SummaryWriter(folder)
        self.close = self.writer.close

    def step(self):
        for name, value in self.net.named_parameters():
            self.writer.add_histogram(name, value.detach(), 0)
            if value.grad is not None:
                self.writer.add_histogram(f"gradient/{name}", value.grad, 0)


class Watched:
    """``wandb.watch`` of a PyTorch model, every step."""

    def __init__(self, net, folder):
        self.run = wandb_run(folder)
        self.run.watch(net, log="all", log_freq=1)
        self.close = self.run.finish

    def step(self):
        self.run.log({"step": 0})


PEERS = {"tensorboard": Histograms, "wandb": Watched}


# -- a loop of one's own ------------------------------------------------------------------------------


class Loop:
    """A small GPT that trains on; `wrap` compiles or distributes it."""

    def __init__(self, arm, folder, wrap):
        import torch
        from overhead import Gpt

        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.net = Gpt(vocabulary=256, width=128, depth=2, length=64)
        self.x, self.y = torch.randint(0, 256, (2, 8, 64))
        self.criterion = torch.nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-4)
        self.after = self.close = lambda: None
        self.warm = False
        chief = int(os.environ.get("RANK", "0")) == 0
        self.model = wrap(self.net)
        if arm in OURS:
            self._ours(folder, OURS[arm])
        elif arm in PEERS and chief:
            peer = PEERS[arm](self.net, folder)
            self.after, self.close = peer.step, peer.close
        elif arm == "smdebug" and chief:
            self._smdebug(folder)

    def _ours(self, folder, every):
        import tdbg_lab as tdbg

        handle = tdbg.attach(
            self.model,
            optimizer=self.optimizer,
            loss=self.criterion,
            store=folder / "run",
            save_every=every,
            profiler=False,
        )
        self.close = lambda: (handle.detach(), no_problems(handle))

    def _smdebug(self, folder):
        import smdebug.pytorch as smd

        hook = smd.Hook(
            str(folder / "smd"),
            save_config=smd.SaveConfig(save_interval=1),
            include_collections=["weights", "biases", "gradients", "losses"],
            reduction_config=smd.ReductionConfig(
                reductions=["min", "max", "mean", "std"], norms=["l1", "l2"]
            ),
        )
        hook.register_module(self.net)
        hook.register_loss(self.criterion)
        self.close = hook.close

    def block(self, steps):
        if not self.warm:
            self._train(WARM_UP - 1)  # the clocks of every block run over whole tens
            self.warm = True
        start = clocks()
        self._train(steps)
        return (clocks() - start) / steps

    def _train(self, steps):
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(self.x).flatten(0, -2), self.y.flatten())
            loss.backward()
            self.optimizer.step()
            self.after()


def compiled(arm, folder):
    import torch

    return Loop(arm, folder, torch.compile)


def distributed(arm, folder):
    import torch

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")
    return Loop(arm, folder, torch.nn.parallel.DistributedDataParallel)


# -- libraries that train by themselves ---------------------------------------------------------------


class HuggingFace:
    """`transformers.Trainer` with a small GPT-2."""

    def __init__(self, arm, folder):
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.arm, self.folder = arm, folder
        config = GPT2Config(n_layer=2, n_head=4, n_embd=128, n_positions=64, vocab_size=256)
        self.model = GPT2LMHeadModel(config)
        self.rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 256, (64, 64))]
        self.peer = PEERS[arm](self.model, folder) if arm in PEERS else None

    def block(self, steps):
        from transformers import Trainer, TrainerCallback, TrainingArguments

        watch, peer = Stopwatch(steps), self.peer

        class Watching(TrainerCallback):
            def on_step_end(self, args, state, control, **kwargs):
                if peer is not None:
                    peer.step()
                watch.step()

        arguments = {"per_device_train_batch_size": 8, "max_steps": WARM_UP + steps, "use_cpu": True}
        arguments |= {"report_to": "none", "disable_tqdm": True, "save_strategy": "no", "logging_steps": 10}
        own = self._own()
        trainer = Trainer(
            self.model,
            TrainingArguments(str(self.folder / "out"), **arguments),
            train_dataset=self.rows,
            callbacks=[*own, Watching()],
        )
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its logs
            trainer.train()
        return watch.spent

    def _own(self):
        import tdbg_lab as tdbg

        if self.arm not in OURS:
            return []
        every = OURS[self.arm]
        return [tdbg.TransformersCallback(store=self.folder / "run", save_every=every, profiler=False)]

    def close(self):
        if self.peer is not None:
            self.peer.close()


class Lightning:
    """`lightning.Trainer` with the small GPT."""

    def __init__(self, arm, folder):
        import logging

        import torch
        from lightning.pytorch import LightningModule
        from overhead import Gpt

        torch.manual_seed(0)
        torch.set_num_threads(1)
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        self.arm, self.folder = arm, folder

        class Module(LightningModule):
            def __init__(self):
                super().__init__()
                self.net = Gpt(vocabulary=256, width=128, depth=2, length=64)
                self.criterion = torch.nn.CrossEntropyLoss()

            def training_step(self, batch, _index):
                loss = self.criterion(self.net(batch[0]).flatten(0, -2), batch[1].flatten())
                self.log("loss", loss)
                return loss

            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters(), lr=1e-4)

        self.module = Module()
        rows = torch.randint(0, 256, (2, 64, 64))
        data = torch.utils.data.TensorDataset(rows[0], rows[1])
        self.loader = torch.utils.data.DataLoader(data, batch_size=8)
        self.peer = PEERS[arm](self.module, folder) if arm in PEERS else None

    def block(self, steps):
        from lightning.pytorch import Callback, Trainer

        watch, peer = Stopwatch(steps), self.peer

        class Watching(Callback):
            def on_train_batch_end(self, *args):
                if peer is not None:
                    peer.step()
                watch.step()

        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        trainer = Trainer(
            max_steps=WARM_UP + steps,
            accelerator="cpu",
            enable_model_summary=False,
            callbacks=[*self._own(), Watching()],
            **quiet,
        )
        trainer.fit(self.module, self.loader)
        return watch.spent

    def _own(self):
        import tdbg_lab as tdbg

        if self.arm not in OURS:
            return []
        every = OURS[self.arm]
        return [tdbg.LightningCallback(store=self.folder / "run", save_every=every, profiler=False)]

    def close(self):
        if self.peer is not None:
            self.peer.close()


class Keras:
    """``fit`` with a small classifier; epochs of 10 steps."""

    def __init__(self, arm, folder):
        import keras

        import tdbg_lab as tdbg

        keras.utils.set_random_seed(0)
        random = np.random.default_rng(0)
        rows, features, classes = 256, 64, 10
        self.data = (
            random.random((rows * 10, features), dtype=np.float32),
            random.integers(0, classes, rows * 10),
        )
        layers = [keras.layers.Dense(512, activation="relu") for _ in range(3)]
        self.model = keras.Sequential([keras.Input((features,)), *layers, keras.layers.Dense(classes)])
        self.model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        self.own = []
        if arm in OURS:
            self.own = [tdbg.KerasCallback(folder / "run", save_every=OURS[arm], profiler=False)]
        elif arm == "tensorboard-10":
            self.own = [keras.callbacks.TensorBoard(folder / "board", histogram_freq=1)]

    def block(self, steps):
        import keras

        watch = Stopwatch(steps)

        class Watching(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                watch.step()

        x, y = self.data
        epochs = -(-(WARM_UP + steps) // 10)
        self.model.fit(x, y, batch_size=256, epochs=epochs, verbose=0, callbacks=[*self.own, Watching()])
        return watch.spent

    def close(self):
        for one in self.own:
            if hasattr(one, "handle"):
                no_problems(one.handle)


class XGBoost:
    """`xgboost.train` with metrics of the training data."""

    def __init__(self, arm, folder):
        import xgboost

        self.arm, self.folder = arm, folder
        x = np.random.default_rng(0).normal(size=(10_000, 30))
        self.matrix = xgboost.DMatrix(x, (x[:, 0] * x[:, 1] > 0).astype(int))
        self.run = wandb_run(folder) if arm == "wandb" else None

    def block(self, steps):
        import xgboost

        watch = Stopwatch(steps)

        class Watching(xgboost.callback.TrainingCallback):
            def after_iteration(self, model, epoch, evals_log):
                watch.step()
                return False

        parameters = {"objective": "binary:logistic", "nthread": 1, "max_depth": 6}
        xgboost.train(
            parameters,
            self.matrix,
            num_boost_round=WARM_UP + steps,
            evals=[(self.matrix, "train")],
            verbose_eval=False,
            callbacks=[*self._own(), Watching()],
        )
        return watch.spent

    def _own(self):
        import tdbg_lab as tdbg

        if self.arm in OURS:
            return [tdbg.XGBoostCallback(self.folder / "run", save_every=OURS[self.arm], profiler=False)]
        if self.run is not None:
            from wandb.integration.xgboost import WandbCallback

            return [WandbCallback(log_feature_importance=False)]
        return []

    def close(self):
        if self.run is not None:
            self.run.finish()


TRAININGS = {
    "compiled-gpt": compiled,
    "ddp-2": distributed,
    "hf-trainer": HuggingFace,
    "lightning": Lightning,
    "keras-torch": Keras,
    "keras-tensorflow": Keras,
    "keras-jax": Keras,
    "xgboost": XGBoost,
}
